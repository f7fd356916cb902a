"""A client in a secure sum: five steps, each taken once."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gramfold.errors import GramfoldError, SecureSumError
from gramfold.privacy import graph, masks, ring, shamir
from gramfold.privacy.protocol import (
    MINIMUM,
    Confirmations,
    Confirmed,
    Inbox,
    Keys,
    Masked,
    Revealed,
    Roster,
    Shares,
    Survivors,
    unhex,
)
from gramfold.privacy.ring import Words
from gramfold.wire.record import Record

STEPS = ("share", "mask", "confirm", "unmask", "done")


@dataclass
class Client(Record, kind="secure/client"):
    """A client's secrets, as hex, and how far it is. A record, so that it can be kept between messages; whoever keeps it must do
    so before the step's answer leaves, since a step that is taken twice gives secrets away."""

    name: str
    session: str
    keys: Keys
    cipher_private: str
    mask_private: str
    seed: str
    step: str = "share"
    roster: Roster | None = None
    held: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The shares that it holds, by whose they are: of the seed, and of the mask key."""
    asked: str = ""
    """The digest of what it answered with its masked vector."""
    missing: Sequence[str] = ()
    """Who sent no shares, and has masks with nobody."""
    least: int = 0
    """Samples without which it does not unmask."""
    survivors: Survivors | None = None
    """The one list that it has signed."""

    @classmethod
    def begin(
        cls, name: str, session: str, identity: bytes, samples: int = 0, random: shamir.Random = secrets.token_bytes
    ) -> "Client":
        """A client with fresh keys for one sum, signed with its identity's private key."""
        cipher, mask, seed = random(32), random(32), random(32)
        keys = Keys(
            name, masks.public_key(cipher).hex(), masks.public_key(mask).hex(), hashlib.sha256(seed).hexdigest(),
            masks.identity_of(identity).hex(), samples,
        )  # fmt: skip
        signed = Keys(**{**vars(keys), "signature": masks.sign(identity, keys.text(session)).hex()})
        return cls(name, session, signed, cipher.hex(), mask.hex(), seed.hex())

    def share(
        self, roster: Roster, trusted: Mapping[str, str] | None = None, random: shamir.Random = secrets.token_bytes
    ) -> Shares:
        """Shares of its two secrets for its neighbours. `trusted`: see `Roster.check`."""
        self._take("share")
        if roster.session != self.session or roster.by_name.get(self.name) != self.keys:
            raise SecureSumError("the list of clients is of another secure sum, or has other keys in this client's name")
        roster.check(trusted)
        self.roster, holders = roster, roster.holders(self.name)
        places = [roster.places[holder] for holder in holders]
        split = [
            shamir.split(bytes.fromhex(secret), places, roster.needed(self.name), random)
            for secret in (self.seed, self.mask_private)
        ]
        sealed = {}
        for holder, *both in zip(holders, *split, strict=True):
            parts = [share.to_bytes(shamir.SIZE, "big") for share in both]
            if holder == self.name:
                self.held = {self.name: [part.hex() for part in parts]}
                continue
            key, about = self._channel(self.name, holder)
            sealed[holder] = masks.encrypt(key, b"".join(parts), about, random).hex()
        return Shares(self.name, sealed)

    def mask(self, inbox: Inbox, vector: Words, asked: str, least: int = 0) -> Masked:
        """Its vector, masked by its own mask and by those with all neighbours whose shares came. `asked`: the digest of what it
        answers; with a neighbour who was asked something else its masks do not cancel. `least`: how many samples must be in the
        sum."""
        self._take("mask")
        roster = self._roster
        self.asked, self.least, self.missing = asked, least, sorted(set(inbox.missing))
        if roster.present(self.name, self.missing) != set(inbox.sealed) or self.name in self.missing:
            raise SecureSumError("shares came from others than the neighbours that are said to have sent some")
        if len(inbox.sealed) + 1 < roster.needed(self.name):
            raise SecureSumError(f"only {len(inbox.sealed) + 1} of at least {roster.needed(self.name)} clients are left")
        held = dict(self.held)
        for sender, sealed in inbox.sealed.items():
            key, about = self._channel(sender, self.name)
            with suppress(GramfoldError):  # one that cannot be opened is missing when it is needed: its sender is named then
                both = masks.decrypt(key, unhex(sealed), about)
                held[sender] = [both[: shamir.SIZE].hex(), both[shamir.SIZE :].hex()]
        self.held = held
        total = vector.copy()
        masks.apply(ring.add, total, bytes.fromhex(self.seed))
        for other in inbox.sealed:
            change = ring.add if self.name < other else ring.subtract
            masks.apply(change, total, roster.pair_key(self.name, bytes.fromhex(self.mask_private), other, self._question))
        return Masked(self.name, total)

    def confirm(self, survivors: Survivors, identity: bytes) -> Confirmed:
        """Its signature of what it was asked, and of this list of survivors: of one list, and no other after it."""
        self._take("confirm")
        roster, names = self._roster, set(survivors.names)
        if not names <= roster.by_name.keys() - set(self.missing) or self.name not in names or len(names) < MINIMUM:
            raise SecureSumError(f"a sum of {len(names)} clients is not unmasked: it takes {MINIMUM}, this one among them")
        if len(names) < roster.fewest or len(names & set(roster.holders(self.name))) < roster.needed(self.name):
            raise SecureSumError("too few clients are left to unmask the sum")
        if not graph.connected(roster.graph, names):
            raise SecureSumError("the clients that are left are not one group: the sum would fall into parts")
        samples = sum(roster.by_name[name].samples for name in names)
        if samples < self.least:
            raise SecureSumError(f"the clients that are left have {samples} of at least {self.least} samples")
        self.survivors = survivors
        return Confirmed(self.name, masks.sign(identity, roster.bound(self._question, survivors)).hex())

    def unmask(self, confirmations: Confirmations) -> Revealed:
        """One share for each client that it holds shares of: of the seed where the client survived, else of the mask key. Only
        against signatures of so many survivors that no second list can have as many."""
        self._take("unmask")
        assert self.survivors is not None
        roster, names = self._roster, set(self.survivors.names)
        bound, signed = roster.bound(self._question, self.survivors), 0
        for name in sorted(confirmations.signatures.keys() & names):
            identity, signature = unhex(roster.by_name[name].identity), unhex(confirmations.signatures[name])
            signed += masks.is_signed(identity, signature, bound)
        if signed < roster.fewest:
            raise SecureSumError(
                f"only {signed} of at least {roster.fewest} clients have signed that they were asked the same and know the same "
                "list of clients in the sum: the server may be telling them different things; nothing was revealed"
            )
        held, self.held = self.held, {}
        self.seed = self.mask_private = self.cipher_private = ""
        return Revealed(
            self.name,
            {name: both[0] for name, both in held.items() if name in names},
            {name: both[1] for name, both in held.items() if name not in names},
        )

    def _take(self, step: str) -> None:
        if self.step != step:
            raise SecureSumError(f"this secure sum is at {self.step!r}, not at {step!r}: no step is taken twice")
        self.step = STEPS[STEPS.index(step) + 1]

    @property
    def _roster(self) -> Roster:
        assert self.roster is not None
        return self.roster

    @property
    def _question(self) -> str:
        return self._roster.question(self.asked, self.missing)

    def _channel(self, sender: str, receiver: str) -> tuple[bytes, bytes]:
        """The key for shares from one client to another, and what they are about."""
        other: Any = self._roster.by_name[receiver if sender == self.name else sender]
        about = repr(("share", self._roster.digest.hex(), sender, receiver))
        return masks.agree(bytes.fromhex(self.cipher_private), unhex(other.cipher), about), about.encode()
