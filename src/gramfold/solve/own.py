"""A client's own ridge, in its own units: features centred and scaled by its own means, so that the intercept is free."""

import functools

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import require_products
from gramfold.solve.dual import ridge_from_rows, ridge_with_left_out
from gramfold.solve.leave_one_out import Kernel
from gramfold.solve.units import PLAIN, Units, of_features


class OwnRidge:
    """Of samples' features (n x m), ready for any targets and penalty. `roots`: the square roots of their weights (n x 1).
    Targets and fits are those of samples, without weights."""

    def __init__(self, rows: Array, roots: Array | None = None, units: Units = PLAIN) -> None:
        require_products(features=rows)
        self.roots, self.intercept = roots, units.intercept
        self.free: Array | None = None
        if (intercept := units.intercept) is None:
            self.rows = rows if roots is None else rows * roots
            return
        rows = arrays.concatenate([rows[:, :intercept], rows[:, intercept + 1 :]], axis=1)
        once = roots if roots is not None else arrays.zeros((len(rows), 1), rows) + 1.0
        share = once**2 / (once**2).sum()
        self.mean = (share * rows).sum(0)
        centred = rows - self.mean
        each, variance = of_features((share * centred**2).sum(0), (share * rows**2).sum(0), bool(units.shared))
        self.scale = (variance > 0) / each**0.5
        self.free = share**0.5
        self.rows = centred * self.scale * once

    @functools.cached_property
    def kernel(self) -> Kernel:
        return Kernel.of(self.rows, self.roots, self.free)

    def left_out(self, targets: Array, penalty: float) -> Array:
        """What the ridge of the other samples predicts for each."""
        return targets - self.kernel.left_out_residuals(targets, penalty)

    def solve(self, targets: Array, penalty: float) -> Array:
        """The weights of the features (m x outputs)."""
        centred, mean = self._centred(targets)
        return self._weights(ridge_from_rows(self.rows, centred, penalty, self.free), mean)

    def solve_with_left_out(self, targets: Array, penalty: float) -> tuple[Array, Array]:
        """Both, for the price of one."""
        centred, mean = self._centred(targets)
        weights, fit = ridge_with_left_out(self.rows, centred, penalty, self.roots, self.free)
        alone = self.free is not None and len(targets) == 1  # then nothing is left to predict by
        return self._weights(weights, mean), fit * 0.0 if alone else fit + mean

    def _centred(self, targets: Array) -> tuple[Array, Array | float]:
        """Targets less their mean, times the roots of the weights."""
        mean = 0.0 if self.free is None else (self.free**2 * targets).sum(0)
        return (targets - mean) if self.roots is None else (targets - mean) * self.roots, mean

    def _weights(self, solved: Array, mean: Array | float) -> Array:
        if self.intercept is None:
            return solved
        weights, at = solved * self.scale[:, None], self.intercept
        return arrays.concatenate([weights[:at], (mean - self.mean @ weights)[None], weights[at:]])
