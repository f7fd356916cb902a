"""What is asked of moments that come from elsewhere. Two questions, since noise and weights change the answer to one of them:

check_possible        can these be the moments of any n samples at all?
check_exact_counts    are the class counts whole numbers that sum to n, as without noise and weights they must be?
"""

from typing import TYPE_CHECKING

import numpy as np

from gramfold import wire
from gramfold.errors import MessageError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

if TYPE_CHECKING:
    from gramfold.moments.value import Moments

LARGEST = 1e150
"""Of sums of products. Those of the largest features that are taken are far below."""
SYMMETRY = 1e-9  # relative; two summation orders of one float64 gram differ by far less


def check_possible(moments: "Moments") -> None:
    """Raise unless these can be the moments of n samples: shapes, finiteness, diagonal, squares. Cheap beside adding them."""
    dim, outputs, squares = moments.dim, moments.outputs, arrays.to_numpy(moments.squares)
    products = moments.products
    rows, targets = products.rows()
    _check_shapes(rows, targets, (products.buffered, dim), (products.buffered, outputs))
    numbers, diagonal = [squares, rows, targets], None
    out = products.multiplied_out()
    if out is not None:
        gram, cross = out
        packed = gram.ndim == 1
        _check_shapes(gram, cross, (wire.lower_size(dim),) if packed else (dim, dim), (dim, outputs))
        numbers += [gram, cross]
        diagonal = gram[wire.lower_diagonal(dim)] if packed else gram.diagonal()
    if squares.shape != (outputs,) or (moments.labels is not None and len(moments.labels) != outputs):
        raise MessageError(f"moments of {outputs} targets with target squares of shape {squares.shape}")
    if not all(arrays.all_finite(part) for part in (*numbers, np.array(moments.exact_n))):
        raise MessageError("moments must be finite; found NaN or infinity")
    if max(arrays.extent(part) for part in numbers) > LARGEST:
        raise MessageError(f"moments with numbers above {LARGEST:g} overflow when they are solved; scale the features")
    if diagonal is not None and dim and float(diagonal.min()) < 0:
        raise MessageError("the gram matrix has a negative diagonal entry")
    if min(moments.exact_n, moments.weight, squares.min(initial=0.0)) < 0 or products.buffered > moments.exact_n:
        raise MessageError(f"these cannot be the moments of {moments.exact_n:g} samples")


def check_exact_counts(moments: "Moments") -> None:
    """Raise unless n and the class counts are whole numbers, and the counts sum to n."""
    squares, n = arrays.to_numpy(moments.squares), moments.exact_n
    if n != np.rint(n) or (moments.labels is not None and ((squares != np.rint(squares)).any() or squares.sum() != n)):
        raise MessageError(f"class counts sum to {squares.sum():g}, but there are {n:g} samples")


def check_symmetric(gram: Array) -> None:
    """Raise unless a gram given as a full matrix is square and symmetric."""
    square = gram.ndim == 2 and gram.shape[0] == gram.shape[1]
    if not square or (len(gram) and not float(abs(gram - gram.T).max()) <= SYMMETRY * float(abs(gram).max())):
        raise MessageError("the gram matrix is not square and symmetric")


def _check_shapes(left: Array, right: Array, *expected: tuple[int, ...]) -> None:
    shapes = tuple(left.shape), tuple(right.shape)
    if shapes != expected:
        raise MessageError(f"moments of wrong shape: {shapes[0]} with {shapes[1]}")
