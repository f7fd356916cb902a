"""What a head's score on samples is made of, as plain numbers that travel."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramfold.errors import SamplesError
from gramfold.evaluation.calibration import BINS, Calibration
from gramfold.evaluation.intervals import Interval

MAX_SAMPLES = 2**53
"""A bound on plausible sample counts: the largest integer up to which float64 is exact."""
LEAST = np.finfo(np.float64).tiny
"""The least probability that counts as one: the logarithm of none at all is no number."""


class PerSample:
    """A figure that is a sum over samples, divided by their number."""

    def __init__(self, total: str) -> None:
        self.total = total

    def __get__(self, scored: "Scored", kind: type | None = None) -> float | None:
        total: float | None = getattr(scored, self.total)
        return None if total is None or not scored.n else total / scored.n


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
    quadratic: float | None = field(default=None, repr=False)
    """The sum of the squared errors of the probabilities: of the second class's where there are two, else over all classes."""
    average_precision: float | None = field(default=None, repr=False)
    """Of two classes, for the one that fewer of these samples are of; None where there is one alone."""
    positives: int | None = field(default=None, repr=False)
    """How many samples are of the second class, of two."""
    reliability: Calibration | None = field(default=None, repr=False)
    """That of the second class's probability, of two."""
    f1: float | None = field(default=None, repr=False)
    """Of several labels a sample: the mean over those that some samples have."""
    rank_errors: float | None = field(default=None, repr=False)
    """Of classes that have an order: the sum of how many places predictions are off."""
    rank_losses: float | None = field(default=None, repr=False)
    """Of those, where the head gives probabilities: the sum of the ranked probability scores."""
    deviances: float | None = field(default=None, repr=False)
    """Of counts: the sum of the Poisson deviances."""
    intervals: Mapping[str, Interval] = field(default_factory=dict, repr=False)
    """95 % confidence intervals, by the measure's name."""
    draws: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    """The measures of resampled test splits (`bootstrap`); they stay where they were made."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for a message."""
        beside = ("f1", "rank_errors", "rank_losses", "deviances")  # of targets that are more than a class or a value
        kept = {key: value for key, value in vars(self).items() if key != "draws" and not (key in beside and value is None)}
        for key in ("calibration", "reliability"):
            bins = kept[key]
            kept[key] = None if bins is None else {name: part.tolist() for name, part in vars(bins).items()}
        return {**kept, "intervals": {key: list(ends) for key, ends in self.intervals.items()}}

    def without_classes(self) -> "Scored":
        """The same without what tells how many samples are of which class."""
        told = ("auc", "average_precision")  # how wide their intervals are follows from that
        kept = {key: ends for key, ends in self.intervals.items() if key not in told}
        return replace(self, positives=None, reliability=None, intervals=kept)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Scored":
        """The inverse of `to_dict`, validated."""
        optional = (
            "surprise", "auc", "balanced_accuracy", "quadratic", "average_precision", "f1", "rank_errors", "rank_losses",
            "deviances",
        )  # some are absent from files of old  # fmt: skip
        numbers: dict[str, Any] = {key: None if fields.get(key) is None else float(fields[key]) for key in optional}
        ends = {str(key): (float(low), float(high)) for key, (low, high) in (fields.get("intervals") or {}).items()}
        scored = cls(
            int(fields["n"]), int(fields["right"]), float(fields["squared_error"]),
            calibration=_bins(fields.get("calibration")), reliability=_bins(fields.get("reliability")),
            variation=float(fields.get("variation", 0.0)), intervals=ends,
            positives=None if fields.get("positives") is None else int(fields["positives"]), **numbers,
        )  # fmt: skip
        if scored.positives is not None and not 0 <= scored.positives <= scored.n:
            raise SamplesError(f"{scored.positives} of {scored.n} samples of one class: impossible")
        if not (0 <= scored.right <= scored.n < MAX_SAMPLES and 0 <= scored.squared_error < np.inf):
            raise SamplesError(f"{scored.right} right of {scored.n} samples, squared error {scored.squared_error:g}: impossible")
        return scored

    @property
    def accuracy(self) -> float | None:
        return self.right / self.n if self.n else None

    log_loss = PerSample("surprise")
    brier = PerSample("quadratic")
    rank_error = PerSample("rank_errors")
    rps = PerSample("rank_losses")
    deviance = PerSample("deviances")

    @property
    def rmse(self) -> float | None:
        return float(np.sqrt(self.squared_error / self.n)) if self.n else None

    @property
    def r2(self) -> float | None:
        """The part of the targets' variation that is explained; None where they do not vary."""
        return 1.0 - self.squared_error / self.variation if self.variation else None


def _bins(fields: Any) -> Calibration | None:
    """A calibration as it was written, checked."""
    if fields is None:
        return None
    made = Calibration(**{key: np.array(part, float) for key, part in fields.items()})
    if any(part.shape != (BINS,) or not np.isfinite(part).all() for part in vars(made).values()):
        raise SamplesError(f"a calibration has {BINS} bins of finite numbers")
    return made
