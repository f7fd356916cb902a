"""Exact leave-one-out in closed form: what a ridge would have predicted for each sample, had it not seen it."""

from dataclasses import dataclass

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import require_products
from gramfold.solve.ridge import Factor

LIMIT = 1e-12
"""A penalty that stands for none, in units of the rows' mean squared length."""


def leverages(factor: Factor, rows: Array) -> Array:
    """h_i = f_i'A^-1 f_i for every row."""
    return (factor.solve_lower(rows.T) ** 2).sum(0)


def mean_leverage(factor: Factor, penalty: float, n: float) -> float:
    """The mean of h_i over the n rows that A = gram + penalty I was made of: df / n, with df = m - penalty trace(A^-1)."""
    return (factor.size - penalty * float(factor.inverse_diagonal().sum())) / max(n, 1)


def left_out_residuals(residuals: Array, leverage: Array) -> Array:
    """PRESS residuals: (y_i - f_i W) / (1 - h_i)."""
    return residuals / (1.0 - leverage)[:, None]


@dataclass(frozen=True)
class Kernel:
    """K = rows rows' by its eigendecomposition K = U diag(e) U', so that every penalty costs only products.

    U has min(n, m) columns; on the complement K is zero. Where samples have weights, `roots` are the square roots of these
    (n x 1), by which the rows have been multiplied already. What is left out is then a sample with all its weight.
    """

    values: Array
    vectors: Array
    roots: Array | None = None

    @classmethod
    def of(cls, rows: Array, roots: Array | None = None) -> "Kernel":
        require_products(features=rows)
        n, m = rows.shape
        if n <= m:
            values, vectors = arrays.eigh(arrays.outer_gram(rows))
            return cls(values * (values > 0), vectors, roots)
        values, right = arrays.eigh(arrays.gram(rows))
        real = values > 1e-13 * abs(values).max()
        return cls(values[real], (rows @ right[:, real]) / values[real] ** 0.5, roots)

    @property
    def mean_diagonal(self) -> float:
        """The mean squared length of a row: the natural unit of a penalty. One where K is zero."""
        count = max(self.vectors.shape[0], 1) if self.roots is None else float((self.roots**2).sum())
        return float(self.values.sum()) / count or 1.0

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
        penalty = max(penalty, LIMIT * self.mean_diagonal)  # without any, the left-out fit is a limit
        weights = 1.0 / (self.values + penalty)
        on_zero = 1.0 / penalty
        solved = self.apply(weights, on_zero, targets if self.roots is None else self.roots * targets)
        left_out = solved / self.diagonal(weights, on_zero)[:, None]
        return left_out if self.roots is None else left_out / self.roots
