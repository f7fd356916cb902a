"""Ridge with whole blocks of samples left out, exactly: what is said of a recording's windows by all other recordings.

    residuals of block B without it    (I - H_BB)^-1 r_B            H = F A^-1 F', r = y - H y

A block of one sample has its leverage on the diagonal: that is leave-one-out.
"""

from collections.abc import Sequence

import numpy as np

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.stacks import transposed
from gramfold.solve.free_ridge import FreeRidge

LEAST = 1e-9
"""What a block does not determine of itself, at least."""


def without_blocks(residuals: Array, hat: Array, blocks: Sequence[np.ndarray]) -> Array:
    """Residuals (clients x n x C) of each client's samples without those of their block; `hat` (clients x n x n); `blocks`: of
    each client's samples, before the zeros behind them."""
    found = np.array(arrays.to_numpy(residuals), dtype=float)
    given = np.asarray(arrays.to_numpy(hat))
    for k, of in enumerate(blocks):
        for block in np.unique(of):
            rows = np.flatnonzero(of == block)
            left = (1.0 + LEAST) * np.eye(len(rows)) - given[k][np.ix_(rows, rows)]
            found[k, rows] = np.linalg.solve(left, found[k, rows])
    return arrays.like(found, residuals)


def told_by_others(ridge: FreeRidge, targets: Array, gamma: float, blocks: Sequence[np.ndarray]) -> Array:
    """What each sample is told by samples of other blocks (clients x n x C), in a ridge with a free intercept."""
    solver, roots = ridge.solver(gamma), ridge.roots
    left = targets - transposed(ridge.shares) @ targets
    left = left if roots is None else left * roots
    if ridge.dual:
        n = ridge.rows.shape[-2]
        eye = arrays.like(np.broadcast_to(np.eye(n), (*ridge.rows.shape[:-2], n, n)).copy(), ridge.rows)
        hat = eye - (gamma * ridge.unit)[..., None, None] * solver.solve(eye)
    else:
        hat = ridge.rows @ solver.solve(transposed(ridge.rows))
    residuals = left - hat @ left
    ends = ridge.shares**0.5
    apart = without_blocks(residuals, hat + ends @ transposed(ends), blocks)
    return targets - (apart if roots is None else apart / (roots + (roots == 0)))
