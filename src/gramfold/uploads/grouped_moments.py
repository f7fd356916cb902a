"""Moments by group: what clients send where a server sums each group of them for itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from gramfold import wire
from gramfold.errors import GramfoldError
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet


@dataclass
class GroupedMoments:
    """Moments under their group's number. Adding adds group by group.

    >>> import numpy as np
    >>> one, two = (Moments.from_features(np.eye(2), np.arange(2), classes=2) for _ in range(2))
    >>> total = GroupedMoments({0: one})
    >>> total += GroupedMoments({3: two})
    >>> {group: moments.n for group, moments in total.groups.items()}
    {0: 2, 3: 2}
    """

    groups: dict[int, Moments]

    def __iadd__(self, other: "GroupedMoments") -> "GroupedMoments":
        for group, moments in other.groups.items():
            if group in self.groups:
                self.groups[group] += moments
            else:
                self.groups[group] = moments.copy()
        return self

    def copy(self) -> "GroupedMoments":
        return GroupedMoments({group: moments.copy() for group, moments in self.groups.items()})

    def total(self) -> Moments:
        """All groups together."""
        first, *others = (self.groups[group] for group in sorted(self.groups))
        pooled = first.copy()
        for moments in others:
            pooled += moments
        return pooled

    def _meta(self, metas: Mapping[int, object]) -> dict[str, object]:
        return {"groups": {str(group): metas[group] for group in sorted(metas)}}

    @property
    def wire_bytes(self) -> int:
        """The length of `pack().to_bytes()`, without making it."""
        shapes = {f"{g}/{name}": shape for g, part in self.groups.items() for name, shape in part.packed_shapes().items()}
        meta = self._meta({g: part.packed_meta() for g, part in self.groups.items()})
        return wire.serialised_size(shapes, Packet({}, meta)._metadata())

    def pack(self) -> Packet:
        packed = {group: moments.pack() for group, moments in self.groups.items()}
        parts = {f"{group}/{name}": part for group, packet in packed.items() for name, part in packet.arrays.items()}
        return Packet(parts, self._meta({group: packet.meta for group, packet in packed.items()}))

    @classmethod
    def unpack(cls, packet: Packet) -> "GroupedMoments":
        """The moments in a packet, checked."""
        try:
            metas = {int(group): meta for group, meta in packet.meta["groups"].items()}
        except (KeyError, AttributeError, ValueError) as error:
            raise GramfoldError(f"not a message of moments by group: {error}") from None
        parts: dict[int, dict[str, Array]] = {group: {} for group in metas}
        for place, part in packet.arrays.items():
            group, _, name = place.partition("/")
            if not group.isdecimal() or int(group) not in parts:
                raise GramfoldError(f"not a message of moments by group: {place} belongs to none")
            parts[int(group)][name] = part
        return cls({group: Moments.unpack(Packet(parts[group], metas[group])) for group in metas})
