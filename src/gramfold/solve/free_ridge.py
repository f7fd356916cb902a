"""Ridge with a free intercept, from the rows themselves: its exact leave-one-out, for several penalties and many targets.

With f~ = s (f - mean f) of rows with weights w = s^2, K = f~ f~' and y~ = s (y - mean y), means weighted:

    residuals  r~ = p (K + p I)^-1 y~        what a sample determines of itself  h_i = w_i / sum w + 1 - p [(K + p I)^-1]_ii
    left out   y_i - r~_i / (s_i (1 - h_i))

since an intercept that is not penalised is one more column, and a left-out residual is a residual over 1 - h for any of them.
A row without any weight changes nothing: so clients of different sizes are one stack, zeros behind.
"""

from gramfold.numerics import arrays, stacks
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import require_products
from gramfold.numerics.stacks import Solver, transposed

LEAST = 1e-9
"""What a sample does not determine of itself, at least."""


class FreeRidge:
    """Of rows (n x m, n > 1), with the roots of their weights (n x 1; None: one each); or of a stack of such. One gram for all, a
    factor for each penalty, in the dual where that is smaller. Penalties are in units of the centred rows' mean squared length.

    A solution is its `coordinates`, in which everything is linear: one more row than the system, the last being the intercept.
    """

    def __init__(self, rows: Array, roots: Array | None = None) -> None:
        require_products(features=rows)
        self.roots = roots
        once = arrays.zeros((*rows.shape[:-1], 1), rows) + 1.0 if roots is None else roots**2
        weight = once.sum(-2)
        self.shares = once / weight[..., None]
        self.centre = transposed(self.shares) @ rows
        self.rows = rows - self.centre
        if roots is not None:
            self.rows *= roots
        self.dual = rows.shape[-2] < rows.shape[-1]
        self.gram = stacks.outer_gram(self.rows) if self.dual else stacks.gram(self.rows)
        unit = stacks.row_squares(self.rows).sum(-1) / weight[..., 0]
        self.unit = unit + (unit == 0)
        self._known: dict[float, tuple[Solver, Array]] = {}

    def fit(self, targets: Array, gamma: float) -> tuple[Array, Array]:
        """What each sample is told by the others (n x C), and the coordinates of the solution of all."""
        solver, free = self._at(gamma)
        mean = transposed(self.shares) @ targets
        left = targets - mean
        if self.roots is not None:
            left *= self.roots
        if self.dual:
            solved = solver.solve(left)
            residuals = (gamma * self.unit)[..., None, None] * solved
        else:
            solved = solver.solve(transposed(self.rows) @ left)
            residuals = left - self.rows @ solved
        return targets - residuals / free, arrays.concatenate([solved, mean], axis=-2)

    def solver(self, gamma: float) -> Solver:
        """Of the systems with that penalty."""
        return self._at(gamma)[0]

    def solution(self, coordinates: Array) -> tuple[Array, Array]:
        """Weights (m x C) and intercept (C)."""
        numbers = coordinates[..., :-1, :]
        weights = transposed(self.rows) @ numbers if self.dual else numbers
        return weights, coordinates[..., -1, :] - (self.centre @ weights)[..., 0, :]

    def _at(self, gamma: float) -> tuple[Solver, Array]:
        """The systems of a penalty, and 1 - h times the roots (n x 1)."""
        if gamma not in self._known:
            penalty = gamma * self.unit
            solver = Solver.of(self.gram, penalty)
            if self.dual:
                free = penalty[..., None] * solver.inverse_diagonal()
            else:
                free = 1.0 - stacks.column_squares(solver.solve_lower(transposed(self.rows)))
            free = (free[..., None] - self.shares).clip(LEAST)
            if self.roots is not None:
                free *= self.roots + (self.roots == 0)
            self._known[gamma] = solver, free
        return self._known[gamma]
