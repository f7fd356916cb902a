"""Means with their uncertainty: standard errors, Student's t intervals, paired differences."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean of n values, its standard error and its confidence interval; of fewer than two values there is only the mean.

    >>> seen = Estimate.of([1.0, 2.0, 3.0])
    >>> seen.mean, round(seen.standard_error, 3), round(seen.ci_low, 2), round(seen.ci_high, 2)
    (2.0, 0.577, -0.48, 4.48)
    """

    n: int
    mean: float | None
    standard_error: float | None
    ci_low: float | None
    ci_high: float | None

    @classmethod
    def of(cls, values: Sequence[float], confidence: float = CONFIDENCE) -> "Estimate":
        n = len(values)
        if n < 2:
            return cls(n, float(values[0]) if n else None, None, None, None)
        mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(n))
        half = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
        return cls(n, mean, error, mean - half, mean + half)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Difference(Estimate):
    """The mean of paired differences, and the two-sided p-value of the paired t-test; None where all differences are zero."""

    p_value: float | None

    @classmethod
    def between(cls, values: Sequence[float], others: Sequence[float], confidence: float = CONFIDENCE) -> "Difference":
        """Of values minus others, pair by pair."""
        differences = [value - other for value, other in zip(values, others, strict=True)]
        found, p_value = Estimate.of(differences, confidence), None
        if found.mean is not None and found.standard_error is not None and (found.standard_error or found.mean):
            t = abs(found.mean) / found.standard_error if found.standard_error else np.inf
            p_value = 2 * float(stdtr(found.n - 1, -t))
        return cls(**asdict(found), p_value=p_value)
