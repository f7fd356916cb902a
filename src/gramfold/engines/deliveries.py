"""What has been sent to whom: no array travels twice to a client that has it, and every byte is counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gramfold.numerics.arrays import Array
from gramfold.wire import Packet
from gramfold.wire.record import Record

Versions = Mapping[str, int]


@dataclass
class Deliveries:
    """An array that a broadcast carries over from the one before is the same object under the same name; any other is new."""

    bytes: dict[str, int] = field(default_factory=dict)
    """Received so far, by client."""
    _latest: dict[str, tuple[Array, int]] = field(default_factory=dict)
    _has: dict[str, Versions] = field(default_factory=dict)
    _broadcast: tuple[Record, Packet, Versions] | None = None
    _made: dict[frozenset[str], Packet] = field(default_factory=dict)

    def announce(self, broadcast: Record) -> None:
        """This is what clients are sent from now on."""
        packed = broadcast.pack()
        for name, array in packed.arrays.items():
            known = self._latest.get(name)
            if known is None or known[0] is not array:
                self._latest[name] = (array, known[1] + 1 if known is not None else 0)
        self._latest = {name: self._latest[name] for name in packed.arrays}
        self._broadcast, self._made = (broadcast, packed, {name: self._latest[name][1] for name in packed.arrays}), {}

    def packet(self, client: str, record: Record) -> Packet:
        """The broadcast, or a reply, as it travels to a client: without the arrays that it has."""
        shared = self._broadcast is not None and record is self._broadcast[0]
        packed = self._broadcast[1] if shared and self._broadcast is not None else record.pack()
        has = self._has.get(client, {})
        known = frozenset(
            name
            for name, array in packed.arrays.items()
            if name in has and name in self._latest and (self._latest[name][1] == has[name]) and self._latest[name][0] is array
        )
        if not shared:
            return Packet(packed.arrays, packed.meta, packed.triangular, known)
        if known not in self._made:
            self._made[known] = Packet(packed.arrays, packed.meta, packed.triangular, known)
        return self._made[known]

    def delivered(self, client: str, packet: Packet) -> None:
        """Book what a client has received."""
        self.bytes[client] = self.bytes.get(client, 0) + packet.wire_bytes
        if self._broadcast is not None and packet.arrays is self._broadcast[1].arrays:
            self._has[client] = self._broadcast[2]

    def copy(self) -> "Deliveries":
        return Deliveries(dict(self.bytes), dict(self._latest), dict(self._has))

    # --- in a checkpoint ---

    def to_dict(self) -> dict[str, Any]:
        latest = {name: version for name, (_, version) in self._latest.items()}
        return {"bytes": self.bytes, "latest": latest, "has": {client: dict(versions) for client, versions in self._has.items()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], broadcast: Record) -> "Deliveries":
        """What `to_dict` gave, for a run that goes on from this broadcast."""
        arrays = broadcast.pack().arrays
        latest = {name: (arrays.get(name), version) for name, version in saved["latest"].items()}
        return cls(dict(saved["bytes"]), latest, dict(saved["has"]))
