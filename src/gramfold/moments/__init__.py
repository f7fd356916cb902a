"""Moments: what a client says about its data, once. Everything analytic folds through them.

value: what they are and their algebra. samples: what they are made from. products: how a sum of many is held. codec: their form
on the wire and as a vector. rounding: the same in fewer bits. forgetting: what a subtraction leaves. checks: what is asked of
moments that come from elsewhere; consistent and implied: what is asked of exact ones from a site that may lie.
"""

from gramfold.moments.checks import check_exact_counts, check_possible
from gramfold.moments.consistent import check_consistent
from gramfold.moments.implied import Implied, check_implied
from gramfold.moments.value import Labels, Moments, require_same_space

__all__ = [
    "Implied", "Labels", "Moments", "check_consistent", "check_exact_counts", "check_implied", "check_possible",
    "require_same_space",
]  # fmt: skip
