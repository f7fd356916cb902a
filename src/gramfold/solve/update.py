"""A solved system that weighted rows are added to or taken from, without solving it anew (Woodbury)."""

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import Cholesky, Factor, factorise


def update_solution(factor: Factor, solution: Array, rows: Array, targets: Array, weight: float) -> Array:
    """The ridge solution after n rows join with a weight; a negative weight takes them out.

    With A = T T', W = A^-1 M and weight a this is (A + a F'F)^-1 (M + a F'Y) = W + A^-1 F'(I/a + F A^-1 F')^-1 (Y - F W):
    an n x n system. For more rows than columns the m x m system is the smaller one and is solved instead.
    """
    if weight == 0.0:
        return solution
    n, m = rows.shape
    if n >= m and isinstance(factor, Cholesky):
        gram = arrays.gram(rows)
        arrays.mirror(gram)
        return update_solution_by_moments(factor, solution, gram, rows.T @ targets, weight)
    residual = targets - rows @ solution
    half = factor.solve_lower(rows.T)
    inner = arrays.gram(half)
    sign = 1.0 if weight > 0 else -1.0
    inner *= sign  # taking rows out: (I/|a| - F A^-1 F')^-1 is positive definite as long as they really are part of A
    arrays.add_to_diagonal(inner, 1.0 / abs(weight))
    correction = factorise(inner).solve(residual)
    return solution + sign * factor.solve_transposed(half @ correction)


def update_solution_by_moments(factor: Factor, solution: Array, gram: Array, cross: Array, weight: float) -> Array:
    """The same from the joining rows' moments G = F'F and B = F'Y: an m x m system.

    (A + a G)^-1 (M + a B) = W + (A + a G)^-1 a (B - G W).
    """
    if not isinstance(factor, Cholesky):
        rows, solve = arrays.gram_rows(gram)
        return update_solution(factor, solution, rows, solve @ cross, weight)
    system = arrays.outer_gram(factor.lower)
    system += weight * gram
    return solution + factorise(system).solve(weight * (cross - gram @ solution))
