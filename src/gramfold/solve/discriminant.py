"""From ridge scores to classes: where the scores of each class lie, and how far apart, from moments alone.

A ridge score u = W'f is not a logit: its classes differ in scale and lie in correlated directions. In the scores' own
whitened space (linear discriminant analysis of n x C scores) the angle to a class's centroid is a far better evidence. All it
takes are the first two moments of the scores, and those are products of what the server has folded.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import Penalty
from gramfold.wire.record import Record

LEANING = 1e-9
"""Scores that lean to their class by less than so much of what they do in another contrast do so by rounding."""


def left_out_moments(
    with_targets: np.ndarray, with_itself: np.ndarray, counts: np.ndarray, leverage: float
) -> tuple[np.ndarray, np.ndarray]:
    """U'Y and U'U of left-out scores (u - h y) / (1 - h), from those of plain ones and the counts D = Y'Y; every leverage h is
    taken at its mean, as GCV does."""
    free, diagonal = max(1.0 - leverage, 1e-3), np.diag(counts.astype(float))
    crossed = leverage * (with_targets + with_targets.T)
    return (with_targets - leverage * diagonal) / free, (with_itself - crossed + leverage**2 * diagonal) / free**2


def pooled_moments(
    weights: Array, cross: Array, penalty: Penalty, counts: np.ndarray, leverage: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same of all samples behind a ridge: with (S + P) W = M the plain scores U have U'Y = W'M and U'U = W'M - W'P W."""
    plain = arrays.to_numpy(weights.T @ cross)
    plain = (plain + plain.T) / 2
    return left_out_moments(plain, plain - arrays.to_numpy(weights.T @ (penalty * weights)), counts, leverage)


@dataclass(frozen=True)
class Discriminant(Record, kind="discriminant"):
    """`axes` (C x q) whitens scores around `mean`; `centroids` (C x q) are the classes in that space."""

    mean: np.ndarray
    axes: np.ndarray
    centroids: np.ndarray

    @classmethod
    def from_moments(cls, weights: Array, cross: Array, penalty: Penalty, counts: np.ndarray, leverage: float) -> "Discriminant":
        """The discriminant of the left-out scores of all clients' samples."""
        n, classes = counts.sum(), len(counts)
        with_targets, with_itself = pooled_moments(weights, cross, penalty, counts, leverage)
        centroids = (with_targets / np.maximum(counts, 1)).T
        mean = with_targets.sum(1) / n
        centroids[counts == 0] = mean  # a class nobody has: no direction, so no evidence for it or against it
        # centroids around their mean span one direction less than classes that anybody has; any other is as good as the next
        directions = max(int((counts > 0).sum()) - 1, min(classes - 1, 2), 1)
        if float(counts @ (centroids - mean).diagonal()) <= 0:
            # left out, scores lean to other classes than their own, as a mean of the others does: there is no evidence in them
            return cls(mean, np.zeros((classes, directions)), np.zeros((classes, directions)))
        # the scores add up to one but for a penalty, or rounding: only contrasts between them are whitened
        contrasts = scipy.linalg.helmert(classes).T
        within = (with_itself - (centroids.T * counts) @ centroids) / n
        towards = _towards(contrasts.T @ (with_targets - np.outer(mean, counts)) @ contrasts)
        around = (centroids - mean) @ contrasts @ towards @ contrasts.T
        between = (around.T * counts) @ around / n
        between, within = (contrasts.T @ part @ contrasts for part in (between, within))
        floor = 1e-6 * max(np.trace(within), np.trace(between), 1e-300) / classes
        within[np.diag_indices(classes - 1)] += floor
        values, vectors = scipy.linalg.eigh(_positive(within, floor))
        whiten = vectors / np.sqrt(values)
        _, turned = scipy.linalg.eigh(whiten.T @ between @ whiten)
        axes = _settled(contrasts @ whiten @ turned[:, ::-1][:, :directions])
        return cls(mean, axes, around @ axes)

    def correlation(self, counts: np.ndarray) -> float:
        """Of scores with the classes, from nought (these lie in one place) to one: the root of the share that they have in how
        scores vary, within a class by one in every direction."""
        between = float(counts @ (np.asarray(self.centroids, float) ** 2).sum(1)) / max(float(counts.sum()), 1e-300)
        return float(np.sqrt(between / (1.0 + between)))

    def place(self, scores: Array) -> "Place":
        """Where scores (n x C) lie among the classes: what every kind of evidence is made of."""
        mean, axes, centroids = self.on(scores)
        whitened = (scores - mean) @ axes
        return Place(
            scores, mean, whitened, centroids, whitened @ centroids.T, (centroids**2).sum(1), (whitened**2).sum(-1)[..., None]
        )

    def on(self, scores: Array) -> tuple[Array, Array, Array]:
        """Mean, axes and centroids in float64, where the scores are."""
        mean, axes, centroids = (arrays.float64(arrays.like(part, scores)) for part in (self.mean, self.axes, self.centroids))
        return mean, axes, centroids


@dataclass(frozen=True)
class Place:
    """Scores (n x C) in the whitened space: their places (n x q), the classes' centroids, products of both (n x C), and the
    squared lengths of centroids (C, or n x C where each sample is left out of them) and of places (n x 1)."""

    scores: Array
    mean: Array
    whitened: Array
    centroids: Array
    products: Array
    squares: Array
    lengths: Array


def _positive(matrix: np.ndarray, floor: float) -> np.ndarray:
    """The nearest matrix with no eigenvalue below the floor: mean leverages may leave a covariance slightly indefinite."""
    values, vectors = scipy.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def _towards(leaning: np.ndarray) -> np.ndarray:
    """Onto the contrasts in which left-out scores lean to their own class. Where classes are hardly told apart they lean away, as
    a mean of the others does, and vary so little that this would pass for much evidence."""
    values, vectors = scipy.linalg.eigh((leaning + leaning.T) / 2)
    vectors = vectors[:, values > LEANING * values[-1]]
    return np.asarray(vectors @ vectors.T)


def _settled(axes: np.ndarray) -> np.ndarray:
    """The same axes, turned to lie as near as they can to fixed cosines. No evidence depends on how they are turned, but an
    eigenvector's sign, and its direction where two values are close, are an accident of rounding: engines would differ in it."""
    classes, directions = axes.shape
    cosines = np.cos(np.pi * np.outer(np.arange(classes) + 0.5, np.arange(1, directions + 1)) / classes)
    turn, _ = scipy.linalg.polar(axes.T @ cosines)
    return np.asarray(axes @ turn)
