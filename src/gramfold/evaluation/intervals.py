"""Confidence intervals of a figure on one test split, and of the mean of several such.

A resample of ten samples that are all right is all right: where figures have an end, a bootstrap's interval shrinks to nothing
just where it should be widest. So an accuracy has Wilson's interval, and an AUC Newcombe's (2006, his method 5): the values whose
own standard error reaches what was found. Means that have no such end are resampled (`bootstrap`), with two samples more where
they are of losses.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.special import ndtri

from gramfold.evaluation.statistics import CONFIDENCE

Interval = tuple[float, float]
HALVINGS = 50
Z = float(ndtri((1 + CONFIDENCE) / 2))
"""Standard errors to either side of a normal figure that hold it with that confidence."""


def wilson(right: float, n: float) -> Interval:
    """Of a share.

    >>> low, high = wilson(10, 10)
    >>> round(low, 2), high
    (0.72, 1.0)
    """
    z = Z
    centre, room = (right + z**2 / 2) / (n + z**2), z * np.sqrt(right * (1 - right / n) + z**2 / 4) / (n + z**2)
    return max(0.0, float(centre - room)) if right else 0.0, min(1.0, float(centre + room)) if right < n else 1.0


def of_auc(found: float, positives: int, negatives: int) -> Interval:
    """Of an area under the ROC curve.

    >>> low, high = of_auc(1.0, 3, 7)
    >>> round(low, 2), high
    (0.6, 1.0)
    """
    z, half = Z, (positives + negatives) / 2

    def reaches(area: float) -> bool:
        """Whether what was found lies within z standard errors of a true area (Hanley and McNeil's, for classes alike in
        size)."""
        spread = 2 * half - 1 - (3 * half - 3) / ((2 - area) * (1 + area))
        return (found - area) ** 2 <= z**2 * area * (1 - area) * spread / (positives * negatives)

    return _end(reaches, found, 0.0), _end(reaches, found, 1.0)


def of_mean(values: Sequence[float], intervals: Sequence[Interval]) -> Interval:
    """Of the mean of independent figures, from their own: what they reach to either side adds up as squares do (Zou and Donner's
    MOVER), so that nothing but the intervals themselves is needed.

    >>> of_mean([0.5, 0.7], [(0.2, 0.6), (0.3, 0.8)])
    (0.35, 0.6707106781186547)
    """
    middle, (lows, highs) = np.asarray(values, float), np.asarray(intervals, float).T
    reach = [float(np.sqrt(((middle - end) ** 2).sum())) / len(middle) for end in (lows, highs)]
    return float(middle.mean()) - reach[0], float(middle.mean()) + reach[1]


def percentiles(values: np.ndarray) -> Interval:
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def percentiles_of(values: Mapping[str, np.ndarray]) -> dict[str, Interval]:
    """Of several, each with as many draws; at once, since NumPy takes longer to begin than to count."""
    if not values:
        return {}
    drawn = np.stack(list(values.values()))
    lows, highs = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=1)
    return {key: (float(low), float(high)) for key, low, high in zip(values, lows, highs, strict=True)}


def _end(reaches: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where it ends between a value that is inside and one that may not be."""
    if inside == outside:
        return outside
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if reaches(middle) else (inside, middle)
    return (inside + outside) / 2
