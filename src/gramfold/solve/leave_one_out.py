"""Exact leave-one-out in closed form: what a ridge would have predicted for each sample, had it not seen it."""

from dataclasses import dataclass

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import Factor


def leverages(factor: Factor, rows: Array) -> Array:
    """h_i = f_i'A^-1 f_i for every row."""
    return (factor.solve_lower(rows.T) ** 2).sum(0)


def mean_leverage(factor: Factor, penalty: float, n: int) -> float:
    """The mean of h_i over the n rows that A = gram + penalty I was made of: df / n, with df = m - penalty trace(A^-1)."""
    return (factor.size - penalty * float(factor.inverse_diagonal().sum())) / max(n, 1)


def left_out_residuals(residuals: Array, leverage: Array) -> Array:
    """PRESS residuals: (y_i - f_i W) / (1 - h_i)."""
    return residuals / (1.0 - leverage)[:, None]


@dataclass(frozen=True)
class Kernel:
    """K = rows rows' by its eigendecomposition K = U diag(e) U', so that every penalty costs only products.

    U has min(n, m) columns; on the complement K is zero.
    """

    values: Array
    vectors: Array

    @classmethod
    def of(cls, rows: Array) -> "Kernel":
        n, m = rows.shape
        if n <= m:
            values, vectors = arrays.eigh(arrays.outer_gram(rows))
            return cls(values * (values > 0), vectors)
        values, right = arrays.eigh(arrays.gram(rows))
        real = values > 1e-13 * abs(values).max()
        return cls(values[real], (rows @ right[:, real]) / values[real] ** 0.5)

    @property
    def mean_diagonal(self) -> float:
        """The mean of K's diagonal: the natural unit of a penalty. One where K is zero."""
        return float(self.values.sum()) / max(self.vectors.shape[0], 1) or 1.0

    def apply(self, weights: Array, on_zero: float, targets: Array) -> Array:
        """f(K) targets, where `weights` is f at the eigenvalues and `on_zero` is f(0)."""
        rotated = self.vectors.T @ targets
        if self.vectors.shape[0] == self.vectors.shape[1]:
            return self.vectors @ (weights[:, None] * rotated)
        return self.vectors @ ((weights - on_zero)[:, None] * rotated) + on_zero * targets

    def diagonal(self, weights: Array, on_zero: float) -> Array:
        """The diagonal of f(K)."""
        if self.vectors.shape[0] == self.vectors.shape[1]:
            return self.vectors**2 @ weights
        return self.vectors**2 @ (weights - on_zero) + on_zero

    def left_out_residuals(self, targets: Array, penalty: float) -> Array:
        """y_i minus what ridge with this penalty, fitted on the other rows, predicts for i.

        With a = (K + p I)^-1 Y this is a_i / [(K + p I)^-1]_ii.
        """
        penalty = max(penalty, 1e-12 * self.mean_diagonal)  # without any, the left-out fit is a limit
        weights = 1.0 / (self.values + penalty)
        return self.apply(weights, 1.0 / penalty, targets) / self.diagonal(weights, 1.0 / penalty)[:, None]
