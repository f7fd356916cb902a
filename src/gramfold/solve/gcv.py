"""Generalised cross-validation from moments alone: the penalty that predicts best, found where no sample is seen."""

from collections.abc import Callable

import numpy as np

from gramfold import arrays
from gramfold.arrays import Array, to_numpy
from gramfold.solve.ridge import Factor, Spectrum, inverse_diagonal

GRID = np.logspace(-6, 3, 37)
"""Penalties that are tried, in units of the mean squared length of a feature vector: quarter decades."""


def gcv_scores(spectrum: Spectrum, cross: Array, target_squares: float, n: int, penalties: np.ndarray) -> np.ndarray:
    """n RSS / (n - df)^2 for each penalty, from one eigendecomposition of the gram.

    RSS = |Y|^2 - 2 sum c^2/(e+b) + sum c^2 e/(e+b)^2 with c = U'cross; df = sum e/(e+b).
    """
    values = to_numpy(spectrum.values)
    energy = to_numpy((spectrum.rotate(cross) ** 2).sum(1))
    scores = []
    for penalty in penalties:
        shrunk = values + penalty
        rss = target_squares - 2 * (energy / shrunk).sum() + (energy * values / shrunk**2).sum()
        scores.append(_gcv(rss, (values / shrunk).sum(), n))
    return np.array(scores)


def gcv_score(gram: Array, cross: Array, target_squares: float, n: int, penalty: float) -> float:
    """The same for one penalty, from a Cholesky factorisation; infinite where there is none.

    With (S + b I) W = M: RSS = |Y|^2 - <W, M> - b |W|^2 and df = m - b trace((S + b I)^-1).
    """
    shifted = arrays.copy(gram)
    arrays.add_to_diagonal(shifted, penalty)
    lower = arrays.cholesky(shifted)
    if lower is None:
        return np.inf
    factor = Factor(lower)
    weights = factor.solve(cross)
    rss = target_squares - float((weights * cross).sum()) - penalty * float((weights**2).sum())
    return _gcv(rss, len(gram) - penalty * float(inverse_diagonal(factor).sum()), n)


def _gcv(rss: float, freedom: float, n: int) -> float:
    return n * max(rss, 0.0) / max(n - freedom, 1e-9 * n) ** 2


def penalty_unit(gram: Array, n: int) -> float:
    """The mean squared length of a feature vector; one where all are zero."""
    return float(gram.diagonal().sum()) / max(n, 1) or 1.0


def choose_penalty(gram: Array, cross: Array, target_squares: float, n: int) -> float:
    """The penalty of least GCV on the grid, by descent: some eight factorisations, far cheaper than an eigendecomposition."""
    grid = GRID * penalty_unit(gram, n)
    best = descend(lambda i: gcv_score(gram, cross, target_squares, n, float(grid[i])), len(grid))
    return float(grid[best])


def descend(score: Callable[[int], float], size: int) -> int:
    """The index of a local minimum of a function on 0..size-1, starting in the middle, in steps of 4, 2 and 1."""
    known: dict[int, float] = {}

    def at(i: int) -> float:
        if i not in known:
            known[i] = score(i)
        return known[i]

    here = size // 2
    for step in (4, 2, 1):
        while True:
            near = [i for i in (here - step, here + step) if 0 <= i < size]
            better = min(near, key=at, default=here)
            if at(better) >= at(here):
                break
            here = better
    return here
