"""What each client has received: no array is sent twice to the same client, and every byte is counted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gramfold.numerics.arrays import Array
from gramfold.wire import Packet
from gramfold.wire.digits import narrowed
from gramfold.wire.record import UNITS, Record

Versions = Mapping[str, int]


@dataclass
class Deliveries:
    """An array counts as already sent if it is the same object under the same name as in the previous broadcast."""

    bytes: dict[str, int] = field(default_factory=dict)
    """Bytes received so far, by client."""
    precision: str | None = None
    """What numbers travel in."""
    _latest: dict[str, tuple[Array, int]] = field(default_factory=dict)
    _has: dict[str, Versions] = field(default_factory=dict)
    _broadcast: tuple[Record, Packet, Versions] | None = None
    _made: dict[frozenset[str], Packet] = field(default_factory=dict)

    def announce(self, broadcast: Record) -> None:
        """Set the broadcast that clients are sent from now on."""
        packed = broadcast.pack()
        for name, array in packed.arrays.items():
            known = self._latest.get(name)
            if known is None or known[0] is not array:
                self._latest[name] = (array, known[1] + 1 if known is not None else 0)
        self._latest = {name: self._latest[name] for name in packed.arrays}
        versions = {name: self._latest[name][1] for name in packed.arrays}
        self._broadcast, self._made = (broadcast, narrowed(packed, self.precision), versions), {}

    def packet(self, client: str, record: Record) -> Packet:
        """The broadcast, or a reply, as sent to a client: without the arrays that it already has."""
        if self._broadcast is not None and record is self._broadcast[0]:
            known = self._known(client, self._broadcast[2])
            if known not in self._made:
                self._made[known] = _without(self._broadcast[1], known)
            return self._made[known]
        packed = record.pack()
        same = {name for name, array in packed.arrays.items() if name in self._latest and self._latest[name][0] is array}
        return _without(narrowed(packed, self.precision), self._known(client, same))

    def _known(self, client: str, names: Iterable[str]) -> frozenset[str]:
        """Of arrays as they were announced, those that a client has."""
        has = self._has.get(client, {})
        return frozenset(name for name in names if has.get(name) == self._latest[name][1])

    def delivered(self, client: str, packet: Packet) -> None:
        """Record that a client has received a packet."""
        self.bytes[client] = self.bytes.get(client, 0) + packet.wire_bytes
        if self._broadcast is not None and packet.arrays is self._broadcast[1].arrays:
            self._has[client] = self._broadcast[2]

    def copy(self) -> "Deliveries":
        return Deliveries(dict(self.bytes), self.precision, dict(self._latest), dict(self._has))

    # --- in a checkpoint ---

    def to_dict(self) -> dict[str, Any]:
        latest = {name: version for name, (_, version) in self._latest.items()}
        return {"bytes": self.bytes, "latest": latest, "has": {client: dict(versions) for client, versions in self._has.items()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], broadcast: Record) -> "Deliveries":
        """The inverse of `to_dict`, for a run that resumes with this broadcast."""
        arrays = broadcast.pack().arrays
        latest = {name: (arrays.get(name), version) for name, version in saved["latest"].items()}
        return cls(dict(saved["bytes"]), _latest=latest, _has=dict(saved["has"]))


def _without(packet: Packet, known: frozenset[str]) -> Packet:
    """What is left to send of a packet."""
    units = {name + UNITS for name in known} & set(packet.arrays)
    return Packet(packet.arrays, packet.meta, packet.triangular, known | units)
