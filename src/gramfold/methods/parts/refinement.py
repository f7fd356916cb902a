"""APFL's refinement: a client's own ridge on what the shared head leaves over, with its exact leave-one-out."""

from collections.abc import Iterator

import numpy as np

from gramfold.methods.parts.selection import Candidate
from gramfold.numerics.arrays import Array
from gramfold.solve.leave_one_out import Kernel

GAMMAS = np.logspace(-2.5, 1, 8)
"""Penalties tried, in units of the refinement kernel's mean diagonal."""
LAMBDAS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def left_out_blends(
    kernel: Kernel, residuals: Array, base: Array, gamma: float | None = None, lam: float | None = None
) -> Iterator[Candidate]:
    """base + lam * (what ridge on the other samples' residuals says of each), for every gamma and lam to be tried."""
    for penalty in map(float, GAMMAS * kernel.mean_diagonal) if gamma is None else [gamma]:
        fit = residuals - kernel.left_out_residuals(residuals, penalty)
        for weight in LAMBDAS if lam is None else [lam]:
            yield {"gamma": penalty, "lam": weight}, base + weight * fit
