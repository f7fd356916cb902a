"""The score of one head on one test split, and summaries over clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramfold.evaluation import bootstrap, intervals
from gramfold.evaluation.bootstrap import Ranked
from gramfold.evaluation.calibration import Calibration
from gramfold.evaluation.intervals import Interval
from gramfold.evaluation.ranking import auc
from gramfold.evaluation.scored import LEAST, Scored
from gramfold.evaluation.several import score_labels
from gramfold.federation import Samples
from gramfold.heads import Head, Together
from gramfold.heads.counts import Counts
from gramfold.heads.several import SeveralLabels
from gramfold.numerics.arrays import to_numpy

NUMBERS = 2**25
"""Of features that are made of test samples at a time, where these are several clients'."""
LEAST_COUNT = 1e-3
"""The least mean count: where a sample has one after all, the logarithm of none would be no number."""
BESIDE = ("auc", "log_loss", "brier", "average_precision", "r2", "f1", "rank_error", "rps", "deviance")
"""Figures that a card has where they are known."""


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
    f1: float | None = None
    rank_error: float | None = None
    rps: float | None = None
    deviance: float | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """95 % confidence intervals, by the figure's name."""

    @classmethod
    def of(cls, scored: Scored, classification: bool) -> "Evaluation":
        if not classification:
            return cls(scored.n, rmse=scored.rmse, r2=scored.r2, deviance=scored.deviance, intervals=scored.intervals)
        error = None if scored.calibration is None else scored.calibration.expected_error
        return cls(
            scored.n, scored.accuracy, None, error, scored.balanced_accuracy, scored.auc, scored.log_loss, None, scored.brier,
            scored.average_precision, scored.f1, scored.rank_error, scored.rps, intervals=scored.intervals,
        )  # fmt: skip

    def for_card(self) -> dict[str, Any]:
        """As a model card has them: each with its interval, where that is known."""
        known = {key: getattr(self, key) for key in BESIDE}
        named = {"accuracy": self.accuracy, "rmse": self.rmse, "calibration_error": self.calibration_error}
        named |= {key: value for key, value in known.items() if value is not None}
        ends = {f"test_{key}_interval": list(self.intervals[key]) for key in named if key in self.intervals}
        return {**{f"test_{key}": value for key, value in named.items()}, **ends}


def score_head(head: Head, samples: Samples, uncertain: bool = True) -> Scored:
    """The score of a head on samples. `uncertain`: with intervals."""
    if not samples.n:
        return Scored(0)
    return scored_by(head, to_numpy(head.scores(samples.inputs)), samples, uncertain)


def score_each(
    heads: Sequence[Head], shared: Head | None, samples: Sequence[Samples], device: str = "cpu"
) -> list[tuple[Scored, Scored | None]]:
    """The scores of several heads, each on samples of its own, and those of a shared head on the same; computed on a device."""
    found: list[tuple[Scored, Scored | None]] = [(Scored(0), Scored(0) if shared is not None else None)] * len(heads)
    there = [k for k, each in enumerate(samples) if each.n]
    width = max((stream.map.dim for head in heads for stream in head.streams), default=1)
    for some in _in_runs(there, [each.n for each in samples], width):
        own = [heads[k] for k in some]
        together = Together(own, [samples[k].inputs for k in some], device)
        for k, mine in zip(some, together.scores(own), strict=True):
            found[k] = scored_by(heads[k], mine, samples[k]), found[k][1]
        if shared is not None:
            for k, common in zip(some, together.scores([shared] * len(some)), strict=True):
                found[k] = found[k][0], scored_by(shared, common, samples[k], uncertain=False)
    return found


def _in_runs(places: Sequence[int], sizes: Sequence[int], width: int) -> list[list[int]]:
    """Places one after another, as many together as memory is for."""
    runs: list[list[int]] = []
    room = 0
    for place in places:
        if not runs or sizes[place] * width > room:
            runs, room = [*runs, []], NUMBERS
        runs[-1].append(place)
        room -= sizes[place] * width
    return runs


def scored_by(head: Head, scores: np.ndarray, samples: Samples, uncertain: bool = True) -> Scored:
    """The same from the head's scores."""
    targets = to_numpy(samples.targets)
    if isinstance(head, SeveralLabels):
        return score_labels(head, scores, samples, targets, uncertain)
    scored = _of_values(head, scores, targets) if head.labels is None else _of_classes(head, scores, targets)
    if not uncertain:
        return scored
    draws = {} if samples.n < 2 else _resampled(head, scores, targets, bootstrap.weights_of(samples), scored)
    more = _with_two_more(head.probabilities(scores), samples, draws) if head.probabilistic and draws else {}
    wider = intervals.percentiles_of({**draws, **{f"{key}, wider": values for key, values in more.items()}})
    ends = {key: wider[key] for key in draws}
    for key in more:
        (low, high), (lower, higher) = wider[key], wider[f"{key}, wider"]
        ends[key] = min(low, lower), max(high, higher)
    if head.labels is not None:
        ends["accuracy"] = intervals.wilson(scored.right, scored.n)
        if scored.positives is not None and scored.auc is not None:
            ends["auc"] = intervals.of_auc(scored.auc, scored.positives, scored.n - scored.positives)
        if scored.average_precision == 1.0 and scored.positives is not None:  # at its end, as an accuracy is
            rarer = min(scored.positives, scored.n - scored.positives)
            ends["average_precision"] = intervals.wilson(rarer, rarer)
    return replace(scored, intervals=ends, draws=draws)


def _of_values(head: Head, predicted: np.ndarray, targets: np.ndarray) -> Scored:
    errors, around = (float((part**2).sum()) for part in (predicted - targets, targets - targets.mean(0)))
    deviances = float(poisson_deviances(predicted, targets).sum()) if isinstance(head, Counts) else None
    return Scored(len(targets), squared_error=errors, variation=around, deviances=deviances)


def poisson_deviances(predicted: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """2 (y log(y / m) - y + m) of each sample; a prediction of none at all counts as one of LEAST_COUNT.

    >>> poisson_deviances(np.array([[2.0], [1.0]]), np.array([[2.0], [0.0]])).tolist()
    [0.0, 2.0]
    """
    mean, counts = np.maximum(predicted[:, 0], LEAST_COUNT), counts[:, 0]
    return np.asarray(2 * (counts * np.log(np.maximum(counts, LEAST) / mean) * (counts > 0) - counts + mean))


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
        **(_by_rank(head, scores, codes) if head.ordered else {}),
    )  # fmt: skip


def _by_rank(head: Head, shares: np.ndarray, codes: np.ndarray) -> dict[str, Any]:
    """By how many places predictions are off, and the ranked probability score: the squared errors of the probabilities of lying
    above each class, added up."""
    found: dict[str, Any] = {"rank_errors": float(np.abs(shares.argmax(1) - codes).sum())}
    if head.probabilistic:
        above, lies = 1 - shares.cumsum(1)[:, :-1], codes[:, None] > np.arange(shares.shape[1] - 1)
        found["rank_losses"] = float(((above - lies) ** 2).sum())
    return found


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
        if isinstance(head, Counts):
            drawn["deviance"] = weights @ poisson_deviances(scores, targets)
        return drawn | {"r2": 1 - errors / variation} if scored.variation and (variation > 0).all() else drawn
    drawn = {"accuracy": weights @ (scores.argmax(1) == targets)}
    if head.ordered:
        drawn["rank_error"] = weights @ np.abs(scores.argmax(1) - targets)
    if head.probabilistic:
        scores = head.probabilities(scores)
        surprises, squares = _losses(scores, targets)
        drawn |= {"log_loss": weights @ surprises, "brier": weights @ squares}
        if head.ordered:
            lies = targets[:, None] > np.arange(scores.shape[1] - 1)
            drawn["rps"] = weights @ ((1 - scores.cumsum(1)[:, :-1] - lies) ** 2).sum(1)
    if scored.average_precision is not None:
        ranked = Ranked(*_rarer(scores, targets), weights)
        drawn |= {"auc": ranked.auc(), "average_precision": ranked.average_precision()}
    return drawn


def _with_two_more(shares: np.ndarray, samples: Samples, draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Means of losses of resampled test splits, with what was not drawn of a class among them."""
    more = bootstrap.TwoMore.of(shares, samples)
    losses = _losses(shares[more.rows.ravel()], more.codes.ravel())
    pairs = zip(("log_loss", "brier"), losses, strict=True)
    return {key: more.added(draws[key], each.reshape(more.codes.shape)) for key, each in pairs}


def main_figure(head: Head, samples: Samples) -> float:
    """A head's accuracy, or a regressor's RMSE, and nothing else: with many classes far quicker than `score_head`."""
    scores, targets = to_numpy(head.scores(samples.inputs)), to_numpy(samples.targets)
    if isinstance(head, SeveralLabels):
        return float((head.marked(scores) == targets).all(1).mean())
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
