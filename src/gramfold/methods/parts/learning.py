"""Learning the features, exactly: rounds before a method's own, in which the metric of its Fourier features is found.

    client   moments of [1, x]                                    and so a linear head, and how far inputs spread
    server   inputs made comparable: rows of one length, or standardised columns, whichever generalised cross-validation prefers
    then, `passes` times
    client   moments of the pilot [1, x, cos((x T) Omega + b)]    at several spreads of the frequencies
    server   W; the spread that predicts best
    client   sum_i J_i J_i', J_i the gradient of W'features at x_i
    server   T = (sum of sums)^(1/2)

All that is sent are sums over samples, so T does not depend on how they are cut among clients. T has seen labels. So that clients
can judge honestly what comes of it, a third of all samples is kept out of it, drawn by lots that depend on the sample alone.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramfold import features
from gramfold.errors import GramfoldError
from gramfold.features import Bias, Block, Concat, DrawnMap, FeatureMap, Fourier, Linear, Map, Metric, MetricMap, Normalize
from gramfold.federation import Samples, Task
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space, counting, draw_map, solve_pooled
from gramfold.moments import Implied, Moments
from gramfold.numerics import arrays, lots
from gramfold.numerics.arrays import Array
from gramfold.solve import metric as metrics
from gramfold.solve.gcv import choose_penalty, gcv_score, mean_squared_row
from gramfold.solve.ridge import ridge
from gramfold.wire.record import Record

UNSEEN = 0.35
"""The share of samples that the metric never sees: a third of them judges as well as all, and the metric loses nothing by it."""
SPREADS = {"rows": (0.1,), "columns": (0.1, 0.4, 1.6)}
"""The variances of the pilots' angles that are tried."""
FEW = 256
"""Up to so many columns inputs may be a table, and whether to standardise them is tried."""
VERY_FEW, NEARBY = 200, 2.0
"""With so few samples a wide kernel is a polynomial that goes astray beyond them; a narrow one leaves that to the linear part."""
FEW_SAMPLES, DOUBT = 650, 0.6
"""With fewer samples the two scores say little, and columns are standardised unless rows score far better."""
FEW_OUTPUTS = 10
"""Up to so many outputs gradients are summed over all of them; beyond, one random combination for every sample does as well."""
SHRINKAGE = 1.0
"""The penalty of the head whose metric is taken, for rows of one length, in units of the features' mean squared length: far more
than predicts best. What is left are directions that the labels are sure of, and the metric takes less of the labels' noise."""
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
        """Rounds before the method's own."""
        return 1 + 2 * self.passes


@dataclass(frozen=True)
class Learning(Record, kind="learning"):
    """Where the learning stands: the moments asked for, or, with `weights`, the gradients of that head."""

    start: Record
    """The method's first broadcast, but for the map."""
    space: Space
    seed: int
    inputs: str
    """What may make inputs comparable: "rows", "columns", or "both", of which one is to be chosen."""
    dim: int
    """Fourier features of the learned map."""
    passes: int
    """Those that are left."""
    weights: Array | None = None
    probes: Array | None = None
    spread: float = 0.0

    @property
    def pilot(self) -> MetricMap:
        assert isinstance(self.space.map, MetricMap)
        return self.space.map

    @property
    def asked(self) -> Space:
        """What uploads are moments in."""
        if self.weights is None:
            return self.space
        map: Any = Gradients(self.pilot.inputs, self.pilot.fingerprint)
        return Space(map, None, 1)


@dataclass(frozen=True)
class Gradients:
    """Stands for the map of moments whose rows are gradients."""

    dim: int
    fingerprint: str
    implied: Implied = field(default_factory=Implied)


def begin(plan: Plan, task: Task, start: Record) -> Learning:
    mode = plan.inputs or ("both" if task.inputs <= FEW else "rows")
    parts: list[FeatureMap] = [Bias(), *([Normalize()] if mode != "columns" else []), *([Linear()] if mode != "rows" else [])]
    return Learning(start, Space.of(draw_map(Concat(parts), task), task), task.seed, mode, plan.dim, plan.passes)


# --- the client ---


def seen(train: Samples) -> np.ndarray:
    """Which samples the metric may see."""
    return lots.shares(lots.lots(train.inputs)) >= UNSEEN


def local(client: ClientData, learning: Learning) -> Moments:
    """The moments, or those of the gradients, of a client's samples that the metric may see."""
    train = counting(client)
    train = train.take(np.flatnonzero(seen(train)))
    client.memory[TOOK_PART] = np.ones(1)
    space = learning.asked
    if not train.n:
        outputs = len(space.labels) if space.labels is not None else train.targets.shape[1] if learning.weights is None else 1
        return Moments(space.map.dim, outputs, labels=space.labels, fingerprint=space.map.fingerprint)
    if learning.weights is None:
        return space.fold(replace(client, train=train))
    total = None
    for block in arrays.blocks(train.n, learning.pilot.dim):
        inputs, weights = train.inputs[block], None if train.weights is None else train.weights[block]
        for combination in combinations(inputs, learning.weights.shape[1]):
            head = arrays.like(learning.weights, inputs)
            directions = arrays.like(combination, head) @ head.T
            rows = learning.pilot.gradients(inputs, directions)
            nothing = arrays.zeros((len(rows), 1), rows)
            part = Moments.from_features(rows, nothing, None, space.map.fingerprint, weights=weights, copy=False)
            total = part if total is None else total.__iadd__(part)
    assert total is not None
    return total.settle()


def combinations(inputs: Array, outputs: int) -> Sequence[np.ndarray]:
    """Combinations of outputs (n x outputs) whose gradients' products sum, or sum on average, to those of all outputs."""
    if outputs <= FEW_OUTPUTS:
        return [np.broadcast_to(row, (inputs.shape[0], outputs)) for row in np.eye(outputs)]
    return [lots.signs(lots.lots(inputs), outputs)]


def unseen(client: ClientData, map: Map, train: Samples) -> np.ndarray | None:
    """Which of a client's samples the map has not seen, with their labels; None: all."""
    if not isinstance(map, MetricMap) or not (client.contributed or TOOK_PART in client.memory):
        return None
    return ~seen(train)


# --- the server ---


def step(total: Moments, learning: Learning) -> "Learning | MetricMap":
    """What clients are asked next; the learned map, when there is nothing left to ask."""
    if total.n == 0:
        raise GramfoldError("too few samples to learn features from; use a map without @learned")
    if learning.weights is not None:
        return _next(learning, metrics.root(total.lower_gram, learning.dim, learning.probes), learning.pilot.columns)
    if isinstance(learning.space.map, MetricMap):
        pilot = learning.pilot
        penalty = None if pilot.columns is not None else SHRINKAGE * mean_squared_row(total.lower_gram, total.weight)
        _, factor = solve_pooled(total, penalty)
        sizes = [block.map.dim for block in pilot.blocks]
        squares = float(total.squares.sum())
        best = metrics.best_block(total.lower_gram, total.cross, squares, total.weight, pilot.plain.dim, sizes)
        spread = pilot.blocks[best].map.description["map"]["scale"] ** 2
        return replace(learning, weights=factor.solve(total.cross), spread=spread)
    return _after_linear(total, learning)


def _after_linear(total: Moments, learning: Learning) -> "Learning | MetricMap":
    inputs, n = learning.space.map.inputs, total.weight
    full, squares = total.gram, float(total.squares.sum())
    found = []
    if learning.inputs != "columns":
        found.append(_Comparable.of(full[: inputs + 1, : inputs + 1], total.cross[: inputs + 1], squares, n, None))
    if learning.inputs != "rows":  # the last of the columns, and the one
        take = arrays.like(np.r_[0, np.arange(total.dim - inputs, total.dim)], full)
        gram, cross, columns = _standardised(full[take][:, take], total.cross[take], n)
        found.append(_Comparable.of(gram, cross, squares, n, columns))
    doubt = DOUBT if n < FEW_SAMPLES else 1.0
    best = min(found, key=lambda candidate: candidate.score * (1.0 if candidate.columns is None else doubt))
    probes = metrics.spread_probes(best.gram, n, learning.seed)
    if best.columns is not None:  # what matters may do so along a curve: a linear head would not know
        metric = metrics.isotropic(probes)
        learning = replace(learning, spread=NEARBY if n < VERY_FEW else 0.0)
    else:
        weights = ridge(best.gram, best.cross, SHRINKAGE * mean_squared_row(best.gram, n))[1:]
        metric = metrics.root(weights @ weights.T, learning.dim, probes)
    passes = learning.passes + 1 if best.columns is not None or learning.inputs == "rows" else 1  # a linear head's metric will do
    return _next(replace(learning, probes=probes, passes=passes), metric, best.columns)


def _standardised(gram: Array, cross: Array, n: float) -> tuple[Array, Array, tuple[Array, Array]]:
    """The moments of [1, (x - centre) / scale] from those of [1, x], with centre and scale; a constant column keeps its own."""
    centre = gram[1:, 0] / n
    variance = gram.diagonal()[1:] / n - centre**2
    constant = variance <= 1e-12 * (centre**2 + variance.clip(0.0))
    scale = (variance * ~constant + constant) ** 0.5
    turn = arrays.zeros(tuple(gram.shape), gram)
    arrays.add_to_diagonal(turn[1:, 1:], 1.0 / scale)
    turn[0, 0], turn[0, 1:] = 1.0, -centre / scale
    return turn.T @ gram @ turn, turn.T @ cross, (centre, scale)


@dataclass(frozen=True)
class _Comparable:
    """The linear moments of inputs that were made comparable one way, and how well they predict."""

    gram: Array
    cross: Array
    score: float
    columns: tuple[Array, Array] | None

    @classmethod
    def of(cls, gram: Array, cross: Array, squares: float, n: float, columns: tuple[Array, Array] | None) -> "_Comparable":
        penalty = choose_penalty(gram, cross, squares, n)
        return cls(gram, cross, gcv_score(gram, cross, squares, n, penalty)[0], columns)


def _next(learning: Learning, metric: tuple[Array, float], columns: tuple[Array, Array] | None) -> "Learning | MetricMap":
    """Another pass, or the map that the passes have led to."""
    left = learning.passes - 1
    inputs, seed = learning.space.map.inputs, learning.seed
    plain = features.draw(Concat([Bias(), Linear()]), inputs, seed, "features/plain")
    spreads = SPREADS["rows" if columns is None else "columns"]
    if left == 0:
        return MetricMap.of(
            plain, [_block(metric, learning.dim, learning.spread or spreads[0], seed, "features/learned")], columns
        )
    size = max(learning.dim // 2 // len(spreads), 1)
    blocks = [_block(metric, size, spread, seed, f"pilot/{left}/{i}") for i, spread in enumerate(spreads)]
    space = replace(learning.space, map=MetricMap.of(plain, blocks, columns))
    return replace(learning, space=space, passes=left, weights=None)


def _block(metric: tuple[Array, float], dim: int, spread: float, seed: int, name: str) -> Block:
    axes, base = metric
    drawn = features.draw(Fourier(dim, math.sqrt(spread)), len(axes), seed, name)
    return Block(drawn, Metric(axes, arrays.like(np.array([base]), axes)))


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
