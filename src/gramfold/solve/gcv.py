"""Generalised cross-validation from moments alone: chooses the penalty that predicts best without seeing a sample."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import Cholesky, Penalty

CAUTION = 1.4
"""How many times a degree of freedom counts in tables. Once is right where noise is the same everywhere; where a few samples are
noisier or lie far out, they are fitted too closely, and the fit goes astray around them. The remedy, and the number, are those of
smoothing splines (Kim and Gu, 2004)."""
GRID = np.logspace(-6, 3, 37)
"""Penalties that are tried, in units of the mean squared length of a feature vector: quarter decades."""
MAX_FREEDOM = 0.5
"""The maximum degrees of freedom per sample."""


class Criterion:
    """n RSS / (n - df)^2 of ridges of one gram, for one or several sets of targets of the same samples: whatever penalty any of
    them asks for is factorised once.

    `sides`: each set's cross-moment and its sum of squares. `caution`: how many times a degree of freedom counts.

    With (S + P) W = M: RSS = |Y|^2 - <W, M> - <W, P W> and df = m - trace(P (S + P)^-1).
    """

    def __init__(self, gram: Array, sides: Sequence[tuple[Array, float]], n: float, caution: float = 1.0) -> None:
        self.gram, self.sides, self.n, self.caution = gram, sides, n, caution
        self._known: dict[Any, tuple[float, list[float]]] = {}

    def at(self, penalty: Penalty, side: int = 0) -> tuple[float, float]:
        """The criterion, and df / n; infinite where there is no factorisation."""
        alone = isinstance(penalty, int | float)
        key = float(penalty) if alone else arrays.to_numpy(penalty).tobytes()
        if key not in self._known:
            self._known[key] = self._fits(penalty, penalty if alone else penalty[:, 0])
        freedom, rss = self._known[key]
        if not rss:
            return np.inf, np.inf
        n = self.n
        return n * max(rss[side], 0.0) / max(n - self.caution * freedom, 1e-9 * n) ** 2, freedom / max(n, 1)

    def _fits(self, penalty: Penalty, shift: Array | float) -> tuple[float, list[float]]:
        """df, and the RSS of each side; of none where there is no factorisation."""
        lower = arrays.cholesky(self.gram, shift)
        if lower is None:
            return np.inf, []
        factor, rss = Cholesky(lower), []
        for cross, squares in self.sides:
            weights = factor.solve(cross)
            rss.append(squares - float((weights * cross).sum()) - float((penalty * weights**2).sum()))
        return len(self.gram) - float((penalty * factor.inverse_diagonal()[:, None]).sum()), rss

    def least(self, units: Array | None = None, mean_square: float | None = None, side: int = 0) -> float:
        """The penalty at which it is least on the grid, by descent: some eight factorisations, far cheaper than an
        eigendecomposition.

        `units` (m x 1): each feature's penalty's; None: one. `mean_square`: that of a feature vector in these, the grid's unit.
        Fits with more than MAX_FREEDOM degrees of freedom per sample are passed over: near interpolation GCV is 0/0.
        """
        grid = GRID * (mean_squared_row(self.gram, self.n) if mean_square is None else mean_square)

        def score(i: int) -> float:
            gcv, freedom = self.at(float(grid[i]) if units is None else float(grid[i]) * units, side)
            return gcv if freedom <= MAX_FREEDOM else 1e300 * (1.0 - i / len(grid))  # descend towards larger penalties

        return float(grid[descend(score, len(grid))])


def mean_squared_row(gram: Array, n: float) -> float:
    """The mean squared length of a feature vector; one where all are zero."""
    return float(gram.diagonal().sum()) / max(n, 1) or 1.0


def choose_penalty(gram: Array, cross: Array, target_squares: float, n: float) -> float:
    """The penalty of least GCV, one for all features."""
    return Criterion(gram, [(cross, target_squares)], n).least()


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
