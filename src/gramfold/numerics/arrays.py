"""The one backend: what the mathematics needs from NumPy arrays and torch tensors alike.

Everything above works on "arrays" and calls these functions; NumPy goes to LAPACK, torch to wherever its tensor lives.
Sums and solves are float64 throughout.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from gramfold.errors import GramfoldError
from gramfold.numerics import blas, threads, work
from gramfold.numerics.cosines import cosines_over

Array: TypeAlias = Any
"""A NumPy array or a torch tensor; for samples also sparse rows (SciPy's CSR)."""

BLOCK_BYTES = 32 * 2**20
"""How much of a feature matrix is promoted to float64 at a time."""


def is_torch(array: Array) -> bool:
    kind = type(array)  # asked a thousand times a client: what nearly all are comes first
    return kind is not np.ndarray and kind.__module__.partition(".")[0] == "torch"


def is_sparse(array: Array) -> bool:
    return type(array) is not np.ndarray and bool(issparse(array))


def float64(array: Array) -> Array:
    """The array in float64, dense, on the device where it is; not copied if it already is that."""
    if is_sparse(array):
        return array.astype(np.float64).toarray()
    if is_torch(array):
        import torch

        return array.to(torch.float64)
    return np.asarray(array, dtype=np.float64, order="C")


def cast(array: Array, dtype: str) -> Array:
    """The array in a type of numbers given by its name, such as float16 or int8."""
    if is_torch(array):
        import torch

        return array.to(getattr(torch, dtype))
    return np.asarray(array).astype(dtype)


def rint(array: Array) -> Array:
    """The nearest whole numbers, halves to even ones."""
    return array.round() if is_torch(array) else np.rint(array)


def to_numpy(array: Array) -> np.ndarray:
    if is_sparse(array):
        return np.asarray(array.toarray())
    if not is_torch(array):
        return np.asarray(array)
    _moved(array, array.device)
    return np.asarray(array.detach().cpu().numpy())


def to_device(array: Array, device: str) -> Array:
    """The array where the work is to be done: NumPy for "cpu" (sparse rows as they are), a torch tensor for any other device."""
    if device == "cpu":
        return array if is_sparse(array) else to_numpy(array)
    import torch

    if is_torch(array):
        return array.to(device)
    return _moved(torch.as_tensor(np.ascontiguousarray(to_numpy(array)), device=device), torch.device(device))


def require_torch() -> None:
    """Raise, with a word on what to do, unless PyTorch can be imported."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise GramfoldError("networks need PyTorch: install gramfold[torch]") from None


def is_traced() -> bool:
    """Whether PyTorch is writing down a program instead of computing: then nothing may depend on the numbers, or on how many."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    exporting = getattr(compiler, "is_exporting", getattr(compiler, "is_compiling", None))  # older ones know only the latter
    return exporting is not None and bool(exporting())


def check_device(device: str) -> None:
    """Raise, with a word on what to do, unless work can be sent to `device`."""
    if device == "cpu":
        return
    try:
        import torch
    except ImportError:
        raise GramfoldError(f"device {device!r} needs PyTorch: install gramfold[torch], or use device 'cpu'") from None
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise GramfoldError(f"device {device!r} is not usable here ({reason}); use device 'cpu'") from None


def like(values: Array, other: Array) -> Array:
    """`values` as an array of `other`'s kind, on its device, keeping its own dtype."""
    if is_torch(other):
        import torch

        there = torch.as_tensor(values, device=other.device)
        return there if is_torch(values) else _moved(there, other.device)
    return to_numpy(values)


def _moved(tensor: Array, device: Any) -> Array:
    """The tensor, which went to that device or comes from there."""
    if device.type != "cpu":
        work.add(transfers=tensor.numel() * tensor.element_size())
    return tensor


def device_of(array: Array) -> str | None:
    """Where a tensor lives; None for a NumPy array."""
    return str(array.device) if is_torch(array) else None


def zeros(shape: tuple[int, ...], other: Array) -> Array:
    """float64 zeros of `other`'s kind."""
    if is_torch(other):
        import torch

        return torch.zeros(shape, dtype=torch.float64, device=other.device)
    return np.zeros(shape)


def zeros_of(shape: tuple[int, ...], other: Array) -> Array:
    """Zeros of `other`'s kind and type of numbers."""
    if is_torch(other):
        import torch

        return torch.zeros(shape, dtype=other.dtype, device=other.device)
    return np.zeros(shape, other.dtype)


def stack_diagonal(matrices: Array) -> Array:
    """The diagonals (... x n) of a stack, to be written to."""
    return matrices.diagonal(dim1=-2, dim2=-1) if is_torch(matrices) else np.einsum("...ii->...i", matrices)


def copy(array: Array) -> Array:
    return array.clone() if is_torch(array) else array.copy()


def concatenate(parts: list[Array], axis: int = 0) -> Array:
    if len(parts) == 1:
        return parts[0]
    if is_torch(parts[0]):
        import torch

        return torch.cat(parts, dim=axis)
    if is_sparse(parts[0]):
        return vstack(parts, format="csr")
    return np.concatenate(parts, axis=axis)


def stack(parts: list[Array], axis: int = 0) -> Array:
    """As an axis more, of all parts."""
    if is_torch(parts[0]):
        import torch

        return torch.stack(parts, dim=axis)
    return np.stack(parts, axis=axis)


def one_hot(codes: Array, classes: int, other: Array) -> Array:
    """float64 indicator rows of `other`'s kind."""
    out = zeros((len(codes), classes), other)
    whole = np.asarray(to_numpy(codes), dtype=np.int64)
    out[like(np.arange(len(codes)), other), like(whole, other)] = 1.0
    return out


def class_sums(rows: Array, codes: Array, classes: int) -> Array:
    """rows'Y for one-hot Y: the sum of each class's rows, as columns. A sum costs a C-th of the product with Y."""
    if is_torch(rows):
        return rows.T @ one_hot(codes, classes, rows)  # scattered additions on a device come in no fixed order
    runs = np.flatnonzero(np.diff(codes, prepend=-1))
    if 4 * len(runs) < len(codes):  # an image's patches come one after another
        rows, codes = np.add.reduceat(rows, runs), codes[runs]
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=classes))])
    members = csr_array((np.ones(len(codes)), np.argsort(codes, kind="stable"), starts), shape=(classes, len(codes)))
    return (members @ rows).T


def row_squares(rows: Array) -> Array:
    """The squared length of every row."""
    return (rows**2).sum(1) if is_torch(rows) else np.einsum("ij,ij->i", rows, rows)


def row_max(rows: Array) -> Array:
    """The largest number of every row."""
    return rows.amax(1) if is_torch(rows) else rows.max(1)


def cos_inplace(array: Array) -> Array:
    """The cosines, written over the array, which is given back."""
    return array.cos_() if is_torch(array) else cosines_over(array)


def last_max(array: Array) -> Array:
    """The largest number of every row, as a last axis of one."""
    return array.amax(-1, keepdim=True) if is_torch(array) else array.max(-1, keepdims=True)


def exp_inplace(array: Array) -> Array:
    """The exponentials, written over the array, which is given back."""
    return array.exp_() if is_torch(array) else np.exp(array, out=array)


def exp(array: Array) -> Array:
    return array.exp() if is_torch(array) else np.exp(array)


def log(array: Array) -> Array:
    return array.log() if is_torch(array) else np.log(array)


def activation(name: str, on_numpy: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of each number: torch.nn.functional's of this name for tensors, the one given for NumPy arrays."""

    def apply(x: Array) -> Array:
        if is_torch(x):
            from torch.nn import functional

            return getattr(functional, name)(x)
        return on_numpy(x)

    return apply


def log_cosh(values: Array) -> Array:
    """log cosh, entry by entry, without overflow."""
    sizes = abs(values)
    if is_torch(values):
        return sizes + (-2.0 * sizes).exp().log1p() - math.log(2.0)
    return sizes + np.log1p(np.exp(-2.0 * sizes)) - math.log(2.0)


def extent(array: Array) -> float:
    """The largest magnitude in it; NaN if there is one, 0 for an empty array."""
    if 0 in array.shape:
        return 0.0
    low, high = float(array.min()), float(array.max())
    return high if high != high else max(high, -low)


def all_finite(array: Array) -> bool:
    if is_torch(array):
        return bool(array.isfinite().all())
    return bool(np.isfinite(array).all())


def blocks(rows: int, width: int) -> list[slice]:
    """Slices that cut `rows` rows of `width` float64 numbers into pieces of about BLOCK_BYTES."""
    step = max(1, BLOCK_BYTES // (8 * max(width, 1)))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


# --- symmetric matrices: the lower triangle is the truth ---


def add_gram(total: Array, rows: Array) -> None:
    """total += rows'rows, in place; only the lower triangle of `total` is certain to be updated."""
    if is_torch(total):
        work.add(calls=1, operations=rows.shape[0] * rows.shape[1] ** 2)
        total.addmm_(rows.T, rows)
    else:
        blas.add_gram(total, np.ascontiguousarray(rows))


def gram(rows: Array) -> Array:
    """rows'rows, lower triangle certain."""
    total = zeros((rows.shape[1], rows.shape[1]), rows)
    add_gram(total, rows)
    return total


def outer_gram(rows: Array) -> Array:
    """rows rows', lower triangle certain."""
    if is_torch(rows):
        return rows @ rows.T
    if not rows.flags.c_contiguous and rows.T.flags.c_contiguous:
        return gram(rows.T)
    total = np.zeros((len(rows), len(rows)))
    blas.add_gram(total, np.ascontiguousarray(rows), outer=True)
    return total


def mirror(lower: Array) -> None:
    """Copy the lower triangle onto the upper one, in place."""
    if is_torch(lower):
        lower.copy_(lower.tril() + lower.tril(-1).T)
    else:
        for block in blocks(len(lower), len(lower)):
            upper = lower[: block.start, block]
            upper[...] = lower[block, : block.start].T
            square = lower[block, block]
            square[...] = np.tril(square) + np.tril(square, -1).T


def add_to_diagonal(matrix: Array, value: Array | float) -> None:
    diagonal = matrix.diagonal() if is_torch(matrix) else np.einsum("ii->i", matrix)
    diagonal += value


def cholesky(matrix: Array, shift: Array | float = 0.0) -> Array | None:
    """The lower factor L (zero above) of a matrix with a shift added to its diagonal, reading only the lower triangle; None if
    not positive definite."""
    if is_torch(matrix):
        import torch

        shifted = matrix.clone()
        add_to_diagonal(shifted, shift)
        work.add(calls=1, factorisations=1, operations=len(matrix) ** 3 / 3)
        factor, info = torch.linalg.cholesky_ex(shifted)
        return None if int(info) else factor
    factor = np.tril(matrix)
    add_to_diagonal(factor, shift)
    return factor if blas.cholesky_inplace(factor) else None


def solve_lower(lower: Array, right: Array, transposed: bool = False) -> Array:
    """L^-1 right, or L'^-1 right."""
    if is_torch(lower):
        import torch

        work.add(calls=1, operations=right.shape[0] ** 2 * right.shape[1])
        return torch.linalg.solve_triangular(lower.T if transposed else lower, right, upper=transposed)
    solution = np.array(right, dtype=np.float64, order="C")
    blas.solve_lower_inplace(lower, solution, transposed)
    return solution


def solve_rows(lower: Array, rows: Array, transposed: bool = False) -> Array:
    """rows L'^-1, or rows L^-1: what `solve_lower` makes of the rows as columns."""
    if is_torch(lower):
        import torch

        work.add(calls=1, operations=rows.shape[1] ** 2 * rows.shape[0])
        return torch.linalg.solve_triangular(lower if transposed else lower.T, rows, upper=not transposed, left=False)
    solution = np.array(rows, dtype=np.float64, order="C")
    blas.solve_rows_inplace(lower, solution, transposed)
    return solution


ONE_THREAD = 2048
"""Below this size a second thread gains an eigendecomposition little, and on a busy machine costs it a hundredfold: LAPACK's
threads wait for one another at every column."""


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix given by its lower triangle, or of a stack of such."""
    many = math.prod(matrix.shape[:-2])
    work.add(calls=1, decompositions=many, operations=9 * many * matrix.shape[-1] ** 3)
    if is_torch(matrix):
        import torch

        values, vectors = torch.linalg.eigh(matrix)
    elif len(matrix) < ONE_THREAD:
        with threads.one_if_engine():
            values, vectors = np.linalg.eigh(matrix)
    else:
        values, vectors = np.linalg.eigh(matrix)
    return values, vectors


def gram_rows(gram: Array) -> tuple[Array, Array]:
    """Rows R of full rank with R'R = gram (given by its lower triangle), and N with N R' = I: so N B solves R'T = B."""
    values, vectors = eigh(gram)
    real = values > 1e-13 * abs(values).max()
    root = values[real] ** 0.5
    return (vectors[:, real] * root).T, (vectors[:, real] / root).T


def qr(rows: Array) -> tuple[Array, Array]:
    """Reduced Q and R."""
    if is_torch(rows):
        import torch

        q, r = torch.linalg.qr(rows)
    else:
        q, r = np.linalg.qr(rows)
    return q, r


def svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Reduced U, singular values, descending, and V'."""
    if is_torch(matrix):
        import torch

        u, s, vt = torch.linalg.svd(matrix, full_matrices=False)
    else:
        u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    return u, s, vt
