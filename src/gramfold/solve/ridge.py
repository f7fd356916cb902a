"""Ridge systems (G + P) X = B: factorise once, solve for many right-hand sides, or for many penalties.

P is diagonal: a penalty is one number for all features, or a column (m x 1) of one for each, zero for an intercept.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold.errors import IllConditionedWarning
from gramfold.numerics import arrays, stacks
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import SMALLEST
from gramfold.wire.record import Record

MAX_CONDITION = 1e14
"""Beyond this a Cholesky solution has no correct digit in float64."""
Penalty = Any
"""A float, or an array of m x 1."""


@dataclass(frozen=True)
class Factor(Record, ABC):
    """A symmetric positive definite A = T T', ready to solve."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def solve_lower(self, right: Array) -> Array:
        """T^-1 right, so that right'A^-1 right is a plain inner product."""

    def solve_rows(self, rows: Array) -> Array:
        """rows T'^-1: the same for rows (n x m)."""
        return self.solve_lower(rows.T).T

    def solve_rows_transposed(self, rows: Array) -> Array:
        """rows T^-1."""
        return self.solve_transposed(rows.T).T

    @abstractmethod
    def solve_transposed(self, right: Array) -> Array:
        """T'^-1 right: the second half of a solve."""

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """The diagonal of A^-1 = T'^-1 T^-1: the squared lengths of T^-1's columns."""

    def solve(self, right: Array) -> Array:
        """A^-1 right."""
        return self.solve_transposed(self.solve_lower(right))


@dataclass(frozen=True)
class Cholesky(Factor, kind="cholesky", triangular="lower"):
    """T is lower triangular."""

    lower: Array

    @property
    def size(self) -> int:
        return len(self.lower)

    def solve_lower(self, right: Array) -> Array:
        return arrays.solve_lower(self.lower, right)

    def solve_transposed(self, right: Array) -> Array:
        return arrays.solve_lower(self.lower, right, transposed=True)

    def solve_rows(self, rows: Array) -> Array:
        return arrays.solve_rows(self.lower, rows)

    def solve_rows_transposed(self, rows: Array) -> Array:
        return arrays.solve_rows(self.lower, rows, transposed=True)

    def inverse_diagonal(self) -> Array:
        return stacks.inverse_diagonal(self.lower)


@dataclass(frozen=True)
class LeastNorm(Factor, kind="least-norm"):
    """Where A is singular: T^-1 itself, with zeros for the directions that carry no information."""

    inverse_root: Array

    @property
    def size(self) -> int:
        return len(self.inverse_root)

    def solve_lower(self, right: Array) -> Array:
        return self.inverse_root @ right

    def solve_transposed(self, right: Array) -> Array:
        return self.inverse_root.T @ right

    def inverse_diagonal(self) -> Array:
        return (self.inverse_root**2).sum(0)


def factorise(gram: Array, penalty: Penalty = 0.0) -> Factor:
    """Factorise gram + P, reading the lower triangle only.

    Cholesky; where that fails or the result would be noise, an eigendecomposition whose eigenvalues are raised to a floor,
    with a warning that says so. Where every feature has a penalty of its own, neither depends on the units of the features.
    """
    units: Array | float = 1.0
    shift: Array | float = penalty
    if not isinstance(penalty, int | float):
        shift = penalty[:, 0]
        diagonal = gram.diagonal() + shift
        units = (diagonal + (diagonal < SMALLEST**2)) ** 0.5
    lower = arrays.cholesky(gram, shift)
    condition = np.inf
    if lower is not None:
        condition = _condition_estimate(lower, units)
        if condition <= MAX_CONDITION:
            return Cholesky(lower)
    if isinstance(penalty, int | float):
        values, vectors = arrays.eigh(gram)
        values = values + penalty
    else:
        lengths: Array = units
        scaled = gram / lengths / lengths[:, None]
        arrays.add_to_diagonal(scaled, shift / lengths**2)
        values, vectors = arrays.eigh(scaled)
        penalty = float(penalty.max())
    largest = float(abs(values).max()) if len(values) else 1.0
    floor = max(largest / MAX_CONDITION, np.finfo(np.float64).tiny)
    warnings.warn(
        f"ridge system of size {len(gram)} with penalty {penalty:g} is singular or ill-conditioned (condition about "
        f"{condition:.0e}); solved by eigendecomposition with eigenvalues raised to {floor:.1e}. A larger penalty avoids this",
        IllConditionedWarning,
        stacklevel=2,
    )
    # Directions at the floor carry no information: drop them, so that the answer is the least-norm one, not noise / floor
    keep = values > 10 * floor
    weights = arrays.zeros((len(values),), values)
    weights[keep] = values[keep] ** -0.5
    return LeastNorm((vectors * weights).T / units)


def _condition_estimate(lower: Array, units: Array | float = 1.0) -> float:
    """A lower bound of the condition number of L L' in these units, from the diagonal of L."""
    if not len(lower):
        return 1.0
    diagonal = abs(lower.diagonal()) / units
    ratio = float(diagonal.max()) / max(float(diagonal.min()), 1e-300)
    return ratio * ratio  # infinite, where ** would raise


@dataclass(frozen=True)
class Spectrum:
    """A gram's eigendecomposition: ridge solutions for every penalty, each for the price of a product."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, gram: Array) -> "Spectrum":
        values, vectors = arrays.eigh(gram)
        return cls(values * (values > 0), vectors)  # a gram has no negative eigenvalues; rounding does

    def rotate(self, right: Array) -> Array:
        """right in the eigenbasis."""
        return self.vectors.T @ right

    def solve(self, right: Array, penalty: float) -> Array:
        """(G + penalty I)^-1 right."""
        return self.vectors @ (self.rotate(right) / (self.values + penalty)[:, None])


def ridge(gram: Array, cross: Array, penalty: Penalty) -> Array:
    """(gram + P)^-1 cross."""
    return factorise(gram, penalty).solve(cross)
