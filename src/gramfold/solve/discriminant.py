"""From ridge scores to classes: where the scores of each class lie, and how far apart, told from moments alone.

A ridge score u = W'f is not a logit: its classes differ in scale and lie in correlated directions. In the scores' own
whitened space (linear discriminant analysis of n x C scores) the angle to a class's centroid is a far better evidence. All it
takes are the first two moments of the scores, and those are products of what the server has folded.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Discriminant(Record, kind="discriminant"):
    """`axes` (C x q) whitens scores around `mean`; `centroids` (C x q) are the classes in that space."""

    mean: np.ndarray
    axes: np.ndarray
    centroids: np.ndarray

    @classmethod
    def from_moments(cls, weights: Array, cross: Array, penalty: float, counts: np.ndarray, leverage: float) -> "Discriminant":
        """The discriminant of the left-out scores of everybody's samples, every leverage taken at its mean, as GCV does.

        With (S + b I) W = M the plain scores P have P'Y = W'M and P'P = W'M - b W'W. A left-out score is
        u = (p - h y) / (1 - h); its moments follow from those and the counts D = Y'Y.
        """
        free = max(1.0 - leverage, 1e-3)
        n, classes = counts.sum(), len(counts)
        plain_targets = arrays.to_numpy(weights.T @ cross)
        plain_targets = (plain_targets + plain_targets.T) / 2
        plain_plain = plain_targets - penalty * arrays.to_numpy(weights.T @ weights)
        diagonal = np.diag(counts.astype(float))
        with_targets = (plain_targets - leverage * diagonal) / free
        with_itself = (plain_plain - 2 * leverage * plain_targets + leverage**2 * diagonal) / free**2
        centroids = (with_targets / np.maximum(counts, 1)).T
        mean = with_targets.sum(1) / n
        centroids[counts == 0] = mean  # a class nobody has: no direction, so no evidence for it or against it
        within = (with_itself - (centroids.T * counts) @ centroids) / n
        around = centroids - mean
        between = (around.T * counts) @ around / n
        floor = 1e-6 * max(np.trace(within), np.trace(between), 1e-300) / classes
        within[np.diag_indices(classes)] += floor
        values, vectors = scipy.linalg.eigh(_positive(within, floor))
        whiten = vectors / np.sqrt(values)
        _, turned = scipy.linalg.eigh(whiten.T @ between @ whiten)
        axes = whiten @ turned[:, ::-1][:, : max(classes - 1, 1)]
        return cls(mean, axes, around @ axes)

    def evidence(self, scores: Array) -> tuple[Array, Array]:
        """Two n x C arrays: the cosine between a score and each centroid, and the Gaussian log-likelihood of each class (up to a
        constant per sample). The cosine decides among many classes; with two or three the length matters too."""
        mean, axes, centroids = (arrays.like(part, scores) for part in (self.mean, self.axes, self.centroids))
        whitened = (scores - mean) @ axes
        products = whitened @ centroids.T
        squares = (centroids**2).sum(1)
        lengths, sizes = (whitened**2).sum(1) ** 0.5, squares**0.5
        cosine = products / (lengths + (lengths == 0))[:, None] / (sizes + (sizes == 0))
        return cosine, products - 0.5 * squares


def _positive(matrix: np.ndarray, floor: float) -> np.ndarray:
    """The nearest matrix with no eigenvalue below the floor: mean leverages may leave a covariance slightly indefinite."""
    values, vectors = scipy.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)
