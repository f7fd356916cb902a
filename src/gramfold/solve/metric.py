"""From a fitted head to the metric of the next features: which directions of the inputs it depends on.

The average gradient outer product A = sum_i J_i J_i' of a head says how much it changes along each direction of its inputs.
Inputs times T = A^(1/2) are long where that matters. For a linear head J is W at every sample; for others the clients sum theirs.
"""

import math

import numpy as np

from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import CAUTION, Criterion
from gramfold.solve.units import PLAIN, Units, of_penalties

FLOOR_PER_FEATURE = 2.5e-6
"""What every direction has of the largest, in units of A and for every feature that is drawn: a direction may matter where the
head does not know it, and the more features there are, the more of them can be spent on finding out."""
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
    return (vectors * values.clip(0.0) ** 0.5) @ (vectors.T @ arrays.like(signs, full))


def isotropic(probes: Array) -> tuple[Array, float]:
    """The metric that prefers no direction, as `root` gives one."""
    return _of_unit_spread(arrays.zeros((len(probes), 0), probes), 1.0, probes)


def root(products: Array, features: int, probes: Array) -> tuple[Array, float]:
    """T = (A + floor)^(1/2) for so many drawn features, from A's lower triangle: axes and base of base I + axes axes'."""
    values, vectors = arrays.eigh(products)
    largest = float(values[-1])
    if not largest > 0:
        return isotropic(probes)
    values, floor = values.clip(0.0) / largest, FLOOR_PER_FEATURE * features
    above = values > 1e-6 * floor
    gains = (values[above] + floor) ** 0.5 - math.sqrt(floor)
    return _of_unit_spread(vectors[:, above] * gains**0.5, math.sqrt(floor), probes)


def _of_unit_spread(axes: Array, base: float, probes: Array) -> tuple[Array, float]:
    """The metric scaled so that x T varies with a total variance of d, as frequencies N(0, 1/d) expect."""
    spread = float(((base * probes + axes @ (axes.T @ probes)) ** 2).sum())
    factor = math.sqrt(len(probes) / spread) if spread > 0 else 1.0
    return axes * math.sqrt(factor), base * factor


def importance(axes: Array, base: float) -> tuple[float, ...]:
    """How long every column alone is in the metric, in units of the longest; three digits, and no column with none."""
    lengths = ((base * np.eye(len(axes)) + arrays.to_numpy(axes @ axes.T)) ** 2).sum(0) ** 0.5
    return tuple(np.round(lengths / lengths.max(), 3).clip(1e-3).tolist())


def score(gram: Array, cross: Array, target_squares: float, n: float, units: Units = PLAIN) -> float:
    """How far off features are by generalised cross-validation, at their best penalty, in these units."""
    each, mean_square = of_penalties(gram, n, units)
    criterion = Criterion(gram, [(cross, target_squares)], n, CAUTION)
    penalty = criterion.least(each, mean_square)
    return criterion.at(penalty if each is None else penalty * each)[0]


def best_block(gram: Array, cross: Array, target_squares: float, n: float, plain: int, sizes: list[int]) -> tuple[int, float]:
    """Which block of features, beside the plain ones that come first, predicts best, and its score."""
    full = arrays.copy(gram)
    arrays.mirror(full)
    scores, at = [], plain
    for size in sizes:
        take = arrays.like(np.concatenate([np.arange(plain), np.arange(at, at + size)]), full)
        scores.append(score(full[take][:, take], cross[take], target_squares, n))
        at += size
    return int(np.argmin(scores)), float(min(scores))
