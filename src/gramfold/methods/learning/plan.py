"""What is to be learned about features, where that stands, and what comes of it."""

import re
from dataclasses import dataclass, field
from typing import Any

from gramfold.errors import GramfoldError
from gramfold.features import (
    Bias,
    Concat,
    DirectionsMap,
    DrawnMap,
    Linear,
    Map,
    MetricMap,
    Normalize,
    draw,
)
from gramfold.federation import Task
from gramfold.methods.learning import columns
from gramfold.methods.learning.columns import Columns
from gramfold.methods.learning.own_parts import Common
from gramfold.methods.spaces import Space, draw_map, one_unit
from gramfold.moments import Implied
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import CAUTION
from gramfold.uploads import NamedSums
from gramfold.wire import Packet
from gramfold.wire.record import Record

FEW = 256
"""Up to so many columns they are counted at once, should they be a table's; of more, linear heads tell first if they may be."""
_SPEC = re.compile(r"(?:(rows|columns)\+)?bias\+linear\+fourier:(\d+)@learned(?::(\d+))?")


@dataclass(frozen=True)
class Plan:
    """What is to be learned: `dim` Fourier features in a metric of so many passes. `inputs`: how they are made comparable; None:
    by cross-validation."""

    dim: int
    passes: int = 0
    inputs: str | None = None

    @classmethod
    def of(cls, spec: Any) -> "Plan | None":
        """The plan that a feature map's text asks for; None where it asks for none."""
        if not isinstance(spec, str) or "@" not in spec:
            return None
        found = _SPEC.fullmatch(spec.replace(" ", ""))
        if found is None or int(found[2]) < 1:
            raise GramfoldError(
                f"cannot read feature map {spec!r}; a learned one is bias+linear+fourier:DIM@learned, perhaps with :PASSES at "
                "its end, and rows+ or columns+ before it to say what makes inputs comparable"
            )
        return cls(int(found[2]), int(found[3] or 0), found[1])

    def width(self, inputs: int) -> int:
        """Features in all."""
        return 1 + inputs + self.dim

    @property
    def rounds(self) -> int:
        """Rounds before the method's own, at most."""
        return (0 if self.inputs == "rows" else columns.ROUNDS) + 1 + max(2 * self.passes, self.inputs != "rows")


@dataclass(frozen=True)
class Rows(Record, kind="learning/rows"):
    """The map of rows of one length, and how far off its pilot was by generalised cross-validation."""

    map: Map
    score: float


@dataclass(frozen=True)
class Learning(Record, kind="learning"):
    """Where the learning stands: the counts asked for, or the moments, or, with `weights`, the gradients of that head."""

    start: Record
    """The method's first broadcast, but for the map."""
    space: Space
    seed: int
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
    rows: "Rows | None" = None
    """What columns have to beat."""
    own_parts: bool = False
    """Whether clients take what is their own out of the targets (regression alone)."""
    common: Common | None = None
    """What that is told by, once there is a pilot's head."""

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

    def check_packet(self, packet: Packet) -> None:
        """Raise unless a packet claims to hold what was asked for."""
        if self.counting is None:
            self.asked.check_packet(packet)
        elif packet.meta.get("kind") != NamedSums.kind:
            raise GramfoldError(f"expected counts, got {packet.meta.get('kind')}")

    def check(self, upload: Any) -> None:
        """Raise unless an upload is what was asked for."""
        counting = self.counting
        if counting is None:
            return self.asked.check(upload)
        if not isinstance(upload, NamedSums):
            raise GramfoldError(f"expected counts, got {upload.kind}")
        return counting.check(upload)


@dataclass(frozen=True)
class Gradients:
    """Stands for the map of moments whose rows are gradients."""

    dim: int
    fingerprint: str
    implied: Implied = field(default_factory=Implied)


def begin(plan: Plan, task: Task, start: Record, own_parts: bool = False) -> Learning:
    known = one_unit(task)
    mode = plan.inputs or ("rows" if known else "either" if known is None and task.inputs > FEW else "both")
    columns = [Linear()] if mode == "either" else []
    space = Space.of(draw_map(Concat([Bias(), Normalize(), *columns]), task), task)
    counted = None if mode in ("rows", "either") else Columns(task.inputs)
    own_parts = own_parts and task.labels is None
    return Learning(start, space, task.seed, mode, plan.dim, plan.passes, counted, own_parts=own_parts)


def caution(map: Map) -> float:
    """How many times a degree of freedom counts when a penalty is chosen for its features."""
    return CAUTION if map.tabular else 1.0


def described(map: Map) -> dict[str, Any]:
    """What was chosen about a map, for the result."""
    if isinstance(map, DirectionsMap):
        return {"columns": len(map.columns), "directions": map.after.inputs}
    if not isinstance(map, MetricMap):
        return {}
    spread = {"spread": map.blocks[0].map.description["map"]["scale"] ** 2}
    return {"inputs": "rows of one length" if map.columns is None else "standardised columns", **spread}


def comparable_as(map: Map, other: Map) -> Map:
    """Another map, of the inputs as a learned one makes them comparable."""
    if isinstance(map, DirectionsMap) and isinstance(other, DrawnMap):
        drawn = other.description
        return map.before(draw(other.spec, map.after.inputs, drawn["seed"], drawn["name"]))
    columns = map.columns if isinstance(map, MetricMap) else None
    return MetricMap.of(other, [], columns) if columns is not None and isinstance(other, DrawnMap) else other
