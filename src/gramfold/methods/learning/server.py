"""The server's part of learning features: what it makes of each round's sum, and asks clients for next (see `learning`)."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold import features
from gramfold.errors import MethodError
from gramfold.features import (
    Bias,
    Block,
    Chain,
    Concat,
    DrawnMap,
    FeatureMap,
    Fourier,
    Linear,
    Map,
    Metric,
    MetricMap,
    Normalize,
    Pairs,
    Standardize,
)
from gramfold.methods.learning.client import combinations, gradients
from gramfold.methods.learning.columns import Columns
from gramfold.methods.learning.offsets import ClientOffsets
from gramfold.methods.learning.rules import RULES
from gramfold.methods.pooled import PooledRidge
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve import metric as metrics
from gramfold.solve.gcv import mean_squared_row
from gramfold.solve.ridge import ridge
from gramfold.solve.units import Units
from gramfold.wire.record import Record

if TYPE_CHECKING:
    from gramfold.methods.learning.phase import Learning


@dataclass(frozen=True)
class Rows(Record, kind="learning/rows"):
    """The map of rows of one length, and how far off its pilot was by generalised cross-validation."""

    map: Map
    score: float


def step(total: Any, learning: "Learning") -> "Learning | Map":
    """What clients are asked next; the learned map, when there is nothing left to ask."""
    if learning.counting is not None:
        return _after_counting(learning.counting.after(total), learning)
    if total.n == 0:
        raise MethodError("too few samples to learn features from, or all alike; use a map without @learned (PACE: learn=False)")
    if learning.weights is not None:
        metric, left = metrics.root(total.lower_gram, learning.dim, learning.probes), learning.passes - 1
        columns = learning.pilot.columns
        following = replace(learning, passes=left, offsets=client_offsets(learning))
        return _pilot(following, metric, columns) if left else _learned(learning, metric, columns)
    return _after_pilot(total, learning) if isinstance(learning.space.map, MetricMap) else _after_linear(total, learning)


def client_offsets(learning: "Learning") -> ClientOffsets | None:
    """What clients' offsets are estimated from, after the gradients of a pilot's head; None where they have none."""
    if not learning.own_parts or learning.weights is None or learning.pilot.columns is None:
        return None
    return ClientOffsets(learning.pilot, learning.weights)


def _after_counting(counted: Columns, learning: "Learning") -> "Learning":
    """More counting, or the first moments."""
    learning = replace(learning, columns=counted)
    if not counted.measured:
        return learning
    if learning.inputs == "both" and not counted.alike:
        learning = replace(learning, inputs="columns")
    assert counted.centre is not None
    assert counted.scale is not None
    trial = Chain([Normalize(), Fourier(_pilot_size(learning.dim, "columns"), math.sqrt(RULES.trial))])
    rows: list[FeatureMap] = [Normalize(), trial] if learning.inputs == "both" else []
    map = Concat([Bias(), *rows, Standardize(tuple(counted.centre), tuple(counted.scale))])
    return replace(learning, space=replace(learning.space, map=features.draw(map, counted.inputs, learning.seed)))


def _after_pilot(total: Moments, learning: "Learning") -> "Learning | Map":
    """The gradients of its head, or the map, where this pilot was all there is to learn."""
    pilot, squares = learning.pilot, float(total.squares.sum())
    sizes = [block.map.dim for block in pilot.blocks]
    best, score = metrics.best_block(total.lower_gram, total.cross, squares, total.weight, pilot.plain.dim, sizes)
    part = RULES.rows_by_pilot if learning.columns is not None and learning.columns.standardised else 1.0
    if learning.rows is not None and learning.rows.score < part * score:
        return learning.rows.map
    learning = replace(learning, spread=pilot.blocks[best].map.description["map"]["scale"] ** 2, rows=None)
    if not learning.passes:
        return _learned(learning, metrics.isotropic(learning.probes), pilot.columns)
    penalty = None if pilot.columns is not None else RULES.shrinkage * mean_squared_row(total.lower_gram, total.weight)
    weights = PooledRidge.of(total, penalty, learning.space.units(), learning.space.caution).weights
    return replace(learning, weights=weights, longest=_longest(pilot, weights, learning.seed))


def _longest(pilot: MetricMap, weights: Array, seed: int) -> np.ndarray:
    """The longest gradients that count: RULES.longest times the mean square of those at normally distributed inputs."""
    at = arrays.like(seeds.generator(seed, "metric/typical").standard_normal((RULES.normal, pilot.inputs)), weights)
    each = [gradients(pilot, weights, at, combination) for combination in combinations(at, weights.shape[1])]
    return np.array([RULES.longest * float(arrays.row_squares(rows).mean()) for rows in each])


def _after_linear(total: Moments, learning: "Learning") -> "Learning | Map":
    inputs, n, full = learning.space.map.inputs, total.weight, total.gram
    if learning.inputs == "either":
        if _columns_are_better(total, inputs):
            space = replace(learning.space, map=features.draw(Concat([Bias(), Normalize()]), inputs, learning.seed))
            return replace(learning, inputs="columns", columns=Columns(inputs), space=space)
        learning = replace(learning, inputs="rows")
    rows = None
    if learning.inputs != "columns":
        gram, cross = full[: inputs + 1, : inputs + 1], total.cross[: inputs + 1]
        probes = metrics.spread_probes(gram, n, learning.seed)
        weights = ridge(gram, cross, RULES.shrinkage * mean_squared_row(gram, n))[1:]
        metric = metrics.root(weights @ weights.T, learning.dim, probes)
        if learning.inputs == "both" and n < RULES.linear_metric:
            learning, metric = replace(learning, spread=RULES.trial), metrics.isotropic(probes)
        if learning.inputs == "rows" and learning.passes:
            return _pilot(replace(learning, probes=probes), metric, None)
        found = _learned(learning, metric, None)  # a linear head's metric will do
        if learning.inputs == "rows":
            return found
        own = total.dim - inputs
        rows = Rows(found, metrics.score(full[:own, :own], total.cross[:own], float(total.squares.sum()), n))
    take = arrays.like(np.r_[0, np.arange(total.dim - inputs, total.dim)], full)
    assert learning.columns is not None
    measured = arrays.like(learning.columns.centre, full), arrays.like(learning.columns.scale, full)
    probes = metrics.spread_probes(full[take][:, take], n, learning.seed)
    # what matters may do so along a curve: a linear head would not know
    return _pilot(replace(learning, probes=probes, rows=rows, spread=0.0), metrics.isotropic(probes), measured)


def _columns_are_better(total: Moments, inputs: int) -> bool:
    """Whether a linear head of standardised columns, which come last in the moments, beats one of rows of one length."""
    full, squares = total.gram, float(total.squares.sum())
    scores = []
    for first, one_unit in ((1, True), (1 + inputs, False)):
        take = arrays.like(np.r_[0, first : first + inputs], full)
        gram, cross = full[take][:, take], total.cross[take]
        scores.append(metrics.score(gram, cross, squares, total.weight, Units(0, one_unit)))
    return scores[1] < RULES.columns_by_lines * scores[0]


def _pilot(learning: "Learning", metric: tuple[Array, float], columns: tuple[Array, Array] | None) -> "Learning":
    """The next moments to ask for."""
    way = "rows" if columns is None else "columns"
    size = _pilot_size(learning.dim, way)
    blocks = [
        _block(metric, size, spread, learning.seed, f"pilot/{learning.passes}/{i}") for i, spread in enumerate(RULES.spreads[way])
    ]
    space = replace(learning.space, map=MetricMap.of(_plain(learning), blocks, columns))
    return replace(learning, space=space, weights=None)


def _pilot_size(dim: int, way: str) -> int:
    """Fourier features of every spread."""
    return max(dim // 2 // len(RULES.spreads[way]), 1)


def _learned(learning: "Learning", metric: tuple[Array, float], columns: tuple[Array, Array] | None) -> MetricMap:
    """What it has led to."""
    spread = learning.spread or RULES.spreads["rows" if columns is None else "columns"][0]
    pairs = int(learning.dim * RULES.pairs) if columns is not None and metric[0].shape[1] else 0
    blocks = [_block(metric, learning.dim - pairs, spread, learning.seed, "features/learned")]
    if pairs:
        spec = Pairs(pairs, RULES.paired, metrics.importance(*metric))
        nowhere = arrays.zeros((len(metric[0]), 0), metric[0])
        drawn = features.draw(spec, len(metric[0]), learning.seed, "features/pairs")
        blocks.append(Block(drawn, Metric(nowhere, arrays.like(np.ones(1), nowhere))))
    return MetricMap.of(_plain(learning), blocks, columns)


def _plain(learning: "Learning") -> DrawnMap:
    return features.draw(Concat([Bias(), Linear()]), learning.space.map.inputs, learning.seed, "features/plain")


def _block(metric: tuple[Array, float], dim: int, spread: float, seed: int, name: str) -> Block:
    axes, base = metric
    drawn = features.draw(Fourier(dim, math.sqrt(spread)), len(axes), seed, name)
    return Block(drawn, Metric(axes, arrays.like(np.array([base]), axes)))
