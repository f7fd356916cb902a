"""APFL's refinement: a client's own ridge on the residuals of the shared head, with its exact leave-one-out."""

from collections.abc import Iterator

import numpy as np

from gramfold.methods.parts.selection import Candidate
from gramfold.numerics.arrays import Array
from gramfold.solve.own import OwnRidge

GAMMAS = np.logspace(-2.5, 1, 8)
"""Penalties tried, in units of the refinement kernel's mean diagonal."""
LAMBDAS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def left_out_blends(
    own: OwnRidge, residuals: Array, base: Array, gamma: float | None = None, lam: float | None = None
) -> Iterator[Candidate]:
    """base + lam * (left-out ridge prediction of the residuals), for every candidate gamma and lam."""
    for penalty in map(float, GAMMAS * own.kernel.mean_diagonal) if gamma is None else [gamma]:
        fit = own.left_out(residuals, penalty)
        for weight in LAMBDAS if lam is None else [lam]:
            yield {"refinement_penalty": penalty, "lam": weight}, base + weight * fit
