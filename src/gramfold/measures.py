"""The measures of a head, which of them lead for a task, and how people read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measure:
    """`key`: its name in Python and in files; `title`: its name for people."""

    key: str
    title: str
    what: str
    less_is_better: bool = False
    percent: bool = False
    least: float = 0.0
    most: float | None = None
    """Its bounds; None: there is none above."""

    def shown(self, value: float, digits: int | None = None) -> str:
        """
        >>> MEASURES["accuracy"].shown(0.8312), MEASURES["auc"].shown(0.8312)
        ('83.1', '0.831')
        """
        return f"{100 * value:.{1 if digits is None else digits}f}" if self.percent else f"{value:.{digits or 3}f}"

    def within(self, value: float) -> float:
        """The value, no farther than the measure's bounds."""
        return max(self.least, value if self.most is None else min(value, self.most))

    @property
    def unit(self) -> str:
        return f"{self.title} %" if self.percent else self.title


MEASURES = {
    measure.key: measure
    for measure in (
        Measure("accuracy", "accuracy", "the part of the samples whose class was found", percent=True, most=1.0),
        Measure("auc", "AUC", "the area under the ROC curve, a class against the others", most=1.0),
        Measure("log_loss", "log loss", "the mean of -log p of the true class", less_is_better=True),
        Measure("brier", "Brier", "the mean squared error of the probabilities", less_is_better=True, most=2.0),
        Measure("average_precision", "AP", "the mean precision over all recalls of the rarer class", most=1.0),
        Measure("f1", "F1", "the mean over labels of twice those found, over those said and those to be found", most=1.0),
        Measure("rank_error", "places off", "of ordered classes: how many places predictions are off", less_is_better=True),
        Measure("rps", "RPS", "the squared errors of the probabilities of lying above each class, added up", less_is_better=True),
        Measure("deviance", "deviance", "the mean Poisson deviance of counts", less_is_better=True),
        Measure("rmse", "RMSE", "the root mean squared error", less_is_better=True),
        Measure("r2", "R2", "the part of the variation explained", least=-float("inf"), most=1.0),
    )
}

UNEQUAL, RARE = 0.4, 0.1
"""Shares of the rarer of two classes: below the first accuracy says little, as always naming the other class is hard to beat;
below the second finding its samples is the task."""


OF_TARGETS = {
    "labels": ["average_precision", "f1", "log_loss", "accuracy"],
    "ordered": ["accuracy", "rank_error", "rps", "log_loss"],
    "counts": ["deviance", "rmse", "r2"],
}
"""The measures of targets that are more than a class or a value."""


def leading(classification: bool, classes: int, rarer: float | None, targets: str = "") -> list[str]:
    """The measures that a result is judged by, the first of them first. `rarer`: the rarer class's share, of two; `targets`: as
    in `Task.targets`.

    >>> leading(True, 2, 0.03), leading(True, 2, 0.5), leading(False, 1, None)
    (['auc', 'log_loss', 'brier', 'average_precision', 'accuracy'], ['accuracy', 'auc', 'log_loss'], ['rmse', 'r2'])
    """
    if targets:
        return list(OF_TARGETS[targets])
    if not classification:
        return ["rmse", "r2"]
    if classes != 2:
        return ["accuracy", "log_loss"]
    if rarer is None or rarer >= UNEQUAL:
        return ["accuracy", "auc", "log_loss"]
    return ["auc", "log_loss", "brier", *(["average_precision"] if rarer < RARE else []), "accuracy"]


def leading_of(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those of entries of result.json, which must have them all; files of old say none, and have accuracies or errors."""
    first = entries[0].get("measures") if entries else None
    named = first or (["rmse"] if entries and all("mean_rmse" in entry for entry in entries) else ["accuracy"])
    return [key for key in named if all(f"mean_{key}" in entry for entry in entries)] or ["accuracy"]


def main_measure(entries: Sequence[Mapping[str, Any]]) -> Measure:
    """The first measure that leads, of those that some entry has a mean of."""
    keys = leading_of(entries)
    known = [key for key in keys if any(entry.get(f"mean_{key}") is not None for entry in entries)]
    return MEASURES[(known or keys)[0]]
