"""A server of a secure sum that lies: it tells clients different things, and takes off all masks that it then can.

It follows the protocol with every client, so that no single client sees anything wrong. `unbound` is the protocol as it would be
without what binds: clients that believe that all were asked the same, and reveal whatever they are told.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from gramfold.errors import GramfoldError
from gramfold.privacy import Client, SecureSum, Server, masks, ring, shamir
from gramfold.privacy.protocol import Confirmations, Inbox, Revealed, Roster, Survivors

Words = np.ndarray
Pieces = Callable[[Roster], list[list[str]]]


@contextmanager
def unbound() -> Iterator[None]:
    """Without what binds, to see that the attacks are ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Roster, "fewest", 0)
        patch.setattr(Roster, "question", lambda self, asked, missing: "")
        patch.setattr(Roster, "present", lambda self, name, missing: Whatever())
        yield


class Whatever:
    """Equal to anything."""

    def __ne__(self, other: object) -> bool:
        return False


class TwoFacedServer:
    """One sum of clients that trust each other's keys. `asked`: what each is asked; `pieces`: parts of the clients that are given
    shares of their own part alone, so that they have no masks with the others, and `told` that these sent none."""

    def __init__(
        self,
        vectors: Mapping[str, Words],
        threshold: float,
        asked: Mapping[str, str],
        pieces: Pieces = lambda roster: [],
        told: bool = False,
    ) -> None:
        self.identities = {name: hashlib.sha256(name.encode()).digest() for name in vectors}
        trusted = {name: masks.identity_of(private).hex() for name, private in self.identities.items()}
        clients = {name: Client.begin(name, "session", private) for name, private in self.identities.items()}
        self.roster = Server("session", SecureSum(threshold), "").roster([client.keys for client in clients.values()])
        sealed = {name: client.share(self.roster, trusted).sealed for name, client in clients.items()}
        graph = self.roster.graph
        inboxes = {name: Inbox({other: sealed[other][name] for other in graph[name]}) for name in clients}
        self.clients = clients
        for piece in pieces(self.roster):  # shares of the others are kept from it
            for name in piece:
                own = {other: text for other, text in inboxes[name].sealed.items() if other in piece}
                inboxes[name] = Inbox(own, sorted(set(vectors) - set(piece)) if told else [])
        self.masked = {
            name: client.mask(inboxes[name], vectors[name], asked[name]).words for name, client in self.clients.items()
        }
        self.asked = asked
        self.shares: dict[str, dict[str, dict[int, int]]] = {"seeds": {}, "keys": {}}
        """Those that clients gave, by kind, whose they are, and the place of who gave them."""
        self.refused: dict[str, str] = {}

    def tell(self, stories: Mapping[str, Collection[str]]) -> list[Revealed]:
        """Tell each client its story about who survived; what they reveal, with all signatures shown to all."""
        lists = {name: Survivors(sorted(story)) for name, story in stories.items()}
        signed = {}
        for name, survivors in lists.items():
            with suppress(GramfoldError):
                signed[name] = self.clients[name].confirm(survivors, self.identities[name]).signature
        told = []
        for name in signed:
            try:
                told.append(self.clients[name].unmask(Confirmations(signed)))
            except GramfoldError as error:
                self.refused[name] = str(error)
        for one in told:
            for kind, given in (("seeds", one.seeds), ("keys", one.keys)):
                for name, share in given.items():
                    self.shares[kind].setdefault(name, {})[self.roster.places[one.name]] = int(share, 16)
        return told

    def secret(self, kind: str, name: str) -> bytes | None:
        """A secret that so many shares give."""
        shares, needed = self.shares[kind].get(name, {}), self.roster.needed(name)
        return shamir.join(dict(list(shares.items())[:needed])) if len(shares) >= needed else None

    def sum_of(self, names: Collection[str]) -> Words:
        """The sum of these clients' masked vectors, less every mask that can be known."""
        total = np.zeros_like(next(iter(self.masked.values())))
        for name in names:
            ring.add(total, self.masked[name])
            seed = self.secret("seeds", name)
            if seed is not None:
                masks.apply(ring.subtract, total, seed)
            for other in set(self.roster.graph[name]) - set(names):
                key = self.secret("keys", other)
                if key is not None:
                    shared = self.roster.pair_key(other, key, name, self.roster.question(self.asked[name], []))
                    masks.apply(ring.subtract if name < other else ring.add, total, shared)
        return total


def same_for_all(names: Collection[str], everyone: Collection[str]) -> dict[str, Collection[str]]:
    return dict.fromkeys(names, everyone)


def many_stories(names: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """A few of the clients, and a story for each such that nobody's story leaves out half, and everybody but the few is left out
    by more than half of all stories."""
    count = len(names)
    few = next(k for k in range(1, count) if (count - k) * (count // 2 + 1) <= count * ((count - 1) // 2))
    chosen, others = names[:few], names[few:]
    out, missing = (count - 1) // 2, len(others)
    stories = {}
    for k, name in enumerate(others):
        left_out = {others[(k + 1 + i) % missing] for i in range(out)}
        stories[name] = [one for one in names if one not in left_out]
    for k, name in enumerate(chosen):
        left_out = {others[(k * out + i) % missing] for i in range(out)}
        stories[name] = [one for one in names if one not in left_out]
    return chosen, stories
