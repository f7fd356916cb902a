"""Generalised cross-validation from moments alone: the penalty that predicts best, found where no sample is seen."""

import numpy as np

from gramfold.arrays import Array, to_numpy
from gramfold.solve.ridge import Spectrum


def gcv_scores(spectrum: Spectrum, cross: Array, target_squares: float, n: int, penalties: np.ndarray) -> np.ndarray:
    """n RSS / (n - df)^2 for each penalty, from the eigendecomposition of the gram.

    RSS = |Y|^2 - 2 sum c^2/(e+b) + sum c^2 e/(e+b)^2 with c = U'cross; df = sum e/(e+b).
    """
    values = to_numpy(spectrum.values)
    energy = to_numpy((spectrum.rotate(cross) ** 2).sum(1))
    scores = []
    for penalty in penalties:
        shrunk = values + penalty
        rss = target_squares - 2 * (energy / shrunk).sum() + (energy * values / shrunk**2).sum()
        freedom = max(n - (values / shrunk).sum(), 1e-9)
        scores.append(n * max(rss, 0.0) / freedom**2)
    return np.array(scores)


def penalty_grid(spectrum: Spectrum, n: int, size: int = 41) -> np.ndarray:
    """Penalties from negligible to overwhelming against the mean eigenvalue per sample."""
    unit = float(spectrum.values.sum()) / max(n, 1)  # the mean squared length of a feature vector
    return (unit if unit > 0 else 1.0) * np.logspace(-6, 3, size)


def choose_penalty(spectrum: Spectrum, cross: Array, target_squares: float, n: int) -> float:
    """The penalty of least GCV."""
    grid = penalty_grid(spectrum, n)
    return float(grid[np.argmin(gcv_scores(spectrum, cross, target_squares, n, grid))])
