"""From a fitted head to the metric of the next features: which directions of the inputs it depends on.

The average gradient outer product A = sum_i J_i J_i' of a head says how much it changes along each direction of its inputs. Inputs
times T = A^(1/2) are long where that matters. For a linear head J is W at every sample; for others the clients sum theirs.
"""

import math

import numpy as np

from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import choose_penalty, gcv_score

RANK = 256
"""The most directions that a metric keeps; more are no more accurate, and cost bytes and seconds."""
FLOOR = 1e-3
"""What every kept direction has at least of the largest, in units of A: a direction may matter where the head does not know it."""
PROBES = 32
"""Random vectors that stand for a covariance where only its traces are needed."""


def spread_probes(gram: Array, n: float, seed: int) -> Array:
    """d x PROBES numbers P with trace(T' C T) about |T' P|^2 for every T, C being the covariance of the inputs whose moments
    with a leading one are `gram`."""
    full = arrays.copy(gram)
    arrays.mirror(full)
    mean = full[1:, 0] / n
    covariance = full[1:, 1:] / n - mean[:, None] * mean[None, :]
    values, vectors = arrays.eigh(covariance)
    signs = seeds.generator(seed, "metric/spread").choice([-1.0, 1.0], (len(values), PROBES)) / math.sqrt(PROBES)
    return (vectors * values.clip(0.0) ** 0.5) @ arrays.like(signs, full)


def isotropic(probes: Array) -> Array:
    """The metric that prefers no direction."""
    metric = arrays.zeros((len(probes), len(probes)), probes)
    arrays.add_to_diagonal(metric, 1.0)
    return _of_unit_spread(metric, probes)


def root(products: Array, probes: Array) -> Array:
    """T = A^(1/2) in A's own axes, the largest RANK of them (d x rank), from A's lower triangle."""
    values, vectors = arrays.eigh(products)
    keep = min(RANK, len(values))
    values, vectors = values[-keep:].clip(0.0), vectors[:, -keep:]
    largest = float(values[-1])
    if not largest > 0:
        return isotropic(probes)
    return _of_unit_spread(vectors * (values / largest + FLOOR) ** 0.5, probes)


def _of_unit_spread(metric: Array, probes: Array) -> Array:
    """The metric scaled so that x T varies with a total variance of its number of columns, as frequencies N(0, 1/columns) expect."""
    spread = float(((metric.T @ probes) ** 2).sum())
    return metric * math.sqrt(metric.shape[1] / spread) if spread > 0 else metric


def best_block(gram: Array, cross: Array, target_squares: float, n: float, plain: int, sizes: list[int]) -> int:
    """Which block of features, beside the plain ones that come first, predicts best by generalised cross-validation."""
    full = arrays.copy(gram)
    arrays.mirror(full)
    scores, at = [], plain
    for size in sizes:
        take = arrays.like(np.concatenate([np.arange(plain), np.arange(at, at + size)]), full)
        part, right = full[take][:, take], cross[take]
        penalty = choose_penalty(part, right, target_squares, n)
        scores.append(gcv_score(part, right, target_squares, n, penalty)[0])
        at += size
    return int(np.argmin(scores))
