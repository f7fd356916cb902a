"""Expected calibration error, from bin sums that add up over clients."""

from dataclasses import dataclass, field

import numpy as np

BINS = 15
BETWEEN = (0.003, 0.01, 0.03, 0.06, 0.1, 0.2, 0.35, 0.65, 0.8, 0.9, 0.94, 0.97, 0.99, 0.997)
"""Where the bins of one class's probability meet: narrow towards both ends, as most of a rare outcome's probabilities are
small."""


@dataclass
class Calibration:
    """Per bin of confidence: how many samples, their summed confidence, and how many were correct.

    >>> sure_and_right = Calibration.of(np.array([[1.0, 0.0]]), np.array([0]))
    >>> sure_and_wrong = Calibration.of(np.array([[1.0, 0.0]]), np.array([1]))
    >>> (sure_and_right + sure_and_wrong).expected_error
    0.5
    """

    count: np.ndarray = field(default_factory=lambda: np.zeros(BINS))
    confidence: np.ndarray = field(default_factory=lambda: np.zeros(BINS))
    right: np.ndarray = field(default_factory=lambda: np.zeros(BINS))

    @classmethod
    def of(cls, probabilities: np.ndarray, codes: np.ndarray) -> "Calibration":
        top = probabilities.argmax(1)
        confidence = probabilities[np.arange(len(top)), top]
        return cls._binned(np.minimum((confidence * BINS).astype(int), BINS - 1), confidence, top == codes)

    @classmethod
    def of_second(cls, probability: np.ndarray, codes: np.ndarray) -> "Calibration":
        """That of the second of two classes' probability: `right` then counts the samples that are of it."""
        return cls._binned(np.searchsorted(BETWEEN, probability), probability, codes == 1)

    @classmethod
    def _binned(cls, bins: np.ndarray, confidence: np.ndarray, right: np.ndarray) -> "Calibration":
        sums = [np.bincount(bins, weights, minlength=BINS) for weights in (None, confidence, right)]
        return cls(*(part.astype(float) for part in sums))

    def __add__(self, other: "Calibration") -> "Calibration":
        return Calibration(self.count + other.count, self.confidence + other.confidence, self.right + other.right)

    @property
    def expected_error(self) -> float:
        """The mean distance between confidence and accuracy, over bins weighted by their samples."""
        return float(np.abs(self.confidence - self.right).sum() / max(self.count.sum(), 1))
