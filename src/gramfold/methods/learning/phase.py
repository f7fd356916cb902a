"""The learning of a metric as a phase: where it stands, and what its rounds ask for."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gramfold.features import Map, MetricMap
from gramfold.methods.learning import client, server
from gramfold.methods.learning.columns import Columns
from gramfold.methods.learning.offsets import ClientOffsets
from gramfold.methods.learning.server import Rows
from gramfold.methods.phases import Phase
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space
from gramfold.moments import Implied
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet


class Learned(NamedTuple):
    """What learning leads to: the map, and what clients' offsets are estimated from, where they subtract these."""

    map: Map
    offsets: ClientOffsets | None = None


@dataclass(frozen=True)
class Learning(Phase, kind="learning"):
    """The counts asked for, or the moments, or, with `weights`, the gradients of that head."""

    space: Space
    inputs: str
    """What may make inputs comparable: "rows", "columns", or "both", of which one is to be chosen; "either": by linear heads,
    before columns, which are many, are counted."""
    dim: int
    """Fourier features of the learned map."""
    passes: int
    """Those that are left."""
    columns: Columns | None = None
    """Where the columns lie, where that matters."""
    weights: Array | None = None
    longest: Array | None = None
    """The square of a gradient's length at most, for every combination of outputs that is summed."""
    probes: Array | None = None
    spread: float = 0.0
    rows: Rows | None = None
    """What columns have to beat."""
    own_parts: bool = False
    """Whether clients subtract offsets of their own from the targets (regression alone)."""
    offsets: ClientOffsets | None = None
    """What these are estimated from, once there is a pilot's head."""

    def local(self, client_: ClientData) -> Any:
        return client.local(client_, self)

    def after(self, total: Any) -> Any:
        found = server.step(total, self)
        return found if isinstance(found, Learning) else Learned(found, server.client_offsets(self))

    @property
    def counting(self) -> Columns | None:
        """The columns, while they are counted."""
        return None if self.columns is None or self.columns.measured else self.columns

    @property
    def pilot(self) -> MetricMap:
        assert isinstance(self.space.map, MetricMap)
        return self.space.map

    @property
    def asked(self) -> Space:
        """What uploads are moments in."""
        if self.weights is None:
            return self.space
        assert self.longest is not None
        bound = Implied(lengths=((0, self.pilot.inputs, float(self.longest.mean())),))
        map: Any = Gradients(self.pilot.inputs, self.pilot.fingerprint, bound)
        return Space(map, None, 1)

    @property
    def implied(self) -> Implied:
        return self.asked.implied

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {} if self.counting is None else self.counting.shapes

    def check_packet(self, packet: Packet) -> None:
        return self.asked.check_packet(packet) if self.counting is None else super().check_packet(packet)

    def check(self, upload: Any) -> None:
        if self.counting is None:
            return self.asked.check(upload)
        super().check(upload)
        return self.counting.check(upload)


@dataclass(frozen=True)
class Gradients:
    """Stands for the map of moments whose rows are gradients."""

    dim: int
    fingerprint: str
    implied: Implied = field(default_factory=Implied)
