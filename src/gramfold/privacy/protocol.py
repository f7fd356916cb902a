"""The messages of a secure sum, and the rules that clients and server go by (Bonawitz et al. 2017, Bell et al. 2020).

    client                                                          server
    Keys        two public keys, signed                     ->      Roster      everybody's
    Shares      of the own secrets, encrypted for neighbours ->     Inbox       those for one client
    Masked      vector + own mask +- masks with neighbours  ->      Survivors   who sent one
    Confirmed   a signature of what was asked and of who    ->      Confirmations   enough of them
                is in the sum
    Revealed    shares: of the own mask of those who sent,  ->      the sum
                of the mask key of those who did not

Nobody gives both shares of one client: with its own mask and those with its neighbours the server could unmask it. Nobody gives
any before more than half of all clients have signed one and the same list of survivors, so that there are no two such lists. And
what a client was asked goes into its masks: they cancel among those who were asked the same. The proof: docs/security_model.md.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gramfold.errors import SecureSumError
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.numerics.arrays import Array
from gramfold.privacy import graph, masks
from gramfold.wire import Packet
from gramfold.wire.record import Record, plain

MINIMUM = 3
"""Clients in a sum: from a sum of two, each knows the other's part."""
MOST_CLIENTS = 10_000


@dataclass(frozen=True)
class SecureSum:
    """The server learns the sum of the clients' uploads, and nothing else of them.

    `threshold`: the share of clients that must stay to the end, more than a half; beyond fifty clients, also of each client's
    neighbours. With fewer the round fails. A larger one holds against more clients that work together with the server, as many
    as it exceeds a half by, twice; a smaller one survives more dropouts. `minimum`: clients without which there is no sum, at
    least three.
    """

    threshold: float = 2 / 3
    minimum: int = MINIMUM

    def __post_init__(self) -> None:
        if not 0.5 < self.threshold <= 1:
            raise SecureSumError(f"the threshold of a secure sum is a share above a half and up to one, not {self.threshold}")
        if self.minimum < MINIMUM:
            raise SecureSumError(f"a sum of fewer than {MINIMUM} clients hides nobody; ask for a minimum of {MINIMUM} or more")
        masks.require_cryptography()


@dataclass(frozen=True)
class Keys(Record, kind="secure/keys"):
    """A client's public keys for one sum, all as hex: to encrypt shares for it, to agree on masks with it; a hash of the seed of
    its own mask; how many samples it has, where it says; and who it is, with its signature of all this. Keys are drawn anew for
    every sum: they are the client's nonce in all that is signed later."""

    name: str
    cipher: str
    mask: str
    seed_hash: str
    identity: str
    samples: int = 0
    signature: str = ""

    def text(self, session: str) -> bytes:
        """What is signed."""
        return _canonical(["gramfold secure sum 2", session, self.name, self.cipher, self.mask, self.seed_hash, self.samples])

    def check(self, session: str) -> None:
        """Raise unless the client itself said so, for this sum."""
        if not masks.is_signed(unhex(self.identity), unhex(self.signature), self.text(session)):
            raise SecureSumError(f"the keys of {self.name!r} are not signed by it")


@dataclass(frozen=True)
class Roster(Record, kind="secure/roster"):
    """Whoever takes part."""

    session: str
    threshold: float
    clients: Sequence[Keys]

    @cached_property
    def by_name(self) -> dict[str, Keys]:
        return {keys.name: keys for keys in self.clients}

    @cached_property
    def digest(self) -> bytes:
        """Of all that is in it. It goes into every mask: where clients were told different things, their masks do not cancel."""
        listed = [vars(self.by_name[name]) for name in sorted(self.by_name)]
        fields = [{key: entry[key] for key in Keys.__dataclass_fields__} for entry in listed]
        return hashlib.sha256(_canonical([self.session, self.threshold, fields])).digest()

    @cached_property
    def graph(self) -> dict[str, list[str]]:
        """Each client's neighbours. Nobody chooses it: it follows from the keys."""
        return graph.neighbours(self.by_name, self.digest)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each client's shares are taken."""
        return {name: place for place, name in enumerate(sorted(self.by_name), start=1)}

    def holders(self, name: str) -> list[str]:
        """Who holds the shares of a client's secrets: its neighbours and itself."""
        return sorted([name, *self.graph[name]])

    def needed(self, name: str) -> int:
        """How many shares give a client's secret."""
        return graph.needed(len(self.graph[name]) + 1, self.threshold)

    @property
    def samples(self) -> int:
        """Of all clients together, as each has signed."""
        return sum(keys.samples for keys in self.clients)

    @cached_property
    def fewest(self) -> int:
        """How many clients must be in the sum, and sign that they are."""
        return graph.needed(len(self.clients), self.threshold)

    def present(self, name: str, missing: Collection[str]) -> set[str]:
        """With whom a client shares masks, where some have sent no shares."""
        return set(self.graph[name]).difference(missing)

    def question(self, asked: str, missing: Collection[str]) -> str:
        """What clients must agree on before they mask anything: what they are asked, and who sent no shares, which is who has
        masks with whom."""
        return hashlib.sha256(_canonical(["question", self.digest.hex(), asked, sorted(missing)])).hexdigest()

    def pair_key(self, name: str, private: bytes, other: str, question: str) -> bytes:
        """The key of the mask that two clients have in common, where both know the same question."""
        purpose = _canonical(["mask", question, *sorted((name, other))]).decode()
        return masks.agree(private, unhex(self.by_name[other].mask), purpose)

    def bound(self, question: str, survivors: "Survivors") -> bytes:
        """What clients sign before they reveal anything: who takes part, with which keys, session and threshold; the question;
        and who is in the sum."""
        names = sorted(set(survivors.names))
        return hashlib.sha256(_canonical(["gramfold confirmed 2", self.digest.hex(), question, names])).digest()

    def check(self, trusted: Mapping[str, str] | None) -> None:
        """Raise unless it is one that a client may go by. `trusted`: the identities that are known, by name; None: whoever the
        server says."""
        if not MINIMUM <= len(self.clients) <= MOST_CLIENTS or len(self.by_name) != len(self.clients):
            raise SecureSumError(f"{len(self.by_name)} clients cannot make a secure sum: it takes {MINIMUM} or more, each once")
        if not 0.5 < self.threshold <= 1:
            raise SecureSumError("the threshold of a secure sum must be above a half")
        if len({keys.identity for keys in self.clients}) != len(self.clients):
            raise SecureSumError("two clients of this secure sum are the same one")
        for keys in self.clients:
            if not isinstance(keys.samples, int) or not 0 <= keys.samples <= MOST_SAMPLES:
                raise SecureSumError(f"{keys.name!r} cannot have {keys.samples!r} samples")
            keys.check(self.session)
            if trusted is not None and trusted.get(keys.name) != keys.identity:
                known = "is not the one that is known here" if keys.name in trusted else "is not known here"
                raise SecureSumError(f"the identity of {keys.name!r} {known}; nothing was sent")


@dataclass(frozen=True)
class Shares(Record, kind="secure/shares"):
    """A client's shares, each encrypted for the neighbour that is to hold it, as hex."""

    name: str
    sealed: Mapping[str, str]


@dataclass(frozen=True)
class Inbox(Record, kind="secure/inbox"):
    """The shares that neighbours sent to one client, by their names; and all clients who sent none."""

    sealed: Mapping[str, str]
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Masked(Record, kind="secure/masked"):
    """A client's vector as ring elements, masked."""

    name: str
    words: Array


@dataclass(frozen=True)
class Survivors(Record, kind="secure/survivors"):
    """Whoever sent a masked vector: these are in the sum."""

    names: Sequence[str]


@dataclass(frozen=True)
class Confirmed(Record, kind="secure/confirmed"):
    """A client's signature of `Roster.bound`, as hex."""

    name: str
    signature: str


@dataclass(frozen=True)
class Confirmations(Record, kind="secure/confirmations"):
    """The signatures of as many clients as it takes, by their names."""

    signatures: Mapping[str, str]


@dataclass(frozen=True)
class Revealed(Record, kind="secure/revealed"):
    """The shares that a client gives: of the seeds of survivors' own masks, and of the mask keys of those who dropped out."""

    name: str
    seeds: Mapping[str, str]
    keys: Mapping[str, str]


def unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise SecureSumError("a message of the secure sum cannot be read: it is not hex") from None


def asked(question: Mapping[str, Any], broadcast: Packet) -> str:
    """The digest, as hex, of all that clients are asked: whatever the question says of task, method, parameters, round and
    policies, and the broadcast whole, with its maps' descriptions and arrays."""
    return hashlib.sha256(_canonical([plain(question), broadcast.digest()])).hexdigest()


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
