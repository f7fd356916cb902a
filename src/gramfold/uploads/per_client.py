"""Parcels that must arrive apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from gramfold.errors import MessageError
from gramfold.numerics.arrays import Array
from gramfold.uploads.base import Apart
from gramfold.uploads.named_sums import require_finite, require_shapes
from gramfold.wire import Packet


@dataclass
class PerClient(Apart):
    """Parcels by client: for servers that must see uploads apart. Adding gathers, so these are no vector that could be summed."""

    kind: ClassVar[str] = "per-client"
    no_vector: ClassVar[str] = "this method needs each client's upload: there is no vector of them that could be summed"

    parcels: dict[str, Mapping[str, Array]] = field(default_factory=dict)

    def __iadd__(self, other: "PerClient") -> "PerClient":
        self.parcels |= other.parcels
        return self

    def copy(self) -> "PerClient":
        return PerClient(dict(self.parcels))

    def in_order(self) -> Sequence[Mapping[str, Array]]:
        """The parcels by client name, whatever the order in which they came."""
        return [self.parcels[name] for name in sorted(self.parcels)]

    def require_shapes(self, expected: Mapping[str, tuple[int, ...]]) -> None:
        """Raise unless every parcel holds arrays of just these names and shapes."""
        for parcel in self.parcels.values():
            require_shapes(parcel, expected)

    # --- as a message ---

    def pack(self) -> Packet:
        """Arrays under their client's place, the clients' names as metadata."""
        names = sorted(self.parcels)
        parts = {f"{i}/{key}": part for i, name in enumerate(names) for key, part in self.parcels[name].items()}
        return Packet(parts, {"kind": self.kind, "clients": names})

    @classmethod
    def unpack(cls, packet: Packet, *, exact_counts: bool = True) -> "PerClient":
        """The parcels in a packet, which must be finite."""
        require_finite(packet)
        names = packet.meta.get("clients")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise MessageError("not a message of parcels by client: it does not name its clients")
        parcels: list[dict[str, Array]] = [{} for _ in names]
        for place, part in packet.arrays.items():
            i, _, key = place.partition("/")
            if not i.isdecimal() or int(i) >= len(parcels):
                raise MessageError(f"not a message of parcels by client: {place} belongs to none")
            parcels[int(i)][key] = part
        return cls(dict(zip(names, parcels, strict=True)))
