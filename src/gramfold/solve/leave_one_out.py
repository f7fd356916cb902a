"""Exact leave-one-out in closed form: what a ridge would have predicted for each sample, had it not seen it."""

from dataclasses import dataclass

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import require_products
from gramfold.solve.ridge import Factor, Penalty

ZERO = 1e-13
"""An eigenvalue below so much of the largest is none."""
LIMIT = 1e-12
"""A penalty that stands for none, in units of the rows' mean squared length."""


def leverages(factor: Factor, rows: Array) -> Array:
    """h_i = f_i'A^-1 f_i for every row."""
    return (factor.solve_lower(rows.T) ** 2).sum(0)


def mean_leverage(factor: Factor, penalty: Penalty, n: float) -> float:
    """The mean of h_i over the n rows that A = gram + P was made of: df / n, with df = m - trace(P A^-1)."""
    return (factor.size - float((penalty * factor.inverse_diagonal()[:, None]).sum())) / max(n, 1)


def left_out_residuals(residuals: Array, leverage: Array) -> Array:
    """PRESS residuals: (y_i - f_i W) / (1 - h_i). A sample that nobody else says anything of has h = 1."""
    return residuals / (1.0 - leverage).clip(LIMIT)[..., None]


@dataclass(frozen=True)
class Kernel:
    """K = rows rows' by its eigendecomposition K = U diag(e) U', so that every penalty costs only products.

    U has min(n, m) columns; on the complement K is zero. Where samples have weights, `roots` are the square roots of these
    (n x 1), by which the rows have been multiplied already. What is left out is then a sample with all its weight.
    `free`: a unit vector (n x 1) that K is zero on, and along which targets are fitted without any penalty: the intercept of
    centred rows.
    """

    values: Array
    vectors: Array
    roots: Array | None = None
    free: Array | None = None

    @classmethod
    def of(cls, rows: Array, roots: Array | None = None, free: Array | None = None) -> "Kernel":
        require_products(features=rows)
        n, m = rows.shape
        if n <= m:
            values, vectors = arrays.eigh(arrays.outer_gram(rows))
            return cls(values * (values > (0.0 if free is None else ZERO * abs(values).max())), vectors, roots, free)
        values, right = arrays.eigh(arrays.gram(rows))
        real = values > ZERO * abs(values).max()
        return cls(values[real], (rows @ right[:, real]) / values[real] ** 0.5, roots, free)

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

        With a = (K + p I)^-1 Y this is a_i / [(K + p I)^-1]_ii. With a free direction u, (K + p I)^-1 - u u' / p stands for that
        inverse; of a single sample nothing is left, and so nothing predicted.
        """
        penalty = max(penalty, LIMIT * self.mean_diagonal)  # without any, the left-out fit is a limit
        weights = 1.0 / (self.values + penalty)
        on_zero = 1.0 / penalty
        if self.free is not None and len(targets) == 1:
            return targets
        weighted = targets if self.roots is None else self.roots * targets
        diagonal = self.diagonal(weights, on_zero)[:, None]
        if self.free is not None:
            weighted = weighted - self.free * (self.free.T @ weighted)
            diagonal = (diagonal - self.free**2 * on_zero).clip(min=LIMIT * on_zero)
        left_out = self.apply(weights, on_zero, weighted) / diagonal
        return left_out if self.roots is None else left_out / self.roots
