"""Moments: what a client says about its data, once. Everything analytic folds through them.

value: what they are and their algebra. samples: what they are made from. products: how a sum of many is held. codec: their form
on the wire and as a vector. checks: what is asked of moments that come from elsewhere.
"""

from gramfold.moments.checks import check_exact_counts, check_possible
from gramfold.moments.value import Labels, Moments

__all__ = ["Labels", "Moments", "check_exact_counts", "check_possible"]
