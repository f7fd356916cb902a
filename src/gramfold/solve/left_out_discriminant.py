"""The shared discriminant without one of its samples, for each of a client's samples: an honest score is not enough.

A class's centroid has a share of each of its samples, in as many directions as there are classes: among a hundred classes of a
hundred samples, evidence that keeps it promises two or three points too much. And taking its score out of the centroid alone
promises two too little, since its label has moved everybody else's scores, too. With u its left-out score, r = y - u, h its
leverage and p = u + h r, the ridge without it has P'Y - u y' - r p', exactly. With h for the mean leverage, f = 1 / (1 - h), and
in the shared whitened space, where w is u's place and c the centroid of its class, it follows that

    the sum of class j loses f p_j r, that of its own w + f (p_j - h) r
    the scatter loses d d' + r v' + v r', d = w - c, v = w + f h (c + r / 2) - f (sum of p_j c_j)

(of the latter what the penalty does is not looked at). Whitening again is done to first order in one over all samples.
"""

from dataclasses import dataclass

import numpy as np

from gramfold.solve.discriminant import Discriminant, Place


@dataclass(frozen=True)
class LeftOutDiscriminant:
    """`shared`, without each of n samples in turn; for three classes and more (two have one axis, and next to nothing of a
    sample on it)."""

    shared: Discriminant
    codes: np.ndarray
    without: np.ndarray
    """The centroid of a sample's own class (n x q)."""
    residual: np.ndarray
    """r (n x q): the way that other classes' centroids have gone."""
    moves: np.ndarray
    """How far each of them (n x C)."""
    lost: tuple[tuple[np.ndarray, np.ndarray], ...]
    """Of the scatter, in units of what is left of it: pairs of vectors (n x q) whose products it loses."""

    @classmethod
    def of(
        cls,
        shared: Discriminant,
        counts: np.ndarray,
        scores: np.ndarray,
        codes: np.ndarray,
        once: np.ndarray,
        leverages: np.ndarray,
    ) -> "LeftOutDiscriminant":
        """From left-out `scores` (n x C) of samples that are part of the sum. `counts`: everybody's classes; `once`: how often
        each sample counts, with all of which it is left out."""
        samples, times, h = np.arange(len(codes)), once[:, None], leverages[:, None]
        free = 1.0 / (1.0 - h)
        residuals = -scores
        residuals[samples, codes] += 1.0
        plain = scores + h * residuals
        place, r, own = (scores - shared.mean) @ shared.axes, residuals @ shared.axes, shared.centroids[codes]
        mine, rest = counts[codes][:, None], counts[codes][:, None] - times
        gone = place + free * (plain[samples, codes][:, None] - h) * r
        # of a class that nobody else has nothing is known: it lies at the mean, as a class nobody has
        without = np.where(rest > 0.5, (mine * own - times * gone) / np.maximum(rest, 0.5), 0.0)
        v = place + free * h * (own + r / 2.0) - free * (plain @ shared.centroids)
        share = times / counts.sum()
        lost = ((share * (place - own), place - own), (share * r, v), (share * v, r))
        moves = times * free * plain / np.maximum(counts, 1.0)
        moves[samples, codes] = 0.0
        return cls(shared, codes, without, r, moves, lost)

    def place(self, scores: np.ndarray) -> Place:
        """Where the same samples lie; `scores` may be others of theirs, also left out."""
        place, r = (scores - self.shared.mean) @ self.shared.axes, self.residual
        products = self._along(place) - self.moves * _dot(place, r)
        squares = (self.shared.centroids**2).sum(1) - self.moves * (2.0 * self._along(r) - self.moves * _dot(r, r))
        squares[np.arange(len(self.codes)), self.codes] = (self.without**2).sum(1)
        lengths = _dot(place, place)
        for left, right in self.lost:  # what a scatter loses, its inverse gains
            along = self._along(right)
            products += _dot(place, left) * along
            squares += self._along(left) * along
            lengths = lengths + _dot(place, left) * _dot(place, right)
        return Place(scores, self.shared.mean, place, self.shared.centroids, products, squares, lengths)

    def _along(self, vectors: np.ndarray) -> np.ndarray:
        """Products (n x C) with all centroids, where the sample's own class's is the one without it."""
        products = vectors @ self.shared.centroids.T
        products[np.arange(len(self.codes)), self.codes] = (vectors * self.without).sum(1)
        return np.asarray(products)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a * b).sum(1, keepdims=True))
