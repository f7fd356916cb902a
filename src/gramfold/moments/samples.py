"""Labelled samples on their way into moments: checked, and weighted."""

import numpy as np

from gramfold.errors import MomentsError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array


def checked_targets(features: Array, targets: Array, classes: int | None) -> tuple[Array, int]:
    """The targets of n x m features, and how many columns they are: class codes (int64), or without classes a float64 matrix."""
    if features.ndim != 2:
        raise MomentsError(f"features must be n x m, got an array of shape {tuple(features.shape)}")
    if len(targets) != len(features):
        raise MomentsError(f"{len(features)} feature rows but {len(targets)} targets")
    if classes is None:
        values = arrays.float64(targets)
        values = values[:, None] if values.ndim == 1 else values
        return values, values.shape[1]
    codes = arrays.to_numpy(targets)
    if codes.ndim != 1 or (codes.dtype.kind == "f" and not (np.isfinite(codes).all() and (codes == np.rint(codes)).all())):
        raise MomentsError("class codes must be whole numbers, one per sample")
    codes = codes.astype(np.int64)
    if len(codes) and not (codes.min() >= 0 and codes.max() < classes):
        raise MomentsError(f"class codes must lie in 0..{classes - 1}, got {codes.min()}..{codes.max()}")
    return codes, classes


def checked_weights(weights: Array, n: int) -> np.ndarray:
    """One finite number per sample, none negative."""
    numbers = np.asarray(arrays.to_numpy(weights), dtype=np.float64)
    if numbers.shape != (n,) or not (np.isfinite(numbers).all() and numbers.min(initial=0.0) >= 0):
        raise MomentsError(f"weights must be {n} finite numbers, none of them negative")
    return numbers


def squares(rows: Array, targets: Array, outputs: int, weights: np.ndarray | None) -> Array:
    """Sums of squared targets, an array of the rows' kind: the counts of class codes. Whole weights leave whole counts."""
    if targets.ndim == 1:
        return arrays.like(np.bincount(targets, weights, minlength=outputs), rows)
    return (targets**2 if weights is None else targets**2 * arrays.like(weights, rows)[:, None]).sum(0)


def weighted(rows: Array, targets: Array, outputs: int, weights: np.ndarray) -> tuple[Array, Array]:
    """Rows and targets, each times the root of its weight."""
    wanted = arrays.one_hot(targets, outputs, rows) if targets.ndim == 1 else targets
    roots = arrays.like(np.sqrt(weights), rows)[:, None]
    return rows * roots, wanted * roots
