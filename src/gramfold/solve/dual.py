"""Ridge from the rows themselves: an n x n system where there are fewer rows than columns."""

from gramfold import arrays
from gramfold.arrays import Array
from gramfold.solve.ridge import factorise


def ridge_from_rows(rows: Array, targets: Array, penalty: float) -> Array:
    """(rows'rows + penalty I)^-1 rows'targets, in the dual where that is the smaller system.

    (F'F + p I)^-1 F'Y = F'(F F' + p I)^-1 Y.
    """
    n, m = rows.shape
    if n < m:
        return rows.T @ factorise(arrays.outer_gram(rows), penalty).solve(targets)
    return factorise(arrays.gram(rows), penalty).solve(rows.T @ targets)
