"""Ridge from the rows themselves: an n x n system where there are fewer rows than columns."""

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.leave_one_out import LIMIT, Kernel, left_out_residuals, leverages
from gramfold.solve.ridge import Cholesky, factorise


def _dual(rows: Array, free: Array | None) -> tuple[Array, float]:
    """The rows' outer gram. That of centred rows is singular along the free direction, where their targets are zero too: there it
    is given its mean diagonal, which is returned."""
    gram = arrays.outer_gram(rows)
    if free is None:
        return gram, 0.0
    unit = float(gram.diagonal().mean()) or 1.0
    gram += unit * free @ free.T
    return gram, unit


def ridge_from_rows(rows: Array, targets: Array, penalty: float, free: Array | None = None) -> Array:
    """(rows'rows + penalty I)^-1 rows'targets, in the dual where that is the smaller system. `free`: see `ridge_with_left_out`.

    (F'F + p I)^-1 F'Y = F'(F F' + p I)^-1 Y.
    """
    n, m = rows.shape
    if n < m:
        return rows.T @ factorise(_dual(rows, free)[0], penalty).solve(targets)
    return factorise(arrays.gram(rows), penalty).solve(rows.T @ targets)


def mean_squared_length(rows: Array, roots: Array | None = None) -> float:
    """The natural unit of a penalty; one where all rows are zero. `roots`: as in `ridge_with_left_out`."""
    count = max(len(rows), 1) if roots is None else float((roots**2).sum())
    return float(arrays.row_squares(rows).sum()) / count or 1.0


def ridge_with_left_out(
    rows: Array, targets: Array, penalty: float, roots: Array | None = None, free: Array | None = None
) -> tuple[Array, Array]:
    """Ridge weights, and the leave-one-out fit: what ridge on the other rows predicts for each. One factorisation gives both.

    `roots`: the square roots of the rows' weights (n x 1), by which rows and targets have been multiplied already. `free`: that
    of centred rows and targets whose intercept is free (see `Kernel`).
    """
    n, m = rows.shape
    gram, unit = _dual(rows, free) if n < m else (arrays.gram(rows), 0.0)
    factor = factorise(gram, penalty)
    solved = factor.solve(targets if n < m else rows.T @ targets)
    weights = rows.T @ solved if n < m else solved
    if not isinstance(factor, Cholesky) or penalty < LIMIT * mean_squared_length(rows, roots):  # the left-out fit is a limit
        residuals = Kernel.of(rows, free=free).left_out_residuals(targets, penalty)
    elif n < m:
        # a_i / [(K + p I)^-1]_ii, and that diagonal is the squared length of T^-1's columns
        own = 0.0 if free is None else free[:, 0] ** 2 / (unit + penalty)
        residuals = solved / (factor.inverse_diagonal() - own).clip(min=LIMIT / penalty)[:, None]
    else:
        own = leverages(factor, rows) + (0.0 if free is None else free[:, 0] ** 2)
        residuals = left_out_residuals(targets - rows @ weights, own.clip(max=1.0 - LIMIT))
    fit = targets - residuals
    return weights, fit if roots is None else fit / roots
