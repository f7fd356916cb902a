"""The score of one head on one test split, and summaries over clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramfold.errors import SamplesError
from gramfold.evaluation import bootstrap, intervals
from gramfold.evaluation.bootstrap import Ranked
from gramfold.evaluation.calibration import BINS, Calibration
from gramfold.evaluation.intervals import Interval
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
    quadratic: float | None = field(default=None, repr=False)
    """The sum of the squared errors of the probabilities: of the second class's where there are two, else over all classes."""
    average_precision: float | None = field(default=None, repr=False)
    """Of two classes, for the one that fewer of these samples are of; None where there is one alone."""
    positives: int | None = field(default=None, repr=False)
    """How many samples are of the second class, of two."""
    reliability: Calibration | None = field(default=None, repr=False)
    """That of the second class's probability, of two."""
    intervals: Mapping[str, Interval] = field(default_factory=dict, repr=False)
    """95 % confidence intervals, by the measure's name."""
    draws: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)
    """The measures of resampled test splits (`bootstrap`); they stay where they were made."""

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for a message."""
        kept = {key: value for key, value in vars(self).items() if key != "draws"}
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
        optional = ("surprise", "auc", "balanced_accuracy", "quadratic", "average_precision")  # some are absent from files of old
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

    @property
    def log_loss(self) -> float | None:
        return None if self.surprise is None or not self.n else self.surprise / self.n

    @property
    def brier(self) -> float | None:
        return None if self.quadratic is None or not self.n else self.quadratic / self.n

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
    brier: float | None = None
    average_precision: float | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """95 % confidence intervals, by the figure's name."""

    @classmethod
    def of(cls, scored: Scored, classification: bool) -> "Evaluation":
        if not classification:
            return cls(scored.n, rmse=scored.rmse, r2=scored.r2, intervals=scored.intervals)
        error = None if scored.calibration is None else scored.calibration.expected_error
        return cls(
            scored.n, scored.accuracy, None, error, scored.balanced_accuracy, scored.auc, scored.log_loss, None, scored.brier,
            scored.average_precision, scored.intervals,
        )  # fmt: skip

    def for_card(self) -> dict[str, Any]:
        """As a model card has them: each with its interval, where that is known."""
        known = {key: getattr(self, key) for key in ("auc", "log_loss", "brier", "average_precision", "r2")}
        named = {"accuracy": self.accuracy, "rmse": self.rmse, "calibration_error": self.calibration_error}
        named |= {key: value for key, value in known.items() if value is not None}
        ends = {f"test_{key}_interval": list(self.intervals[key]) for key in named if key in self.intervals}
        return {**{f"test_{key}": value for key, value in named.items()}, **ends}


def score_head(head: Head, samples: Samples, mapped: Mapped | None = None, uncertain: bool = True) -> Scored:
    """The score of a head on samples; `mapped` is what heads scored on the same samples have in common. `uncertain`: with
    intervals."""
    if not samples.n:
        return Scored(0)
    scores, targets = to_numpy(head.scores(samples.inputs, mapped)), to_numpy(samples.targets)
    scored = _of_values(scores, targets) if head.labels is None else _of_classes(head, scores, targets)
    if not uncertain:
        return scored
    draws = {} if samples.n < 2 else _resampled(head, scores, targets, bootstrap.weights_of(samples), scored)
    ends = {key: intervals.percentiles(values) for key, values in draws.items()}
    if head.probabilistic and draws:
        ends |= _with_two_more(head.probabilities(scores), samples, draws)
    if head.labels is not None:
        ends["accuracy"] = intervals.wilson(scored.right, scored.n)
        if scored.positives is not None and scored.auc is not None:
            ends["auc"] = intervals.of_auc(scored.auc, scored.positives, scored.n - scored.positives)
        if scored.average_precision == 1.0 and scored.positives is not None:  # at its end, as an accuracy is
            rarer = min(scored.positives, scored.n - scored.positives)
            ends["average_precision"] = intervals.wilson(rarer, rarer)
    return replace(scored, intervals=ends, draws=draws)


def _of_values(predicted: np.ndarray, targets: np.ndarray) -> Scored:
    errors, around = (float((part**2).sum()) for part in (predicted - targets, targets - targets.mean(0)))
    return Scored(len(targets), squared_error=errors, variation=around)


def _of_classes(head: Head, scores: np.ndarray, codes: np.ndarray) -> Scored:
    calibration = surprise = quadratic = reliability = precision = positives = None
    if head.probabilistic:
        scores = head.probabilities(scores)
        calibration = Calibration.of(scores, codes)
        surprise, quadratic = (float(part.sum()) for part in _losses(scores, codes))
    if scores.shape[1] == 2:
        positives = int(codes.sum())
        reliability = Calibration.of_second(scores[:, 1], codes) if head.probabilistic else None
        if 0 < positives < len(codes):
            precision = bootstrap.average_precision(*_rarer(scores, codes))
    found = scores.argmax(1) == codes
    counts = np.bincount(codes)
    recalls = (np.bincount(codes, found) / np.maximum(counts, 1))[counts > 0]
    return Scored(
        len(codes), int(found.sum()), 0.0, calibration, surprise, auc(scores, codes), float(recalls.mean()),
        quadratic=quadratic, average_precision=precision, positives=positives, reliability=reliability,
    )  # fmt: skip


def _losses(shares: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """-log p of the true class, and the squared error of the probabilities, for each sample."""
    rows = np.arange(len(codes))
    surprises = -np.log(np.maximum(shares[rows, codes], LEAST))
    if shares.shape[1] == 2:
        return surprises, (shares[:, 1] - codes) ** 2
    squares = (shares**2).sum(1) - 2 * shares[rows, codes] + 1
    return surprises, squares


def _rarer(scores: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much of two classes the rarer one each sample seems to be, and whether it is of it; of two alike the second."""
    second = 2 * codes.sum() <= len(codes)
    apart = scores[:, 1] - scores[:, 0]
    return (apart, codes == 1) if second else (-apart, codes == 0)


def _resampled(head: Head, scores: np.ndarray, targets: np.ndarray, weights: np.ndarray, scored: Scored) -> dict[str, np.ndarray]:
    """Measures of resampled test splits."""
    if head.labels is None:
        errors = weights @ ((scores - targets) ** 2).sum(1)
        variation = (weights @ targets**2 - (weights @ targets) ** 2).sum(1)
        drawn = {"rmse": np.sqrt(errors)}
        return drawn | {"r2": 1 - errors / variation} if scored.variation and (variation > 0).all() else drawn
    drawn = {"accuracy": weights @ (scores.argmax(1) == targets)}
    if head.probabilistic:
        scores = head.probabilities(scores)
        surprises, squares = _losses(scores, targets)
        drawn |= {"log_loss": weights @ surprises, "brier": weights @ squares}
    if scored.average_precision is not None:
        ranked = Ranked(*_rarer(scores, targets), weights)
        drawn |= {"auc": ranked.auc(), "average_precision": ranked.average_precision()}
    return drawn


def _with_two_more(shares: np.ndarray, samples: Samples, draws: Mapping[str, np.ndarray]) -> dict[str, Interval]:
    """The intervals of means of losses, wide enough for what was not drawn of a class."""
    more = bootstrap.TwoMore.of(shares, samples)
    losses = _losses(shares[more.rows.ravel()], more.codes.ravel())
    ends = {}
    for key, each in zip(("log_loss", "brier"), losses, strict=True):
        wider = intervals.percentiles(more.added(draws[key], each.reshape(more.codes.shape)))
        low, high = intervals.percentiles(draws[key])
        ends[key] = min(low, wider[0]), max(high, wider[1])
    return ends


def main_figure(head: Head, samples: Samples) -> float:
    """A head's accuracy, or a regressor's RMSE, and nothing else: with many classes far quicker than `score_head`."""
    scores, targets = to_numpy(head.scores(samples.inputs)), to_numpy(samples.targets)
    if head.labels is None:
        return float(np.sqrt(((scores - targets) ** 2).sum() / len(targets)))
    return float((scores.argmax(1) == targets).mean())


def _bins(fields: Any) -> Calibration | None:
    """A calibration as it was written, checked."""
    if fields is None:
        return None
    made = Calibration(**{key: np.array(part, float) for key, part in fields.items()})
    if any(part.shape != (BINS,) or not np.isfinite(part).all() for part in vars(made).values()):
        raise SamplesError(f"a calibration has {BINS} bins of finite numbers")
    return made


def mean(values: Sequence[float]) -> float | None:
    """The unweighted mean over clients; None where there are none."""
    return float(np.mean(values)) if len(values) else None


def weighted_mean(values: Sequence[float], weights: Sequence[int]) -> float | None:
    return float(np.average(values, weights=weights)) if sum(weights) else None


def worst_decile(values: Sequence[float]) -> float | None:
    """The mean of the worst tenth of the clients (at least one)."""
    return float(np.mean(np.sort(values)[: max(1, len(values) // 10)])) if len(values) else None
