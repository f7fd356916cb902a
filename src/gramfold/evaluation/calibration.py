"""Expected calibration error, from bin sums that add up over clients."""

from dataclasses import dataclass, field

import numpy as np

BINS = 15


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
        bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
        sums = [np.bincount(bins, weights, minlength=BINS) for weights in (None, confidence, top == codes)]
        return cls(*(part.astype(float) for part in sums))

    def __add__(self, other: "Calibration") -> "Calibration":
        return Calibration(self.count + other.count, self.confidence + other.confidence, self.right + other.right)

    @property
    def expected_error(self) -> float:
        """The mean distance between confidence and accuracy, over bins weighted by their samples."""
        return float(np.abs(self.confidence - self.right).sum() / max(self.count.sum(), 1))
