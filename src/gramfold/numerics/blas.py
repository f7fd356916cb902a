"""Three BLAS/LAPACK routines, in place on row-major float64 arrays and without the interpreter lock.

SciPy's own wrappers hold the lock for the whole call, so threads that solve for different clients would take turns.
Called through the function pointers SciPy exports for Cython, the same routines run side by side.
A C-ordered matrix is the transpose of what Fortran sees; "lower" below is meant as the caller sees it.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

from gramfold.numerics import work

Float64 = NDArray[np.float64]

_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _routine(module: Any, name: str) -> Callable[..., None]:
    capsule = module.__pyx_capi__[name]
    address = _capsule_pointer(capsule, _capsule_name(capsule))
    function: Callable[..., None] = ctypes.CFUNCTYPE(None)(address)
    return function


_dsyrk, _dtrsm, _dpotrf = _routine(cython_blas, "dsyrk"), _routine(cython_blas, "dtrsm"), _routine(cython_lapack, "dpotrf")


def _char(letter: bytes) -> Any:
    return ctypes.byref(ctypes.c_char(letter))


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _double(value: float) -> Any:
    return ctypes.byref(ctypes.c_double(value))


def _data(array: Float64, written: bool = False) -> ctypes.c_void_p:
    n, m = array.shape
    # the stride of an axis of length one is arbitrary in NumPy
    rows_apart = n <= 1 or (array.strides[0] % 8 == 0 and array.strides[0] >= 8 * m)
    if (
        array.dtype != np.float64
        or not rows_apart
        or (m > 1 and array.strides[1] != 8)
        or (written and not array.flags.writeable)
    ):
        raise TypeError("expected float64 rows, each contiguous")
    return ctypes.c_void_p(array.ctypes.data)


def _stride(array: Float64) -> Any:
    """Numbers from one row to the next: blocks of a larger matrix are fine."""
    return _int(array.strides[0] // 8 if len(array) > 1 else max(array.shape[1], 1))


def add_gram(total: Float64, rows: Float64, outer: bool = False) -> None:
    """Add rows'rows (or rows rows' where `outer`) to the lower triangle of `total`; the upper one is left as it was."""
    n, m = rows.shape
    size, depth = (n, m) if outer else (m, n)
    if total.shape != (size, size):
        raise TypeError(f"the total is {total.shape}, expected {(size, size)}")
    if n and m:
        work.add(calls=1, operations=size * size * depth)
        flag = _char(b"T" if outer else b"N")
        _dsyrk(
            _char(b"U"), flag, _int(size), _int(depth), _double(1.0), _data(rows), _stride(rows), _double(1.0),
            _data(total, written=True), _stride(total),
        )  # fmt: skip


def cholesky_inplace(matrix: Float64) -> bool:
    """Overwrite the lower triangle with its Cholesky factor; False where the matrix is not positive definite."""
    info = ctypes.c_int(0)
    n, m = matrix.shape
    if n != m:
        raise TypeError(f"expected a square matrix, got {matrix.shape}")
    if n:
        work.add(calls=1, factorisations=1, operations=n**3 / 3)
        _dpotrf(_char(b"U"), _int(n), _data(matrix, written=True), _stride(matrix), ctypes.byref(info))
    return info.value == 0


def solve_lower_inplace(lower: Float64, right: Float64, transposed: bool = False) -> None:
    """Overwrite `right` (n x k) with the solution of L X = right, or of L'X = right."""
    n, k = right.shape
    if lower.shape != (n, n):
        raise TypeError(f"the factor is {lower.shape} but the right-hand side has {n} rows")
    if n and k:
        work.add(calls=1, operations=n * n * k)
        flag = _char(b"T" if transposed else b"N")
        _dtrsm(
            _char(b"R"), _char(b"U"), flag, _char(b"N"), _int(k), _int(n), _double(1.0),
            _data(lower), _stride(lower), _data(right, written=True), _stride(right),
        )  # fmt: skip


def solve_rows_inplace(lower: Float64, rows: Float64, transposed: bool = False) -> None:
    """Overwrite rows F (k x n) with F L'^-1, so that every row f becomes L^-1 f; or with F L^-1."""
    k, n = rows.shape
    if lower.shape != (n, n):
        raise TypeError(f"the factor is {lower.shape} but the rows have {n} numbers")
    if n and k:
        work.add(calls=1, operations=n * n * k)
        flag = _char(b"N" if transposed else b"T")
        _dtrsm(
            _char(b"L"), _char(b"U"), flag, _char(b"N"), _int(n), _int(k), _double(1.0),
            _data(lower), _stride(lower), _data(rows, written=True), _stride(rows),
        )  # fmt: skip
