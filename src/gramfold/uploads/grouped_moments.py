"""Moments by group: what clients send where a server sums each group of them for itself."""

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gramfold import wire
from gramfold.errors import MessageError
from gramfold.moments import Moments, codec
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet


class GroupedMoments:
    """Moments under their group's number. Adding adds group by group; a group that is not there has no samples.

    `fingerprints` are those of the groups' feature maps, one for each group there may be. All of them are in the vector, so
    that it does not give away which one a client is in.

    >>> import numpy as np
    >>> one, two = (Moments.from_features(np.eye(2), np.arange(2), classes=2, fingerprint=map) for map in ("a", "b"))
    >>> total = GroupedMoments({0: one}, ["a", "b"])
    >>> total += GroupedMoments({1: two}, ["a", "b"])
    >>> {group: moments.n for group, moments in total.groups.items()}
    {0: 2, 1: 2}
    """

    kind: ClassVar[str] = "grouped-moments"

    def __init__(self, groups: Mapping[int, Moments], fingerprints: Sequence[str]) -> None:
        self.groups, self.fingerprints = dict(groups), tuple(fingerprints)
        if not self.groups:
            raise MessageError("moments by group need a group")
        for group, moments in self.groups.items():
            if not 0 <= group < len(self.fingerprints):
                raise MessageError(f"there is no group {group} among {len(self.fingerprints)}")
            self._empty(group).require_same_space(moments)

    def _empty(self, group: int) -> Moments:
        """A group's moments of no samples: groups have the same dimensions and labels, and each its own map."""
        some = next(iter(self.groups.values()))
        return Moments(some.dim, some.outputs, labels=some.labels, fingerprint=self.fingerprints[group])

    def with_labels(self, labels: tuple[int | str, ...]) -> "GroupedMoments":
        """The same where there are these further classes, which nobody has yet."""
        return GroupedMoments({group: part.with_labels(labels) for group, part in self.groups.items()}, self.fingerprints)

    def require_same_space(self, other: "GroupedMoments") -> None:
        """Raise unless moments by group can be added to these."""
        if self.fingerprints != other.fingerprints:
            raise MessageError("moments by group differ in their groups' feature maps")
        for group, moments in other.groups.items():
            self._empty(group).require_same_space(moments)

    def __iadd__(self, other: "GroupedMoments") -> "GroupedMoments":
        self.require_same_space(other)
        for group, moments in other.groups.items():
            if group in self.groups:
                self.groups[group] += moments
            else:
                self.groups[group] = moments.copy()
        return self

    def __add__(self, other: "GroupedMoments") -> "GroupedMoments":
        total = self.copy()
        total += other
        return total

    def __sub__(self, other: "GroupedMoments") -> "GroupedMoments":
        """The moments without `other`'s samples, which must be part of these, group by group."""
        self.require_same_space(other)
        absent = sorted(set(other.groups) - set(self.groups))
        if absent:
            raise MessageError(f"cannot take samples out of group {absent[0]}: there are none in it")
        left = {g: each - other.groups[g] if g in other.groups else each.copy() for g, each in self.groups.items()}
        return GroupedMoments(left, self.fingerprints)

    @property
    def n(self) -> int:
        return sum(moments.n for moments in self.groups.values())

    @property
    def dim(self) -> int:
        return self._empty(0).dim

    @property
    def outputs(self) -> int:
        return self._empty(0).outputs

    def of_group(self, group: int) -> Moments:
        """A group's moments; those of no samples, if it has none."""
        return self.groups[group] if group in self.groups else self._empty(group)

    def copy(self) -> "GroupedMoments":
        return GroupedMoments({group: moments.copy() for group, moments in self.groups.items()}, self.fingerprints)

    def settle(self) -> "GroupedMoments":
        for moments in self.groups.values():
            moments.settle()
        return self

    def rounded(self, precision: str) -> "GroupedMoments":
        return GroupedMoments({group: part.rounded(precision) for group, part in self.groups.items()}, self.fingerprints)

    def total(self) -> Moments:
        """All groups pooled; where their maps differ as if these were one, and so as moments of no map that has a fingerprint."""
        parts = [self.groups[group].copy() for group in sorted(self.groups)]
        if len(set(self.fingerprints)) > 1:
            for part in parts:
                part.fingerprint = ""
        return functools.reduce(operator.iadd, parts)

    # --- as a message ---

    def _meta(self) -> dict[str, Any]:
        metas = {str(group): codec.meta(self.groups[group]) for group in sorted(self.groups)}
        return {"kind": self.kind, "groups": metas, "fingerprints": list(self.fingerprints)}

    @property
    def wire_bytes(self) -> int:
        """The length of `pack().to_bytes()`, without making it."""
        shapes = {f"{g}/{name}": shape for g, part in self.groups.items() for name, shape in codec.shapes(part).items()}
        return wire.packet_size(shapes, self._meta())

    def pack(self) -> Packet:
        packed = {group: moments.pack() for group, moments in self.groups.items()}
        parts = {f"{group}/{name}": part for group, packet in packed.items() for name, part in packet.arrays.items()}
        return Packet(parts, self._meta())

    @classmethod
    def unpack(cls, packet: Packet, *, exact_counts: bool = True) -> "GroupedMoments":
        """The moments in a packet, checked."""
        try:
            metas = {int(group): meta for group, meta in packet.meta["groups"].items()}
            fingerprints = [str(fingerprint) for fingerprint in packet.meta["fingerprints"]]
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            raise MessageError(f"not a message of moments by group: {error}") from None
        parts: dict[int, dict[str, Array]] = {group: {} for group in metas}
        for place, part in packet.arrays.items():
            group, _, name = place.partition("/")
            if not group.isdecimal() or int(group) not in parts:
                raise MessageError(f"not a message of moments by group: {place} belongs to none")
            parts[int(group)][name] = part
        unpacked = {g: Moments.unpack(Packet(parts[g], metas[g]), exact_counts=exact_counts) for g in metas}
        return cls(unpacked, fingerprints)

    # --- as a vector ---

    def vector(self) -> np.ndarray:
        """The groups' vectors one after another, zeros where a group has no samples."""
        size = codec.vector_length(self._empty(0).public())
        vector = np.zeros(len(self.fingerprints) * size)
        for group, moments in self.groups.items():
            vector[group * size : (group + 1) * size] = moments.vector()
        return vector

    def public(self) -> dict[str, Any]:
        space = self._empty(0).public()
        del space["fingerprint"]
        return {**space, "kind": self.kind, "fingerprints": list(self.fingerprints)}

    @classmethod
    def from_vector(cls, vector: np.ndarray, public: Mapping[str, Any]) -> "GroupedMoments":
        """Groups whose numbers are all zero have no samples, and are not there; the first is, where all are."""
        try:
            fingerprints, size = tuple(public["fingerprints"]), codec.vector_length(public)
            if vector.shape != (len(fingerprints) * size,) or not fingerprints:
                raise ValueError(f"an array of shape {vector.shape}, where {len(fingerprints)} x {size} numbers were expected")
        except (KeyError, TypeError, ValueError) as error:
            raise MessageError(f"not a vector of moments by group: {error}") from None
        groups = {}
        for group, part in enumerate(vector.reshape(len(fingerprints), size)):
            if part.any():
                groups[group] = Moments.from_vector(part, {**public, "fingerprint": fingerprints[group]})
        return cls(groups or {0: Moments.from_vector(vector[:size], {**public, "fingerprint": fingerprints[0]})}, fingerprints)
