"""A head for classes that have an order: how likely it is that a sample lies above each but the last."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from gramfold.heads.combined import Combined

LEAST = 1e-12
"""The least probability of a class before that of the floor: scores are logarithms."""


@dataclass(frozen=True, repr=False)
class OrderedClasses(Combined):
    """A head of two classes (at most this class, or above it) for each class but the last. Scores are log-probabilities of the
    classes."""

    kind: ClassVar[str] = "ordered classes"

    def together(self, said: list[np.ndarray]) -> np.ndarray:
        logits = [(one[:, 1] - one[:, 0]) / part.temperature for one, part in zip(said, self.parts, strict=True)]
        above = monotone(expit(np.stack(logits, axis=1)))
        ends = np.ones((len(above), 1))
        return np.log(np.maximum(-np.diff(np.concatenate([ends, above, 0 * ends], axis=1), axis=1), LEAST))

    def check_parts(self) -> None:
        self.require_outputs(*[2] * (len(self.labels or ()) - 1))


def monotone(above: np.ndarray) -> np.ndarray:
    """Probabilities (n x thresholds) that never rise from one threshold to the next: the mean of the highest such ones below what
    is said, and the lowest above it. What is so already stays as it is.

    >>> monotone(np.array([[0.9, 0.4, 0.6, 0.1]])).round(2).tolist()
    [[0.9, 0.5, 0.5, 0.1]]
    """
    below = np.minimum.accumulate(above, axis=1)
    over = np.maximum.accumulate(above[:, ::-1], axis=1)[:, ::-1]
    return np.asarray((below + over) / 2)
