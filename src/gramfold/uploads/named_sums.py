"""Uploads that are not moments: named arrays that add, and parcels that must arrive apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gramfold.errors import GramfoldError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet


class NamedSums:
    """Named arrays that add entry by entry. Sent in their own precision, summed in float64.

    >>> import numpy as np
    >>> total = NamedSums({"w": np.ones(2, np.float32)})
    >>> total += NamedSums({"w": np.full(2, 2, np.float32)})
    >>> total["w"].tolist()
    [3.0, 3.0]
    """

    def __init__(self, parts: Mapping[str, Array]) -> None:
        self._parts = dict(parts)
        self._own = False  # whether the arrays are a float64 total that may be written to

    def __getitem__(self, name: str) -> Array:
        return self._parts[name]

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __setitem__(self, name: str, part: Array) -> None:
        self._parts[name] = part

    def __iadd__(self, other: "NamedSums") -> "NamedSums":
        mine, theirs = ({name: tuple(part.shape) for name, part in sums._parts.items()} for sums in (self, other))
        if mine != theirs:
            wrong = min(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
            raise GramfoldError(f"sums differ in {wrong}: shape {mine.get(wrong)} and {theirs.get(wrong)}")
        if not self._own:
            self._parts, self._own = {name: arrays.copy(arrays.float64(part)) for name, part in self._parts.items()}, True
        for name, part in other._parts.items():
            self._parts[name] += part
        return self

    def copy(self) -> "NamedSums":
        return NamedSums(self._parts)

    @property
    def wire_bytes(self) -> int:
        return self.pack().wire_bytes

    def pack(self) -> Packet:
        return Packet(self._parts)

    @classmethod
    def unpack(cls, packet: Packet) -> "NamedSums":
        return cls(packet.arrays)


@dataclass
class PerClient:
    """Parcels by client: for servers that must see uploads apart. Adding gathers."""

    parcels: dict[str, Mapping[str, Array]] = field(default_factory=dict)

    def __iadd__(self, other: "PerClient") -> "PerClient":
        self.parcels |= other.parcels
        return self

    def copy(self) -> "PerClient":
        return PerClient(dict(self.parcels))

    def in_order(self) -> Sequence[Mapping[str, Array]]:
        """The parcels by client name, whatever the order in which they came."""
        return [self.parcels[name] for name in sorted(self.parcels)]

    @property
    def wire_bytes(self) -> int:
        return self.pack().wire_bytes

    def pack(self) -> Packet:
        """Arrays under their client's place, the clients' names as metadata."""
        names = sorted(self.parcels)
        parts = {f"{i}/{key}": part for i, name in enumerate(names) for key, part in self.parcels[name].items()}
        return Packet(parts, {"gathered": names})

    @classmethod
    def unpack(cls, packet: Packet) -> "PerClient":
        gathered = cls({name: {} for name in packet.meta["gathered"]})
        for place, part in packet.arrays.items():
            i, _, key = place.partition("/")
            gathered.parcels[packet.meta["gathered"][int(i)]][key] = part  # type: ignore[index]
        return gathered
