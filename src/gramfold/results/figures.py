"""Figures of a run: a client's own, and what follows from those of all clients."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from gramfold import evaluation
from gramfold.evaluation import Calibration, Interval, Scored
from gramfold.evaluation.intervals import of_mean
from gramfold.measures import MEASURES, leading
from gramfold.wire.record import plain

OF_CLASSES = ("accuracy", "balanced_accuracy", "auc", "log_loss", "brier", "average_precision")
OF_VALUES = ("rmse", "r2")
"""The figures of a client, for classes and for regression."""
OF_TARGETS = {"labels": ("f1",), "ordered": ("rank_error", "rps"), "counts": ("deviance",)}
"""Those beside, by what targets are."""
SINGLE = ("auc", "log_loss", "brier", "average_precision")
"""Those of classes that have a mean, a worst decile and a shared model's figure, all by one rule."""
OF_ALL_CLASSES = (
    "mean_accuracy", "weighted_accuracy", "worst_decile_accuracy", "global_accuracy", "mean_balanced_accuracy",
    *(f"{over}_{key}" for key in SINGLE for over in ("mean", "worst_decile", "global")), "log_loss",
)  # fmt: skip
OF_ALL_VALUES = ("mean_rmse", "weighted_rmse", "worst_decile_rmse", "global_rmse", "r2", "mean_r2")
"""Those over all clients."""
SHOWN = 6
"""Significant digits of a draw, in a file."""


class OfScore:
    """A figure of a client's own model, by the name that its score has for it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, client: "ClientResult", kind: type | None = None) -> float | None:
        found: float | None = getattr(client.scored, self.name)
        return found


@dataclass(frozen=True)
class ClientResult:
    """One client: its sizes, its final model's score on its own test split, and the bytes it sent and received."""

    name: str
    train: int
    scored: Scored
    shared: Scored | None = field(repr=False)
    """The shared model on the same test split."""
    uplink_bytes: int
    downlink_bytes: int
    chosen: Mapping[str, Any]

    @property
    def test(self) -> int:
        return self.scored.n

    accuracy, balanced_accuracy, log_loss, brier = OfScore(), OfScore(), OfScore(), OfScore()
    auc, average_precision = OfScore(), OfScore()
    """None where its test samples are of one class alone."""
    rmse, r2 = OfScore(), OfScore()
    f1 = OfScore()
    """Of several labels a sample."""
    rank_error, rps = OfScore(), OfScore()
    """Of classes that have an order: how many places predictions are off, and the ranked probability score."""
    deviance = OfScore()
    """Of counts."""

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """95 % confidence intervals of these, by name."""
        return self.scored.intervals

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        shared = None if self.shared is None else self.shared.to_dict()
        return dict(plain({**vars(self), "scored": self.scored.to_dict(), "shared": shared, "chosen": dict(self.chosen)}))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "ClientResult":
        shared = None if fields["shared"] is None else Scored.from_dict(fields["shared"])
        return cls(**{**fields, "scored": Scored.from_dict(fields["scored"]), "shared": shared})


def _three(key: str) -> tuple[property, property, property]:
    """A measure over the clients whose own it is defined for: the mean, all clients alike; the mean over the worst tenth of them;
    and the mean of the shared model's on each client's own test samples."""
    return tuple(property(partial(rule, key=key)) for rule in (_mean_of, _worst_of, _shared_of))  # type: ignore[return-value]


def _mean_of(figures: "Figures", key: str) -> float | None:
    return evaluation.mean(figures._known(key))


def _worst_of(figures: "Figures", key: str) -> float | None:
    sign = -1.0 if MEASURES[key].less_is_better else 1.0
    worst = evaluation.worst_decile([sign * value for value in figures._known(key)])
    return None if worst is None else sign * worst


def _shared_of(figures: "Figures", key: str) -> float | None:
    values = [getattr(client.shared, key) for client in figures._tested() if client.shared is not None]
    return evaluation.mean([value for value in values if value is not None])


class Figures(ABC):
    """What follows from the clients' scores, for a result that has them."""

    clients: Mapping[str, ClientResult]

    @property
    @abstractmethod
    def classification(self) -> bool:
        """Whether clients predict classes; else continuous values."""

    @property
    @abstractmethod
    def targets(self) -> str:
        """What targets are where they are more than a class or a value: see `sources.targets`."""

    @property
    def of_clients(self) -> tuple[str, ...]:
        """The figures of a client."""
        return *(OF_CLASSES if self.classification else OF_VALUES), *OF_TARGETS.get(self.targets, ())

    def _means(self) -> dict[str, float | None]:
        """Those over all clients, by name."""
        beside = (f"{over}_{key}" for key in OF_TARGETS.get(self.targets, ()) for over in ("mean", "worst_decile", "global"))
        named = *(OF_ALL_CLASSES if self.classification else OF_ALL_VALUES), *beside
        return {name: getattr(self, name) for name in named}

    # --- which measures, and how sure they are ---

    @property
    @abstractmethod
    def classes(self) -> int:
        """How many classes there are; 1 for regression."""

    @property
    def measures(self) -> list[str]:
        """The measures that fit the task, the first of them first: where two classes are of unequal share AUC and log loss, as an
        accuracy says little then; for regression RMSE and R2."""
        tested = [client.scored for client in self._tested()]
        known = [scored.positives for scored in tested if scored.positives is not None]
        share = sum(known) / max(sum(scored.n for scored in tested if scored.positives is not None), 1)
        return leading(self.classification, self.classes, min(share, 1 - share) if known else None, self.targets)

    @property
    def intervals(self) -> dict[str, Interval]:
        """95 % confidence intervals of the means over clients, by their names: from the clients' own."""
        found = {}
        for key in MEASURES:
            known = [c.scored for c in self._tested() if getattr(c.scored, key) is not None]
            if known and all(key in scored.intervals for scored in known):
                low, high = of_mean([getattr(scored, key) for scored in known], [scored.intervals[key] for scored in known])
                found[f"mean_{key}"] = MEASURES[key].within(low), MEASURES[key].within(high)
        return found

    def _draws(self) -> dict[str, list[float]]:
        """The means over clients of the measures that lead, in resampled test splits: the same ones for every method."""
        drawn = {}
        for key in self.measures:
            known = [c.scored.draws.get(key) for c in self._tested() if getattr(c.scored, key) is not None]
            if known and all(one is not None for one in known):
                means = np.mean([one for one in known if one is not None], axis=0)
                drawn[f"mean_{key}"] = [float(f"{value:.{SHOWN}g}") for value in means]
        return drawn

    def _tested(self) -> Sequence[ClientResult]:
        return [client for client in self.clients.values() if client.test]

    # --- accuracies: None for regression ---

    @property
    def mean_accuracy(self) -> float | None:
        """Unweighted mean over the clients that have test samples."""
        return evaluation.mean(self._accuracies())

    @property
    def weighted_accuracy(self) -> float | None:
        """The mean over clients, each weighted by its test samples."""
        return evaluation.weighted_mean(self._accuracies(), self._test_sizes()) if self.classification else None

    @property
    def worst_decile_accuracy(self) -> float | None:
        """The mean over the worst tenth of the clients."""
        return evaluation.worst_decile(self._accuracies())

    @property
    def global_accuracy(self) -> float | None:
        """The shared model on the pooled test samples of all clients."""
        pooled = self._pooled_score()
        return pooled.accuracy if pooled is not None and self.classification else None

    @property
    def mean_balanced_accuracy(self) -> float | None:
        """Each client's mean over the classes it has test samples of; unweighted mean over clients."""
        return _mean_of(self, "balanced_accuracy")

    mean_auc, worst_decile_auc, global_auc = _three("auc")
    mean_log_loss, worst_decile_log_loss, global_log_loss = _three("log_loss")
    mean_brier, worst_decile_brier, global_brier = _three("brier")
    mean_average_precision, worst_decile_average_precision, global_average_precision = _three("average_precision")

    mean_f1, worst_decile_f1, global_f1 = _three("f1")
    mean_rank_error, worst_decile_rank_error, global_rank_error = _three("rank_error")
    mean_rps, worst_decile_rps, global_rps = _three("rps")
    mean_deviance, worst_decile_deviance, global_deviance = _three("deviance")

    @property
    def log_loss(self) -> float | None:
        """The mean of -log p of the true class over all test samples; None for a method whose scores are not probabilities."""
        known = [client.scored for client in self._tested() if client.scored.surprise is not None]
        return evaluation.weighted_mean([one.log_loss or 0.0 for one in known], [one.n for one in known])

    # --- root mean squared errors: None for classification ---

    @property
    def mean_rmse(self) -> float | None:
        """Unweighted mean over the clients that have test samples."""
        return evaluation.mean(self._rmses())

    @property
    def weighted_rmse(self) -> float | None:
        """The mean over clients, each weighted by its test samples."""
        return None if self.classification else evaluation.weighted_mean(self._rmses(), self._test_sizes())

    @property
    def worst_decile_rmse(self) -> float | None:
        """The mean over the worst tenth of the clients, those with the largest errors."""
        worst = evaluation.worst_decile([-value for value in self._rmses()])
        return None if worst is None else -worst

    @property
    def global_rmse(self) -> float | None:
        """The shared model on the pooled test samples of all clients."""
        pooled = self._pooled_score()
        return None if pooled is None or self.classification else pooled.rmse

    @property
    def r2(self) -> float | None:
        """The part of the variation explained, over all test samples: that of each client's targets around their own mean."""
        tested = [client.scored for client in self._tested() if not self.classification]
        return Scored(1, 0, sum(s.squared_error for s in tested), variation=sum(s.variation for s in tested)).r2

    @property
    def mean_r2(self) -> float | None:
        """Each client's own; unweighted mean over the clients whose targets vary."""
        return None if self.classification else _mean_of(self, "r2")

    def _known(self, figure: str) -> list[float]:
        values = [getattr(client.scored, figure) for client in self._tested()]
        return [value for value in values if value is not None]

    def _accuracies(self) -> list[float]:
        return self._known("accuracy") if self.classification else []

    def _rmses(self) -> list[float]:
        return [] if self.classification else self._known("rmse")

    def _test_sizes(self) -> list[int]:
        return [client.test for client in self._tested()]

    def _pooled_score(self) -> Scored | None:
        """The shared model on the test samples of all clients; None where there is no shared model."""
        shared = [client.shared for client in self.clients.values() if client.shared is not None and client.shared.n]
        if not shared:
            return None
        return Scored(sum(s.n for s in shared), sum(s.right for s in shared), sum(s.squared_error for s in shared))

    # --- other figures ---

    @property
    def calibration_error(self) -> float | None:
        """Expected calibration error over the pooled test samples; None for a method whose scores are not probabilities."""
        pooled = self._pooled_bins("calibration")
        return None if pooled is None else pooled.expected_error

    def _pooled_bins(self, which: str) -> Calibration | None:
        """Those of all test samples: "calibration", or of the second class's probability, of two, "reliability"."""
        parts = [part for client in self._tested() if (part := getattr(client.scored, which)) is not None]
        return sum(parts, Calibration()) if parts else None

    @property
    def leave_one_out_accuracy(self) -> float | None:
        """The mean over clients of the accuracy that each estimates by leave-one-out, from its training samples alone.

        Over the clients that `mean_accuracy` is of, so that both can be compared; where none has test samples, over all.
        """
        clients = self._tested() or self.clients.values()
        known = [client.chosen.get("leave_one_out_accuracy") for client in clients]
        return evaluation.mean([value for value in known if value is not None])

    @property
    def warning(self) -> str | None:
        """That heads predict values worse than the mean of their client's other samples would; None: none does."""
        known = {name: client.chosen.get("leave_one_out_r2") for name, client in self.clients.items()}
        worse = {name: value for name, value in known.items() if value is not None and value < 0}
        if not worse:
            return None
        name = min(worse, key=lambda name: worse[name])
        return (
            f"{len(worse)} of {len(known)} heads predict their own left-out samples worse than these samples' mean: R2 down to "
            f"{worse[name]:.2g}, at client {name!r}. What clients share does not hold there"
        )

    @property
    def uplink_bytes(self) -> int:
        return sum(client.uplink_bytes for client in self.clients.values())

    @property
    def downlink_bytes(self) -> int:
        return sum(client.downlink_bytes for client in self.clients.values())
