"""A head for several labels a sample: each label's log-odds, and from where on it is said."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from gramfold.errors import HeadError
from gramfold.heads.combined import Combined
from gramfold.heads.explanation import Explanation
from gramfold.heads.packing import list_of
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array


@dataclass(frozen=True, repr=False)
class SeveralLabels(Combined):
    """A head of two classes for each label (it has the label, or not), or one of values for all of them, which then are no
    probabilities. Scores are log-odds (values: less a half), and a sample has the labels whose score is at least the
    threshold."""

    kind: ClassVar[str] = "labels"
    own: ClassVar[tuple[str, ...]] = ("thresholds",)

    thresholds: tuple[float, ...] = ()
    """A score for each label."""

    def together(self, said: list[np.ndarray]) -> np.ndarray:
        if not self.probabilistic:
            return said[0] - 0.5
        return np.stack([(one[:, 1] - one[:, 0]) / part.temperature for one, part in zip(said, self.parts, strict=True)], axis=1)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """n x labels, each between 0 and 1 and no surer than its samples allow."""
        return np.asarray((1 - self.unforeseen) * expit(scores) + self.unforeseen / 2)

    def marked(self, scores: np.ndarray) -> np.ndarray:
        """n x labels: 1 where a sample is said to have the label."""
        return (scores >= np.asarray(self.thresholds)).astype(np.int64)

    def decision_function(self, inputs: Array) -> np.ndarray:
        return np.asarray(arrays.to_numpy(self.scores(inputs)))

    def predict(self, inputs: Array) -> np.ndarray:
        """n x labels of 0 and 1, as in scikit-learn; `predict_sets` has the labels by name."""
        return self.marked(self.decision_function(inputs))

    predict_codes = predict

    def predict_sets(self, inputs: Array) -> list[tuple[int | str, ...]]:
        """The labels of each sample, the likeliest first."""
        return self.sets(self.decision_function(inputs))

    def sets(self, scores: np.ndarray) -> list[tuple[int | str, ...]]:
        assert self.labels is not None
        over = scores - np.asarray(self.thresholds)
        return [tuple(self.labels[j] for j in np.argsort(-row, kind="stable") if row[j] >= 0) for row in over]

    def score(self, inputs: Array, targets: Array) -> float:
        """As in scikit-learn: the part of the samples all of whose labels are right."""
        predicted, wanted = self.predict(inputs), np.asarray(arrays.to_numpy(targets))
        if wanted.shape != predicted.shape or not len(wanted):
            raise HeadError(f"labels of shape {wanted.shape} to score {predicted.shape} by; give rows of 0 and 1")
        return float((predicted == wanted).all(1).mean())

    def explain(self, inputs: Array, of: Any = None, baseline: Array | None = None) -> Explanation:
        """What every column adds to the log-odds of one label, `of`."""
        if self.labels is None or of not in self.labels:
            raise HeadError(f"say which label is to be explained, of={(self.labels or ('?',))[0]!r}")
        if not self.probabilistic:
            return self.parts[0].with_origin(self.origin).explain(inputs, self.labels.index(of), baseline)
        return self.parts[self.labels.index(of)].with_origin(self.origin).explain(inputs, None, baseline)

    def check_parts(self) -> None:
        count = len(self.labels or ())
        self.require_outputs(*([2] * count if self.probabilistic else [count]))
        if len(self.thresholds) != count or not np.isfinite(self.thresholds).all():
            raise HeadError(f"a head of {count} labels cannot have these thresholds")
        if any((part.labels is None) == self.probabilistic for part in self.parts):
            raise HeadError("a head's parts are of classes where it gives probabilities, else of values")

    @classmethod
    def read_own(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return {"thresholds": tuple(float(one) for one in list_of(meta["thresholds"]))}
