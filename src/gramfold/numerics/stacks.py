"""Stacks of symmetric systems (... x n x n), each on its own: one call for all, on NumPy and torch alike.

Of a symmetric matrix the lower triangle is the truth. A stack of one is a matrix with an axis more: clients alone and clients
side by side go through the same code.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gramfold.errors import IllConditionedWarning
from gramfold.numerics import arrays, blas, work
from gramfold.numerics.arrays import Array
from gramfold.numerics.blocked import inverse_factors

SMALL = 48
"""Up to so many rows NumPy's loop over a stack is faster than a call of BLAS for each of its systems."""
BLOCK, ON_DEVICE = 64, 2048
"""Columns of an inverse that are looked at together; on a device rather many."""
MAX_CONDITION = 1e14


def transposed(stack: Array) -> Array:
    return stack.mT if arrays.is_torch(stack) else np.swapaxes(stack, -1, -2)


def gram(rows: Array) -> Array:
    """rows'rows, for each of the stack."""
    return _products(rows, outer=False)


def outer_gram(rows: Array) -> Array:
    """rows rows', for each of the stack."""
    return _products(rows, outer=True)


def _products(rows: Array, outer: bool) -> Array:
    n, m = rows.shape[-2:]
    size, depth = (n, m) if outer else (m, n)
    if arrays.is_torch(rows) or size <= SMALL:
        work.add(calls=1, operations=_count(rows) * size * size * depth)
        return rows @ transposed(rows) if outer else transposed(rows) @ rows
    total = np.zeros((*rows.shape[:-2], size, size))
    for into, part in zip(total.reshape(-1, size, size), rows.reshape(-1, n, m), strict=True):
        blas.add_gram(into, np.ascontiguousarray(part), outer=outer)
    return total


class Solver(ABC):
    """Systems A = L L' of a stack, ready for any right sides."""

    @staticmethod
    def of(matrices: Array, shifts: Array | float) -> "Solver":
        """Of matrices with a shift (one for all, or for each) added to their diagonals. Where one is not positive definite its
        eigenvalues are raised to a floor, with a warning."""
        size = matrices.shape[-1]
        if arrays.is_torch(matrices) or size <= SMALL:
            work.add(calls=1, factorisations=_count(matrices), operations=_count(matrices) * size**3 / 3)
        shifted = arrays.copy(matrices)
        arrays.stack_diagonal(shifted)[...] += shifts if isinstance(shifts, float) else shifts[..., None]
        return Inverses.of_shifted(shifted) if arrays.is_torch(shifted) else Factors(_factors(shifted, matrices, shifts))

    @abstractmethod
    def solve_lower(self, right: Array) -> Array:
        """L^-1 right, for each of the stack."""

    @abstractmethod
    def solve(self, right: Array) -> Array:
        """A^-1 right."""

    @abstractmethod
    def inverse_diagonal(self) -> Array:
        """The diagonals of A^-1 (... x n): the squared lengths of L^-1's columns."""


@dataclass(frozen=True)
class Factors(Solver):
    """By L, of which nobody says what stands above its diagonal."""

    lower: Array

    def solve_lower(self, right: Array) -> Array:
        return solve_lower(self.lower, right)

    def solve(self, right: Array) -> Array:
        return solve_lower(self.lower, solve_lower(self.lower, right), other_way=True)

    def inverse_diagonal(self) -> Array:
        return inverse_diagonal(self.lower)


@dataclass(frozen=True)
class Inverses(Solver):
    """By L^-1, of tensors: see `blocked`."""

    inverse: Array

    @classmethod
    def of_shifted(cls, shifted: Array) -> "Inverses":
        """The tensors are kept as they are, for one that is not positive definite."""
        flat = _flat(shifted)
        inverse, failed = inverse_factors(arrays.copy(flat))
        if bool(failed.any()):
            inverse, _ = inverse_factors(_raised(flat))
        return cls(inverse.reshape(shifted.shape))

    def solve_lower(self, right: Array) -> Array:
        work.add(calls=1, operations=2 * _count(self.inverse) * right.shape[-2] ** 2 * right.shape[-1])
        return self.inverse @ right

    def solve(self, right: Array) -> Array:
        return transposed(self.inverse) @ self.solve_lower(right)

    def inverse_diagonal(self) -> Array:
        return column_squares(self.inverse)


def _factors(shifted: np.ndarray, matrices: np.ndarray, shifts: Array | float) -> np.ndarray:
    """L of each, written over `shifted`: `matrices` with these shifts."""
    size = shifted.shape[-1]
    if size <= SMALL:
        try:
            return np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return np.linalg.cholesky(_raised(shifted))
    for k, matrix in enumerate(shifted.reshape(-1, size, size)):
        if not blas.cholesky_inplace(matrix):
            again = np.copy(matrices.reshape(-1, size, size)[k])
            again[np.diag_indices(size)] += np.broadcast_to(shifts, matrices.shape[:-2]).reshape(-1)[k]
            matrix[...] = np.linalg.cholesky(_raised(again))
    return shifted


def _raised(matrices: Array) -> Array:
    """The same with eigenvalues no smaller than what can be told from zero."""
    values, vectors = arrays.eigh(matrices)
    floor = abs(values).max(-1)[0] if arrays.is_torch(values) else abs(values).max(-1)
    floor = 10.0 * floor[..., None] / MAX_CONDITION + np.finfo(float).tiny
    warnings.warn(
        f"a ridge system of size {matrices.shape[-1]} is singular or ill-conditioned; solved with its eigenvalues raised to "
        f"{float(floor.max()):.1e}. A larger penalty avoids this",
        IllConditionedWarning,
        stacklevel=3,
    )
    raised = values + (floor - values) * (values < floor)
    return (vectors * raised[..., None, :]) @ transposed(vectors)


def solve_lower(lower: Array, right: Array, other_way: bool = False) -> Array:
    """L^-1 right, or L'^-1 right, for each of the stack."""
    size, columns = right.shape[-2:]
    if arrays.is_torch(lower) or (size <= SMALL and _count(lower) > 1):
        work.add(calls=1, operations=_count(lower) * size * size * columns)
    if not arrays.is_torch(lower) and size <= SMALL and _count(lower) > 1:
        known = np.tril(lower)  # a corner of a larger factor has what was there before above its diagonal
        return np.linalg.solve(transposed(known) if other_way else known, right)
    if arrays.is_torch(lower):
        import torch

        return torch.linalg.solve_triangular(lower.mT if other_way else lower, right, upper=other_way)
    solved = np.array(right, dtype=np.float64, order="C")
    for each, into in zip(_flat(lower), solved.reshape(-1, size, columns), strict=True):
        blas.solve_lower_inplace(each, into, other_way)
    return solved


def _flat(stack: Array) -> Array:
    """Its systems, one after another; those of a part of larger ones are not copied."""
    return stack if stack.ndim == 3 else stack.reshape(-1, *stack.shape[-2:])


def inverse_diagonal(lower: Array) -> Array:
    """The diagonals of (L L')^-1 (... x n): the squared lengths of L^-1's columns.

    Block by block: a column of L^-1 is zero above the diagonal, so only the corner below it is solved.
    """
    size = lower.shape[-1]
    step, parts = ON_DEVICE if arrays.is_torch(lower) else BLOCK, []
    for start in range(0, size, step):
        corner = arrays.zeros((*lower.shape[:-2], size - start, min(step, size - start)), lower)
        arrays.stack_diagonal(corner[..., : corner.shape[-1], :])[...] += 1.0
        parts.append(column_squares(solve_lower(lower[..., start:, start:], corner)))
    return arrays.concatenate(parts, axis=-1) if parts else arrays.zeros(lower.shape[:-1], lower)


def row_squares(rows: Array) -> Array:
    """The squared length of every row (... x n)."""
    return (rows**2).sum(-1) if arrays.is_torch(rows) else np.einsum("...ij,...ij->...i", rows, rows)


def column_squares(rows: Array) -> Array:
    """The squared length of every column (... x m)."""
    return (rows**2).sum(-2) if arrays.is_torch(rows) else np.einsum("...ij,...ij->...j", rows, rows)


def pick(numbers: Array, places: Array) -> Array:
    """Of every row (... x C) the number at its place (...)."""
    if arrays.is_torch(numbers):
        return numbers.gather(-1, places[..., None].expand(*numbers.shape[:-1], 1))[..., 0]
    return np.take_along_axis(numbers, places[..., None], -1)[..., 0]


def put(numbers: Array, places: Array, values: Array | float) -> None:
    """Write into every row (... x C) at its place (...)."""
    if arrays.is_torch(numbers):
        numbers.scatter_(-1, places[..., None], values if isinstance(values, float) else values[..., None])
    else:
        np.put_along_axis(numbers, places[..., None], values if isinstance(values, float) else values[..., None], -1)


def row_dots(a: Array, b: Array) -> Array:
    """The inner products of rows (... x n)."""
    return (a * b).sum(-1) if arrays.is_torch(a) else np.einsum("...j,...j->...", a, b)


def lifted(value: Array | float, like: Array) -> Array | float:
    """A number for each of a stack, ready to multiply its matrices; one for all as it is."""
    return value if isinstance(value, int | float) else arrays.like(value, like)[..., None, None]


def softmax(logits: Array) -> Array:
    """Of every row; written over the logits."""
    logits -= arrays.last_max(logits)
    shares = arrays.exp_inplace(logits)
    shares /= shares.sum(-1)[..., None]
    return shares


def _count(stack: Array) -> int:
    count = 1
    for size in stack.shape[:-2]:
        count *= int(size)
    return count
