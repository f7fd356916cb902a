"""The server of a secure sum: it passes messages on, adds masked vectors up, and takes the masks off the sum."""

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np

from gramfold.errors import SecureSumError
from gramfold.privacy import graph, masks, ring, shamir
from gramfold.privacy.protocol import (
    Confirmations,
    Confirmed,
    Inbox,
    Keys,
    Masked,
    Revealed,
    Roster,
    SecureSum,
    Shares,
    Survivors,
    unhex,
)
from gramfold.privacy.ring import Words


class Server:
    """One sum. Methods are called in this order, with what came: `take`, `add`, `confirm` and `reveal` for each client, the
    others once. `asked`: the digest of what clients are asked."""

    def __init__(self, session: str, policy: SecureSum, asked: str) -> None:
        self.session, self.policy, self.asked = session, policy, asked
        self.sum: Words = np.zeros((0, 0), np.uint64)
        self.sent: set[str] = set()
        """Whose masked vectors are in the sum."""
        self._sealed: dict[str, Mapping[str, str]] = {}
        self._shares: dict[str, dict[int, int]] = {}
        self._signatures: dict[str, str] = {}

    def roster(self, keys: Iterable[Keys]) -> Roster:
        """Who takes part; raises where they are too few."""
        clients = tuple(sorted(keys, key=lambda one: one.name))
        self._require(len(clients), self.policy.minimum, "sent keys")
        self.known = Roster(self.session, self.policy.threshold, clients)
        self.known.check(None)
        return self.known

    def check(self, keys: Keys) -> None:
        """Raise unless these are keys that others can use: one that is none would stop all of its neighbours."""
        keys.check(self.session)
        for public in (keys.cipher, keys.mask):
            masks.agree(bytes(range(32)), unhex(public), "check")

    def take(self, shares: Shares) -> None:
        """The shares of one client."""
        name = shares.name
        if name not in self.known.by_name or shares.sealed.keys() != set(self.known.graph[name]):
            raise SecureSumError("its shares are not for its neighbours")
        for sealed in shares.sealed.values():
            unhex(sealed)
        self._sealed[name] = shares.sealed

    def inboxes(self) -> dict[str, Inbox]:
        """For each client that sent its shares, those of its neighbours."""
        roster, sealed = self.known, self._sealed
        self._require(len(sealed), self.policy.minimum, "sent their shares")
        missing = sorted(roster.by_name.keys() - sealed.keys())
        self.question = roster.question(self.asked, missing)
        inboxes = {
            name: Inbox({other: sealed[other][name] for other in sorted(roster.present(name, missing))}, missing)
            for name in sealed
        }
        for name, inbox in inboxes.items():
            self._require(len(inbox.sealed) + 1, roster.needed(name), "sent their shares")
        self.shared = set(sealed)
        return inboxes

    def add(self, masked: Masked) -> None:
        """Add a masked vector."""
        words = np.asarray(masked.words)
        if masked.name not in self.shared or masked.name in self.sent:
            raise SecureSumError("a masked vector that nobody waits for")
        if words.ndim != 2 or len(words) not in ring.FRACTION or words.dtype != np.uint64:
            raise SecureSumError(f"a masked vector of shape {words.shape} and {words.dtype} is none")
        if not self.sent:
            self.sum = np.zeros(words.shape, np.uint64)
        if words.shape != self.sum.shape:
            raise SecureSumError(f"a masked vector of shape {words.shape}, where the others have {self.sum.shape}")
        ring.add(self.sum, words)
        self.sent.add(masked.name)

    def survivors(self) -> Survivors:
        """Who is in the sum."""
        self._require(len(self.sent), max(self.known.fewest, self.policy.minimum), "sent a masked vector")
        for name in self.sent:
            here = len(self.sent.intersection(self.known.holders(name)))
            self._require(here, self.known.needed(name), "sent a masked vector")
        if not graph.connected(self.known.graph, self.sent):
            raise SecureSumError("the clients that are left are not one group: the secure sum would fall into parts")
        return Survivors(sorted(self.sent))

    def confirm(self, confirmed: Confirmed) -> None:
        """The signature of one client: that of another list, or of something else that it was asked, would help nobody."""
        name = confirmed.name
        bound = self.known.bound(self.question, Survivors(sorted(self.sent)))
        if name not in self.sent or not masks.is_signed(
            unhex(self.known.by_name[name].identity), unhex(confirmed.signature), bound
        ):
            raise SecureSumError("it has signed something else than what it was asked, or another list of clients in the sum")
        self._signatures[name] = confirmed.signature

    def confirmations(self) -> Confirmations:
        """As many signatures as each client wants to see before it reveals anything."""
        self._require(len(self._signatures), self.known.fewest, "confirmed what they were asked")
        return Confirmations(dict(sorted(self._signatures.items())[: self.known.fewest]))

    def reveal(self, revealed: Revealed) -> None:
        """The shares that one client gives."""
        place = self.known.places[revealed.name]
        for given, of_survivors in ((revealed.seeds, True), (revealed.keys, False)):
            for name, share in given.items():
                if (name in self.sent) == of_survivors and name in self.shared and revealed.name in self.known.holders(name):
                    self._shares.setdefault(name, {})[place] = int.from_bytes(unhex(share), "big") % shamir.PRIME

    def total(self) -> Words:
        """The sum of the survivors' vectors, bit for bit."""
        secrets = {name: self._secret(name) for name in sorted(self.shared)}
        total = self.sum.copy()
        for name in self.sent:
            if hashlib.sha256(secrets[name]).hexdigest() != self.known.by_name[name].seed_hash:
                raise SecureSumError(f"the shares of {name!r} do not fit together: somebody gave a wrong one; run again")
            masks.apply(ring.subtract, total, secrets[name])
        for name in self.shared - self.sent:
            self._without_masks_of(name, secrets[name], total)
        return total

    def _without_masks_of(self, name: str, private: bytes, total: Words) -> None:
        """Take out of the sum the masks that survivors have in common with one who dropped out."""
        if masks.public_key(private).hex() != self.known.by_name[name].mask:
            raise SecureSumError(f"the shares of {name!r} do not fit together: somebody gave a wrong one; run again")
        for other in self.sent.intersection(self.known.graph[name]):
            change = ring.subtract if other < name else ring.add
            masks.apply(change, total, self.known.pair_key(name, private, other, self.question))

    def _secret(self, name: str) -> bytes:
        shares, needed = self._shares.get(name, {}), self.known.needed(name)
        self._require(len(shares), needed, f"gave their share of the secret of {name!r}")
        return shamir.join(dict(list(shares.items())[:needed]))

    def _require(self, found: int, needed: int, what: str) -> None:
        if found < needed:
            raise SecureSumError(f"the secure sum failed: only {found} of at least {needed} clients {what}; nothing was learnt")
