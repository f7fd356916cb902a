"""Ridge from the rows themselves: an n x n system where there are fewer rows than columns."""

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.leave_one_out import Kernel
from gramfold.solve.ridge import Cholesky, factorise


def ridge_from_rows(rows: Array, targets: Array, penalty: float) -> Array:
    """(rows'rows + penalty I)^-1 rows'targets, in the dual where that is the smaller system.

    (F'F + p I)^-1 F'Y = F'(F F' + p I)^-1 Y.
    """
    n, m = rows.shape
    if n < m:
        return rows.T @ factorise(arrays.outer_gram(rows), penalty).solve(targets)
    return factorise(arrays.gram(rows), penalty).solve(rows.T @ targets)


def mean_squared_length(rows: Array, roots: Array | None = None) -> float:
    """The natural unit of a penalty; one where all rows are zero. `roots`: as in `ridge_with_left_out`."""
    count = max(len(rows), 1) if roots is None else float((roots**2).sum())
    return float(arrays.row_squares(rows).sum()) / count or 1.0


def ridge_with_left_out(rows: Array, targets: Array, penalty: float, roots: Array | None = None) -> tuple[Array, Array]:
    """Ridge weights, and the leave-one-out fit: what ridge on the other rows predicts for each. One factorisation gives both.

    `roots`: the square roots of the rows' weights (n x 1), by which rows and targets have been multiplied already.
    """
    weights, fit = _with_left_out(rows, targets, penalty)
    return weights, fit if roots is None else fit / roots


def _with_left_out(rows: Array, targets: Array, penalty: float) -> tuple[Array, Array]:
    n, m = rows.shape
    if n < m:
        factor = factorise(arrays.outer_gram(rows), penalty)
        solved = factor.solve(targets)
        if not isinstance(factor, Cholesky):  # without a penalty the left-out fit is a limit
            return rows.T @ solved, targets - Kernel.of(rows).left_out_residuals(targets, penalty)
        # the left-out residual is a_i / [(K + p I)^-1]_ii, and that diagonal is the squared length of T^-1's columns
        return rows.T @ solved, targets - solved / factor.inverse_diagonal()[:, None]
    factor = factorise(arrays.gram(rows), penalty)
    weights = factor.solve(rows.T @ targets)
    leverage = (factor.solve_lower(rows.T) ** 2).sum(0)
    free = (1.0 - leverage).clip(1e-12)  # a row that nothing else speaks of is fitted exactly
    return weights, targets - (targets - rows @ weights) / free[:, None]
