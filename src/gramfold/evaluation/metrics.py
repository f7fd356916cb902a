"""The score of one head on one test split, and summaries over clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.evaluation.calibration import BINS, Calibration
from gramfold.federation import Samples
from gramfold.heads import Head
from gramfold.numerics.arrays import to_numpy

MAX_SAMPLES = 2**53
"""A bound on plausible sample counts: the largest integer up to which float64 is exact."""


@dataclass(frozen=True)
class Scored:
    """A head on n samples: correct predictions for classification, summed squared error for regression."""

    n: int
    right: int = 0
    squared_error: float = 0.0
    calibration: Calibration | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for a message."""
        bins = None if self.calibration is None else {key: part.tolist() for key, part in vars(self.calibration).items()}
        return {"n": self.n, "right": self.right, "squared_error": self.squared_error, "calibration": bins}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Scored":
        """The inverse of `to_dict`, validated."""
        bins, calibration = fields["calibration"], None
        if bins is not None:
            calibration = Calibration(**{key: np.array(part, float) for key, part in bins.items()})
            if any(part.shape != (BINS,) or not np.isfinite(part).all() for part in vars(calibration).values()):
                raise GramfoldError(f"a calibration has {BINS} bins of finite numbers")
        scored = cls(int(fields["n"]), int(fields["right"]), float(fields["squared_error"]), calibration)
        if not (0 <= scored.right <= scored.n < MAX_SAMPLES and 0 <= scored.squared_error < np.inf):
            raise GramfoldError(f"{scored.right} right of {scored.n} samples, squared error {scored.squared_error:g}: impossible")
        return scored

    @property
    def accuracy(self) -> float | None:
        return self.right / self.n if self.n else None

    @property
    def rmse(self) -> float | None:
        return float(np.sqrt(self.squared_error / self.n)) if self.n else None


@dataclass(frozen=True)
class Evaluation:
    """A head on n samples, as figures: those of its kind of task, None for the others."""

    n: int
    accuracy: float | None = None
    rmse: float | None = None
    calibration_error: float | None = None
    """Expected calibration error, where the head gives probabilities."""

    @classmethod
    def of(cls, scored: Scored, classification: bool) -> "Evaluation":
        if not classification:
            return cls(scored.n, rmse=scored.rmse)
        error = None if scored.calibration is None else scored.calibration.expected_error
        return cls(scored.n, scored.accuracy, calibration_error=error)


def score_head(head: Head, samples: Samples) -> Scored:
    """The score of a head on samples."""
    if not samples.n:
        return Scored(0)
    scores, targets = to_numpy(head.scores(samples.inputs)), to_numpy(samples.targets)
    if head.labels is None:
        return Scored(samples.n, squared_error=float(((scores - targets) ** 2).sum()))
    calibration = Calibration.of(head.probabilities(scores), targets) if head.probabilistic else None
    return Scored(samples.n, int((scores.argmax(1) == targets).sum()), calibration=calibration)


def mean(values: Sequence[float]) -> float | None:
    """The unweighted mean over clients; None where there are none."""
    return float(np.mean(values)) if len(values) else None


def weighted_mean(values: Sequence[float], weights: Sequence[int]) -> float | None:
    return float(np.average(values, weights=weights)) if sum(weights) else None


def worst_decile(values: Sequence[float]) -> float | None:
    """The mean of the worst tenth of the clients (at least one)."""
    return float(np.mean(np.sort(values)[: max(1, len(values) // 10)])) if len(values) else None
