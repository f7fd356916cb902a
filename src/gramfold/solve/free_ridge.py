"""Ridge with a free intercept, from the rows themselves: its exact leave-one-out, for several penalties and many targets.

With f~ = s (f - mean f) of rows with weights w = s^2, K = f~ f~' and y~ = s (y - mean y), means weighted:

    residuals  r~ = p (K + p I)^-1 y~        what a sample determines of itself  h_i = w_i / sum w + 1 - p [(K + p I)^-1]_ii
    left out   y_i - r~_i / (s_i (1 - h_i))

since an intercept that is not penalised is one more column, and a left-out residual is a residual over 1 - h for any of them.
"""

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import require_products
from gramfold.solve.leave_one_out import leverages
from gramfold.solve.ridge import Factor, factorise

LEAST = 1e-9
"""What a sample does not determine of itself, at least."""


class FreeRidge:
    """Of rows (n x m, n > 1), with the roots of their weights (n x 1; None: one each). One gram for all, a factor for each
    penalty, in the dual where that is smaller. Penalties are in units of the centred rows' mean squared length.

    A solution is its `coordinates`, in which everything is linear: one more row than the system, the last being the intercept.
    """

    def __init__(self, rows: Array, roots: Array | None = None) -> None:
        require_products(features=rows)
        self.roots = arrays.zeros((len(rows), 1), rows) + 1.0 if roots is None else roots
        self.shares = self.roots**2 / float((self.roots**2).sum())
        self.centre = (self.shares * rows).sum(0)
        self.rows = (rows - self.centre) * self.roots
        self.dual = rows.shape[0] < rows.shape[1]
        self.gram = arrays.outer_gram(self.rows) if self.dual else arrays.gram(self.rows)
        self.unit = float(arrays.row_squares(self.rows).sum()) / float((self.roots**2).sum()) or 1.0
        self._known: dict[float, tuple[Factor, Array]] = {}

    def fit(self, targets: Array, gamma: float) -> tuple[Array, Array]:
        """What each sample is told by the others (n x C), and the coordinates of the solution of all."""
        penalty = gamma * self.unit
        factor, free = self._at(gamma, penalty)
        mean = (self.shares * targets).sum(0)
        left = (targets - mean) * self.roots
        if self.dual:
            solved = factor.solve(left)
            residuals = penalty * solved
        else:
            solved = factor.solve(self.rows.T @ left)
            residuals = left - self.rows @ solved
        return targets - residuals / (free * self.roots), arrays.concatenate([solved, mean[None]])

    def solution(self, coordinates: Array) -> tuple[Array, Array]:
        """Weights (m x C) and intercept (C)."""
        weights = self.rows.T @ coordinates[:-1] if self.dual else coordinates[:-1]
        return weights, coordinates[-1] - self.centre @ weights

    def _at(self, gamma: float, penalty: float) -> tuple[Factor, Array]:
        """The factor of a penalty, and 1 - h (n x 1)."""
        if gamma not in self._known:
            factor = factorise(self.gram, penalty)
            free = penalty * factor.inverse_diagonal() if self.dual else 1.0 - leverages(factor, self.rows)
            self._known[gamma] = factor, (free[:, None] - self.shares).clip(LEAST)
        return self._known[gamma]
