"""What a feature map says of its features whatever the sample is, and moments held against it. Maps say what they can: a learned
one may say nothing."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gramfold import wire
from gramfold.errors import MomentsError
from gramfold.numerics import arrays

if TYPE_CHECKING:
    from gramfold.moments.value import Moments

EXACT = 1e-9
"""Relative; sums of n float64 numbers in any order differ by far less."""


@dataclass(frozen=True)
class Implied:
    """`ones`: columns that are always one. `lengths`: first and last column (exclusive) of a block, and the most that the squares
    of one sample's numbers in it can sum to."""

    ones: tuple[int, ...] = ()
    lengths: tuple[tuple[int, int, float], ...] = ()

    def length(self, dim: int) -> float | None:
        """The most that the squares of all of a sample's features can sum to; None: no bound is known."""
        bounded = set(self.ones).union(*(range(first, last) for first, last, _ in self.lengths))
        return len(self.ones) + sum(most for _, _, most in self.lengths) if bounded == set(range(dim)) else None

    def beside(self, other: "Implied", at: int) -> "Implied":
        """This, and the other for the columns from `at` on."""
        ones = (*self.ones, *(at + column for column in other.ones))
        lengths = (*self.lengths, *((at + first, at + last, most) for first, last, most in other.lengths))
        return replace(self, ones=ones, lengths=lengths)


def check_implied(moments: "Moments", implied: Implied) -> None:
    """Raise unless moments of n samples, without weights or noise, are what the map implies."""
    n, squares = moments.exact_n, arrays.to_numpy(moments.squares)
    diagonal, exact = _diagonal(moments), EXACT + moments.rounding
    for column in implied.ones:
        if not abs(diagonal[column] - n) <= exact * n:
            raise MomentsError(f"feature {column} is always one, so its square sums to {n:g}, not {diagonal[column]:g}")
        if moments.labels is not None and not (abs(_cross_row(moments, column) - squares) <= exact * n).all():
            raise MomentsError(f"feature {column} is always one, so its cross-moment is the class counts, which it is not")
    for first, last, most in implied.lengths:
        if not diagonal[first:last].sum() <= most * n * (1 + exact):
            raise MomentsError(
                f"the squares of features {first} to {last - 1} sum to {diagonal[first:last].sum():g}, more than "
                f"{n:g} samples can have"
            )


def _diagonal(moments: "Moments") -> np.ndarray:
    rows, out = arrays.to_numpy(moments.products.rows()[0]), moments.products.multiplied_out()
    diagonal: np.ndarray = np.einsum("ij,ij->j", rows, rows)
    if out is not None:
        gram = arrays.to_numpy(out[0])
        diagonal = diagonal + (gram[wire.lower_diagonal(moments.dim)] if gram.ndim == 1 else gram.diagonal())
    return diagonal


def _cross_row(moments: "Moments", column: int) -> np.ndarray:
    rows, targets = map(arrays.to_numpy, moments.products.rows())
    out = moments.products.multiplied_out()
    row: np.ndarray = rows[:, column] @ targets
    return row if out is None else row + arrays.to_numpy(out[1])[column]
