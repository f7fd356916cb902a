"""Moments: what a client says about its data, once. Everything analytic folds through them."""

from gramfold.moments.value import Labels, Moments

__all__ = ["Labels", "Moments"]
