"""Figures of resampled test splits: each sample with a random weight, as in Rubin's Bayesian bootstrap.

Weights instead of counts, so that of three samples of a rare class never none is drawn. They follow from the samples themselves:
the same for all methods, whose difference is then one of pairs, and nobody's who does not have the samples.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gramfold.federation import Samples
from gramfold.numerics import arrays

DRAWS = 200
LONG = 256
"""Samples up to which looking at all of them is quicker than looking for one, class by class."""
COLUMNS = 16
"""Numbers of a sample that the weights follow from, besides its target."""


def weights_of(samples: Samples) -> np.ndarray:
    """DRAWS x n weights, each row with the sum one."""
    drawn = _stream(samples, 0).standard_exponential((DRAWS, samples.n))
    return np.asarray(drawn / drawn.sum(1, keepdims=True))


class TwoMore(NamedTuple):
    """Two samples that were not drawn and might have been, for each of DRAWS resampled splits: of two different classes, each
    looking as a head expects samples of that class to look.

    Of a class that few samples are of, or none, a split does not say how badly its samples are told: resampled without these two,
    49 samples of one class and one of the other have nearly always a log loss near that of the 49. With two classes it is one
    of each, as in Agresti and Coull's interval of a share.
    """

    rows: np.ndarray
    """Whose probabilities they have, DRAWS x 2."""
    codes: np.ndarray
    parts: np.ndarray
    """Their weights, beside those of all samples together, which have the rest."""

    @classmethod
    def of(cls, shares: np.ndarray, samples: Samples) -> "TwoMore":
        rng, classes = _stream(samples, 1), shares.shape[1]
        codes = _least_two(rng.random((DRAWS, classes)))
        where, up_to = rng.random(codes.shape), shares.cumsum(0)
        sought = where * up_to[-1][codes]
        rows = np.empty_like(codes)
        for c in np.unique(codes) if len(shares) > LONG else ():
            rows[codes == c] = up_to[:, c].searchsorted(sought[codes == c])
        if len(shares) <= LONG:
            rows = (up_to[:, codes] < sought).sum(0)
        rows = np.minimum(rows, len(shares) - 1)
        own = rng.standard_exponential(codes.shape)
        return cls(rows, codes, own / (own.sum(1) + rng.standard_gamma(len(shares), DRAWS))[:, None])

    def added(self, drawn: np.ndarray, losses: np.ndarray) -> np.ndarray:
        """Means over resampled splits, with their losses (DRAWS x 2) among them."""
        return np.asarray((1 - self.parts.sum(1)) * drawn + (self.parts * losses).sum(1))


def _least_two(numbers: np.ndarray) -> np.ndarray:
    """Where the least two of every row are, the least first."""
    each = np.arange(len(numbers))
    first = numbers.argmin(1)
    numbers[each, first] = np.inf
    return np.stack([first, numbers.argmin(1)], axis=1)


def _stream(samples: Samples, number: int) -> np.random.Generator:
    """Random numbers that follow from the samples: two streams of them."""
    inputs = samples.inputs if arrays.is_sparse(samples.inputs) else samples.inputs.reshape(samples.n, -1)
    few = arrays.to_numpy(arrays.float64(inputs[:, :COLUMNS]))
    digest = hashlib.sha256(
        np.ascontiguousarray(few).tobytes() + np.ascontiguousarray(arrays.to_numpy(samples.targets)).tobytes()
    )
    seed = np.frombuffer(digest.digest(), np.uint32).tolist()
    return np.random.default_rng(seed if not number else [*seed, number])


class Ranked:
    """Samples of two classes by their score, resampled. `positive` says which are of the one that scores are for."""

    def __init__(self, scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> None:
        _, first, place = np.unique(scores, return_index=True, return_inverse=True)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(first)))
        self.found = np.add.reduceat((weights * positive)[:, order], starts, axis=1)
        self.others = np.add.reduceat((weights * ~positive)[:, order], starts, axis=1)

    def auc(self) -> np.ndarray:
        below = self.others.cumsum(1) - self.others / 2
        return np.asarray((self.found * below).sum(1) / (self.found.sum(1) * self.others.sum(1)))

    def average_precision(self) -> np.ndarray:
        """The mean over positives of the precision down to each."""
        found, others = self.found[:, ::-1], self.others[:, ::-1]
        right = found.cumsum(1)
        return np.asarray((found * right / (right + others.cumsum(1))).sum(1) / right[:, -1])


def average_precision(scores: np.ndarray, positive: np.ndarray) -> float:
    """
    >>> average_precision(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    0.8333333333333333
    """
    return float(Ranked(scores, positive, np.ones((1, len(scores)))).average_precision()[0])


def differences(ours: Mapping[str, list[float]], others: Mapping[str, list[float]], key: str) -> np.ndarray | None:
    """Draw by draw; None where one of both has no draws of that figure."""
    mine, theirs = ours.get(key), others.get(key)
    return None if not mine or not theirs or len(mine) != len(theirs) else np.asarray(mine) - np.asarray(theirs)
