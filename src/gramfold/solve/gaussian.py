"""Classes that are Gaussian and share a covariance: the linear discriminant, from folded moments alone.

    mu_c = M_c / n_c,  mu = sum_c M_c / n
    T    = (S - n mu mu') / (n - 1)                                    the covariance of all samples
    W    = (S - n mu mu' - sum_c n_c (mu_c - mu)(mu_c - mu)') / (n - C)     that within classes
    V    = (1 - s) (T or W) + s D,  D = mean variance x I, or the variances themselves where features share no unit
    a_c  = V^-1 (mu_c - mu),  b_c = log(n_c / n) - a_c'(mu_c + mu) / 2

a_c'x + b_c is the log-probability of class c, up to what all classes have in common.
"""

import numpy as np

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import factorise

CONSTANT = 1e-13
"""A variance below so much of the mean square is rounding: the feature is always the same."""


def discriminant(
    gram: Array, cross: Array, counts: np.ndarray, shrink: float, within: bool, one_unit: bool
) -> tuple[Array, np.ndarray]:
    """a (m x C) and b (C); b is minus infinity for a class that nobody has. `within`: whether V is W, else T."""
    n, have = float(counts.sum()), np.flatnonzero(counts > 0)
    sizes = arrays.like(np.asarray(counts[have], np.float64), cross)
    mean = cross.sum(1) / n
    around = cross[:, have] / sizes - mean[:, None]
    scatter = gram - n * mean[:, None] * mean[None, :]
    if within:
        scatter = scatter - (around * sizes) @ around.T
    covariance = scatter / max(n - (len(have) if within else 1), 1.0)
    variances = covariance.diagonal()
    varies = variances > CONSTANT * gram.diagonal() / n
    variances = variances * varies
    target = variances if not one_unit else varies * (variances.sum() / max(float(varies.sum()), 1.0))
    shrunk = (1 - shrink) * covariance * varies * varies[:, None]
    # a feature that is always the same says nothing: with any variance its weight is zero
    arrays.add_to_diagonal(shrunk, shrink * target + 1.0 * ~varies)
    solved = factorise(shrunk).solve(around * varies[:, None])
    weights = arrays.zeros(tuple(cross.shape), cross)
    weights[:, have] = solved
    offset = np.full(len(counts), -np.inf)
    half = arrays.to_numpy((solved * (around + 2 * mean[:, None])).sum(0)) / 2
    offset[have] = np.log(counts[have] / n) - half
    return weights, offset
