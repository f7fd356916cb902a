"""Triangles and trapezoids of matrices as vectors: what travels of a symmetric matrix, and of a QR factor."""

import numpy as np

from gramfold.errors import MessageError
from gramfold.numerics.arrays import Array, to_numpy


def lower_size(m: int) -> int:
    return m * (m + 1) // 2


def pack_lower(matrix: Array) -> np.ndarray:
    """The lower triangle, row by row, as one vector."""
    matrix = to_numpy(matrix)
    m = len(matrix)
    packed = np.empty(lower_size(m), matrix.dtype)
    for i in range(m):
        packed[lower_size(i) : lower_size(i + 1)] = matrix[i, : i + 1]
    return packed


def unpack_lower(packed: np.ndarray) -> np.ndarray:
    """The square matrix with this lower triangle and zeros above."""
    m = (int(np.sqrt(8 * packed.size + 1)) - 1) // 2
    if packed.ndim != 1 or lower_size(m) != packed.size:
        raise MessageError(f"{packed.size} numbers are not the triangle of a square matrix")
    matrix = np.zeros((m, m), packed.dtype)
    for i in range(m):
        matrix[i, : i + 1] = packed[lower_size(i) : lower_size(i + 1)]
    return matrix


def lower_diagonal(m: int) -> np.ndarray:
    """Where the diagonal lies in a packed lower triangle."""
    ends = np.arange(1, m + 1)
    return ends * (ends + 1) // 2 - 1


def add_lower(matrix: np.ndarray, packed: np.ndarray) -> None:
    """Add a packed lower triangle to that of a matrix."""
    for i in range(len(matrix)):
        matrix[i, : i + 1] += packed[lower_size(i) : lower_size(i + 1)]


def upper_size(r: int, m: int) -> int:
    return r * m - r * (r - 1) // 2


def pack_upper(matrix: Array) -> np.ndarray:
    """The upper trapezoid of an r x m matrix (r <= m), row by row, as one vector."""
    matrix = to_numpy(matrix)
    return np.concatenate([matrix[i, i:] for i in range(len(matrix))]) if len(matrix) else np.empty(0)


def unpack_upper(packed: np.ndarray, r: int, m: int) -> np.ndarray:
    """The r x m matrix with this upper trapezoid and zeros below."""
    if r > m or packed.shape != (upper_size(r, m),):
        raise MessageError(f"{packed.size} numbers are not the upper trapezoid of a {r} x {m} matrix")
    matrix = np.zeros((r, m), packed.dtype)
    for i in range(r):
        matrix[i, i:] = packed[upper_size(i, m) : upper_size(i + 1, m)]
    return matrix
