"""The score of one head on one test split, and summaries over clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.evaluation.calibration import BINS, Calibration
from gramfold.evaluation.ranking import auc
from gramfold.federation import Samples
from gramfold.heads import Head, Mapped
from gramfold.numerics.arrays import to_numpy

MAX_SAMPLES = 2**53
"""A bound on plausible sample counts: the largest integer up to which float64 is exact."""
LEAST = np.finfo(np.float64).tiny
"""The least probability that counts as one: the logarithm of none at all is no number."""


@dataclass(frozen=True)
class Scored:
    """A head on n samples: correct predictions for classification, summed squared error for regression; and what goes beside."""

    n: int
    right: int = 0
    squared_error: float = 0.0
    calibration: Calibration | None = field(default=None, repr=False)
    surprise: float | None = field(default=None, repr=False)
    """The sum of -log p of the true classes, where the head gives probabilities."""
    auc: float | None = field(default=None, repr=False)
    """See `ranking.auc`."""
    balanced_accuracy: float | None = field(default=None, repr=False)
    """The mean over the classes present of the part of each that was found."""
    variation: float = field(default=0.0, repr=False)
    """The summed squares of the targets around their mean: what is there to be explained."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for a message."""
        bins = None if self.calibration is None else {key: part.tolist() for key, part in vars(self.calibration).items()}
        return {**vars(self), "calibration": bins}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Scored":
        """The inverse of `to_dict`, validated."""
        bins, calibration = fields["calibration"], None
        if bins is not None:
            calibration = Calibration(**{key: np.array(part, float) for key, part in bins.items()})
            if any(part.shape != (BINS,) or not np.isfinite(part).all() for part in vars(calibration).values()):
                raise GramfoldError(f"a calibration has {BINS} bins of finite numbers")
        surprise, area, balanced = (  # absent from files of old
            None if fields.get(key) is None else float(fields[key]) for key in ("surprise", "auc", "balanced_accuracy")
        )
        sizes = int(fields["n"]), int(fields["right"]), float(fields["squared_error"])
        scored = cls(*sizes, calibration, surprise, area, balanced, float(fields.get("variation", 0.0)))
        if not (0 <= scored.right <= scored.n < MAX_SAMPLES and 0 <= scored.squared_error < np.inf):
            raise GramfoldError(f"{scored.right} right of {scored.n} samples, squared error {scored.squared_error:g}: impossible")
        return scored

    @property
    def accuracy(self) -> float | None:
        return self.right / self.n if self.n else None

    @property
    def log_loss(self) -> float | None:
        return None if self.surprise is None or not self.n else self.surprise / self.n

    @property
    def rmse(self) -> float | None:
        return float(np.sqrt(self.squared_error / self.n)) if self.n else None

    @property
    def r2(self) -> float | None:
        """The part of the targets' variation that is explained; None where they do not vary."""
        return 1.0 - self.squared_error / self.variation if self.variation else None


@dataclass(frozen=True)
class Evaluation:
    """A head on n samples, as figures: those of its kind of task, None for the others."""

    n: int
    accuracy: float | None = None
    rmse: float | None = None
    calibration_error: float | None = None
    """Expected calibration error, where the head gives probabilities."""
    balanced_accuracy: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    r2: float | None = None

    @classmethod
    def of(cls, scored: Scored, classification: bool) -> "Evaluation":
        if not classification:
            return cls(scored.n, rmse=scored.rmse, r2=scored.r2)
        error = None if scored.calibration is None else scored.calibration.expected_error
        return cls(scored.n, scored.accuracy, None, error, scored.balanced_accuracy, scored.auc, scored.log_loss)


def score_head(head: Head, samples: Samples, mapped: Mapped | None = None) -> Scored:
    """The score of a head on samples; `mapped` is what heads scored on the same samples have in common."""
    if not samples.n:
        return Scored(0)
    scores, targets = to_numpy(head.scores(samples.inputs, mapped)), to_numpy(samples.targets)
    if head.labels is None:
        errors, around = (float((part**2).sum()) for part in (scores - targets, targets - targets.mean(0)))
        return Scored(samples.n, squared_error=errors, variation=around)
    calibration = surprise = None
    if head.probabilistic:
        scores = head.probabilities(scores)
        calibration = Calibration.of(scores, targets)
        surprise = float(-np.log(np.maximum(scores[np.arange(len(targets)), targets], LEAST)).sum())
    found = scores.argmax(1) == targets
    counts = np.bincount(targets)
    recalls = (np.bincount(targets, found) / np.maximum(counts, 1))[counts > 0]
    return Scored(samples.n, int(found.sum()), 0.0, calibration, surprise, auc(scores, targets), float(recalls.mean()))


def main_figure(head: Head, samples: Samples) -> float:
    """A head's accuracy, or a regressor's RMSE, and nothing else: with many classes far quicker than `score_head`."""
    scores, targets = to_numpy(head.scores(samples.inputs)), to_numpy(samples.targets)
    if head.labels is None:
        return float(np.sqrt(((scores - targets) ** 2).sum() / len(targets)))
    return float((scores.argmax(1) == targets).mean())


def mean(values: Sequence[float]) -> float | None:
    """The unweighted mean over clients; None where there are none."""
    return float(np.mean(values)) if len(values) else None


def weighted_mean(values: Sequence[float], weights: Sequence[int]) -> float | None:
    return float(np.average(values, weights=weights)) if sum(weights) else None


def worst_decile(values: Sequence[float]) -> float | None:
    """The mean of the worst tenth of the clients (at least one)."""
    return float(np.mean(np.sort(values)[: max(1, len(values) // 10)])) if len(values) else None
