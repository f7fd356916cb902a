"""Learning the features, exactly: rounds before a method's own, in which the metric of its Fourier features is found.

    both     where columns lie and how far they spread            by counting (`columns`), where inputs may be those of a table
    client   moments of [1, x]                                    and so a linear head, and how inputs vary together
    server   inputs made comparable: rows of one length, or standardised columns
    then, `passes` times
    client   moments of the pilot [1, x, cos((x T) Omega + b)]    at several spreads of the frequencies
    server   W; the spread that predicts best
    client   sum_i J_i J_i', J_i the gradient of W'features at x_i, not much longer than usual
    server   T = (sum of sums)^(1/2)

Where both may make inputs comparable, the first moments are also those of a pilot of rows of one length; columns make their first
pilot next, and go on unless generalised cross-validation prefers the rows'. A linear head would be a poor judge: in a table what
matters may do so along a curve, or only together with something else.

All that is sent are sums over samples, so T does not depend on how they are cut among clients. T has seen labels. So that clients
can judge honestly what comes of it, a third of all samples is kept out of it, drawn by lots that depend on the sample alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import (
    Bias,
    Concat,
    DrawnMap,
    Linear,
    Map,
    MetricMap,
    Normalize,
)
from gramfold.federation import Samples, Task
from gramfold.methods.parts import columns
from gramfold.methods.parts.columns import Columns
from gramfold.methods.parts.own_part import Common
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space, counting, draw_map, one_unit
from gramfold.moments import Implied, Moments
from gramfold.numerics import arrays, lots
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import CAUTION
from gramfold.uploads import NamedSums
from gramfold.wire import Packet
from gramfold.wire.record import Record

UNSEEN = 0.35
"""The share of samples that the metric never sees: a third of them judges as well as all, and the metric loses nothing by it."""
FEW = 256
"""Up to so many columns they are counted at once, should they be a table's; of more, linear heads tell first if they may be."""
FEW_OUTPUTS = 10
"""Up to so many outputs gradients are summed over all of them; beyond, one random combination for every sample does as well."""
TOOK_PART = "metric"
"""In a client's memory: that its samples are in the metric."""
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


# --- the client ---


def seen(train: Samples) -> np.ndarray:
    """Which samples the metric may see."""
    return lots.shares(lots.lots(train.inputs)) >= UNSEEN


def local(client: ClientData, learning: Learning) -> Moments | NamedSums:
    """The moments, or those of the gradients, of a client's samples that the metric may see; or their counts."""
    train = counting(client)
    if learning.counting is not None:
        return learning.counting.count(train)
    train = train.take(np.flatnonzero(seen(train)))
    client.memory[TOOK_PART] = np.ones(1)
    space = learning.asked
    if not train.n:
        outputs = len(space.labels) if space.labels is not None else train.targets.shape[1] if learning.weights is None else 1
        return Moments(space.map.dim, outputs, labels=space.labels, fingerprint=space.map.fingerprint)
    if learning.weights is None:
        if learning.common is not None:
            train = learning.common.without(train, learning.common.part(train))
        return space.fold(replace(client, train=train))
    total = None
    for block in arrays.blocks(train.n, learning.pilot.dim):
        inputs, weights = train.inputs[block], None if train.weights is None else train.weights[block]
        at = learning.pilot.comparable(inputs)
        assert learning.longest is not None
        for combination, longest in zip(combinations(inputs, learning.weights.shape[1]), learning.longest, strict=True):
            rows = gradients(learning.pilot, learning.weights, at, combination)
            squares = arrays.row_squares(rows)[:, None]
            rows = rows * (float(longest) / squares.clip(float(longest), None)) ** 0.5 if float(longest) else rows * 0.0
            nothing = arrays.zeros((len(rows), 1), rows)
            part = Moments.from_features(rows, nothing, None, space.map.fingerprint, weights=weights, copy=False)
            total = part if total is None else total.__iadd__(part)
    assert total is not None
    return total.settle()


def gradients(pilot: MetricMap, weights: Array, at: Array, combination: np.ndarray) -> Array:
    """Those of a head's outputs, combined, at comparable inputs."""
    head = arrays.like(weights, at)
    return pilot.gradients_at(at, arrays.like(combination, head) @ head.T)


def combinations(inputs: Array, outputs: int) -> Sequence[np.ndarray]:
    """Combinations of outputs (n x outputs) whose gradients' products sum, or sum on average, to those of all outputs."""
    if outputs <= FEW_OUTPUTS:
        return [np.broadcast_to(row, (inputs.shape[0], outputs)) for row in np.eye(outputs)]
    return [lots.signs(lots.lots(inputs), outputs)]


def unseen(client: ClientData, map: Map, train: Samples) -> np.ndarray | None:
    """Which of a client's samples the map has not seen, with their labels; None: all."""
    if not isinstance(map, MetricMap) or not map.follows_labels or not (client.contributed or TOOK_PART in client.memory):
        return None
    return ~seen(train)


def own_part(common: Common, train: Samples) -> Array:
    """A client's own part, from samples that the metric may see: the others judge."""
    return common.part(train.take(np.flatnonzero(seen(train))))


# --- the map that comes of it ---


def caution(map: Map) -> float:
    """How many times a degree of freedom counts when a penalty is chosen for its features."""
    return CAUTION if isinstance(map, MetricMap) and map.columns is not None else 1.0


def described(map: Map) -> dict[str, Any]:
    """What was chosen about a map, for the result."""
    if not isinstance(map, MetricMap):
        return {}
    spread = {"spread": map.blocks[0].map.description["map"]["scale"] ** 2}
    return {"inputs": "rows of one length" if map.columns is None else "standardised columns", **spread}


def comparable_as(map: Map, other: Map) -> Map:
    """Another map, of the inputs as a learned one makes them comparable."""
    columns = map.columns if isinstance(map, MetricMap) else None
    return MetricMap.of(other, [], columns) if columns is not None and isinstance(other, DrawnMap) else other
