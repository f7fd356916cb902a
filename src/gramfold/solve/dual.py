"""Ridge from the rows themselves: an n x n system where there are fewer rows than columns."""

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import factorise


def ridge_from_rows(rows: Array, targets: Array, penalty: float) -> Array:
    """(rows'rows + penalty I)^-1 rows'targets, in the dual where that is the smaller system.

    (F'F + p I)^-1 F'Y = F'(F F' + p I)^-1 Y.
    """
    n, m = rows.shape
    if n < m:
        return rows.T @ factorise(arrays.outer_gram(rows), penalty).solve(targets)
    return factorise(arrays.gram(rows), penalty).solve(rows.T @ targets)


def ridge_with_left_out(rows: Array, targets: Array, unit_penalty: float, roots: Array | None = None) -> tuple[Array, Array]:
    """Ridge weights, and what ridge on the others says of each row; the penalty is in units of the rows' mean squared length.

    `roots`: the square roots of the rows' weights (n x 1), by which rows and targets have been multiplied already.
    """
    weights, fit = _with_left_out(rows, targets, unit_penalty, float((roots**2).sum()) if roots is not None else len(rows))
    return weights, fit if roots is None else fit / roots


def _with_left_out(rows: Array, targets: Array, unit_penalty: float, count: float) -> tuple[Array, Array]:
    n, m = rows.shape
    if n < m:
        kernel = arrays.outer_gram(rows)
        factor = factorise(kernel, unit_penalty * (float(kernel.diagonal().sum()) / count or 1.0))
        solved = factor.solve(targets)
        # the left-out residual is a_i / [(K + p I)^-1]_ii, and that diagonal is the squared length of T^-1's columns
        return rows.T @ solved, targets - solved / factor.inverse_diagonal()[:, None]
    gram = arrays.gram(rows)
    factor = factorise(gram, unit_penalty * (float(gram.diagonal().sum()) / count or 1.0))
    weights = factor.solve(rows.T @ targets)
    leverage = (factor.solve_lower(rows.T) ** 2).sum(0)
    return weights, targets - (targets - rows @ weights) / (1.0 - leverage)[:, None]
