"""What a subtraction leaves: too few digits, or moments that no samples have, since what was taken out had never been in."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from gramfold.errors import GramfoldError, MomentsError, PrecisionWarning
from gramfold.moments.consistent import require_samples
from gramfold.numerics import arrays

if TYPE_CHECKING:
    from gramfold.moments.value import Moments

MOST_LOST = 1e6
"""Six of a float's sixteen digits: what is solved from such a remainder still has seven or so."""
CANCELLED = 1e-9
"""What may be left of the squares of targets that are gone, relative to the largest."""
ZERO = 1e-14
"""A feature that keeps less than this of its square is gone: what is left of it is rounding."""


def check_remainder(whole: "Moments", rest: "Moments") -> None:
    """Warn where digits are lost, raise where no samples have these moments: what a sum keeps after a subtraction."""
    before, after = (arrays.to_numpy(moments.lower_gram.diagonal()) for moments in (whole, rest))
    lost = _lost(before, after)
    if lost > MOST_LOST:
        warnings.warn(
            f"forgetting has cancelled {min(np.log10(lost), 16):.0f} of 16 digits, since what was taken out is that much larger "
            "than what is left; normalise the features, or run again without these samples",
            PrecisionWarning,
            stacklevel=4,
        )
    elif rest.exact_n == rest.n:  # noise would show in n too, and moments with noise may be those of no samples
        try:
            require_samples(rest, CANCELLED * float(arrays.to_numpy(whole.squares).max(initial=0.0)))
        except GramfoldError:
            raise MomentsError("cannot subtract moments whose samples were never added") from None


def _lost(before: np.ndarray, after: np.ndarray) -> float:
    """By how much some feature is larger in the sum than in what is left; one that is gone is measured by the mean."""
    scale = np.where(after > ZERO * before, after, after.mean() if len(after) else 0.0)
    present = before > 0
    with np.errstate(divide="ignore"):
        return float((before[present] / scale[present]).max(initial=0.0))
