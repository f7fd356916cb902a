"""What PACE's clients are sent: before the round of the moments, and after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gramfold.features import Map
from gramfold.methods import learning
from gramfold.methods.differences import Found
from gramfold.methods.learning import ClientOffsets
from gramfold.methods.pace.decision import Decision
from gramfold.methods.pace.influence import root_of
from gramfold.methods.pace.server import GroupPooled, Pooled, solved
from gramfold.methods.spaces import Space
from gramfold.numerics.arrays import Array
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Streams(Record, kind="pace/streams"):
    """The maps of the shared and of the refinement stream; `pooled` once there is a sum to solve."""

    space: Space
    refinement: Map | None
    """Whose features residuals are fitted on; None: the shared ones."""
    seed: int
    pooled: Pooled | None = None
    offsets: ClientOffsets | None = None
    """What clients' offsets are estimated from, where they fold targets less these beside the targets."""
    found: Found | None = None
    """How clients differ, where that was asked."""
    groups: Sequence[GroupPooled] = ()
    """The pooled ridges of groups, once there are sums to solve."""
    decision: Decision | None = None

    @property
    def chosen(self) -> Any:
        own_parts = {} if self.offsets is None else {"own_parts": True}
        decided = {} if self.decision is None else {"regime": self.decision.regime, "why": "; ".join(self.decision.reasons)}
        differ = {} if self.found is None else self.found.described
        if self.groups:
            differ |= {"group_weights": [group.copies - 1.0 for group in self.groups]}
            differ |= {"group_gains": [round(group.gain, 1) for group in self.groups]}
        pooled = self.pooled.chosen if self.pooled is not None else {}
        return {**decided, **learning.described(self.space.map), **own_parts, **differ, **pooled}

    def pooled_for(self, group: int | None) -> tuple[Pooled, float]:
        """The shared ridge of a client in that group, and how many times the samples of its clients are in it."""
        own = None if group is None or group >= len(self.groups) else self.groups[group]
        if own is None or own.pooled is None:
            return solved(self.pooled), 1.0
        return own.pooled, own.copies

    def pooled_root(self, along: Array) -> Array | None:
        """T'^-1 along the columns of `along`, T T' being the pooled system; None where that is not here."""
        return root_of(solved(self.pooled).leverage, along)

    @property
    def differ(self) -> Found:
        """How clients differ; nothing, where nobody asked."""
        return self.found or Found()

    @property
    def maps(self) -> list[Map]:
        """All that heads may be made of."""
        return [map for map in (self.space.map, self.refinement, *(self.differ.personal or ())) if map is not None]
