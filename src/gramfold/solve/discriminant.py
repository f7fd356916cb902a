"""From ridge scores to classes: where the scores of each class lie, and how far apart, from moments alone.

A ridge score u = W'f is not a logit: its classes differ in scale and lie in correlated directions. In the scores' own
whitened space (linear discriminant analysis of n x C scores) the angle to a class's centroid is a far better evidence. All it
takes are the first two moments of the scores, and those are products of what the server has folded.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import Penalty
from gramfold.wire.record import Record

UNLIKELY, BEYOND = 0.02, 4.0
"""As a probability a score is taken at its word down to so much, or a quarter of a rare class's share; and what it says beyond,
as a logarithm for every unit."""


@dataclass(frozen=True)
class Discriminant(Record, kind="discriminant"):
    """`axes` (C x q) whitens scores around `mean`; `centroids` (C x q) are the classes in that space."""

    mean: np.ndarray
    axes: np.ndarray
    centroids: np.ndarray

    @classmethod
    def from_moments(
        cls, weights: Array, cross: Array, penalty: Penalty, counts: np.ndarray, leverage: float, rounded: bool = False
    ) -> "Discriminant":
        """The discriminant of the left-out scores of all clients' samples, every leverage taken at its mean, as GCV does.

        With (S + P) W = M the plain scores U have U'Y = W'M and U'U = W'M - W'P W. A left-out score is
        (u - h y) / (1 - h); its moments follow from those and the counts D = Y'Y. `rounded`: the weights will be, to a
        few digits.
        """
        free = max(1.0 - leverage, 1e-3)
        n, classes = counts.sum(), len(counts)
        plain_targets = arrays.to_numpy(weights.T @ cross)
        plain_targets = (plain_targets + plain_targets.T) / 2
        plain_plain = plain_targets - arrays.to_numpy(weights.T @ (penalty * weights))
        diagonal = np.diag(counts.astype(float))
        with_targets = (plain_targets - leverage * diagonal) / free
        with_itself = (plain_plain - 2 * leverage * plain_targets + leverage**2 * diagonal) / free**2
        centroids = (with_targets / np.maximum(counts, 1)).T
        mean = with_targets.sum(1) / n
        centroids[counts == 0] = mean  # a class nobody has: no direction, so no evidence for it or against it
        within = (with_itself - (centroids.T * counts) @ centroids) / n
        around = centroids - mean
        between = (around.T * counts) @ around / n
        # the scores add up to one but for the penalty: whitening their sum would blow up what is left of it, which with two
        # classes is half of all there is, and with rounded weights the digits that they lost
        if classes == 2 or rounded:
            contrast = np.eye(classes) - 1.0 / classes
            between, within = (contrast @ part @ contrast for part in (between, within))
        floor = 1e-6 * max(np.trace(within), np.trace(between), 1e-300) / classes
        within[np.diag_indices(classes)] += floor
        values, vectors = scipy.linalg.eigh(_positive(within, floor))
        whiten = vectors / np.sqrt(values)
        _, turned = scipy.linalg.eigh(whiten.T @ between @ whiten)
        # centroids around their mean span one direction less than classes that anybody has; any other is as good as the next
        directions = max(int((counts > 0).sum()) - 1, min(classes - 1, 2), 1)
        axes = _settled(whiten @ turned[:, ::-1][:, :directions])
        return cls(mean, axes, around @ axes)

    def narrowed(self, precision: str) -> "Discriminant":
        return Discriminant(*(arrays.cast(part, precision) for part in (self.mean, self.axes, self.centroids)))

    def evidence(self, scores: Array, bend: float = 0.0) -> tuple[Array, Array]:
        """Two n x C arrays: the cosine between a score and each centroid, and the Gaussian log-likelihood of each class (up to a
        constant per sample). The cosine decides among many classes; with few the length matters too. Two have one axis, on which
        an angle is only a sign: there the first is what the score says if it is a probability, and the likelihood is made with
        more care. `bend`: see `bent`."""
        mean, axes, centroids = (arrays.float64(arrays.like(part, scores)) for part in (self.mean, self.axes, self.centroids))
        whitened = (scores - mean) @ axes
        if axes.shape[1] == 1:
            return _as_probabilities(scores, mean), _on_one_axis(whitened, centroids[:, 0])
        products = whitened @ centroids.T
        squares = (centroids**2).sum(1)
        lengths, sizes = (whitened**2).sum(1) ** 0.5, squares**0.5
        cosine = products / (lengths + (lengths == 0))[:, None] / (sizes + (sizes == 0))
        return bent(cosine, bend), products - 0.5 * squares


def _as_probabilities(scores: Array, mean: Array) -> Array:
    """What two classes' scores say beyond their mean if they are probabilities, as logarithms. Where features can follow any
    curve, least squares makes them just that. They cannot be sure of it: see UNLIKELY."""
    share = (0.5 + 0.5 * (mean[1:] - mean[:1])).clip(UNLIKELY / 10, 1.0 - UNLIKELY / 10)
    low, high = share.clip(0.0, 4 * UNLIKELY) / 4, 1.0 - (1.0 - share).clip(0.0, 4 * UNLIKELY) / 4
    likely = 0.5 + 0.5 * (scores[:, 1:] - scores[:, :1])
    within = likely.clip(low, high)
    odds = arrays.log(within / (1.0 - within) * (1.0 - share) / share) + BEYOND * (likely - within)
    return arrays.concatenate([-0.5 * odds, 0.5 * odds], axis=1)


def _on_one_axis(whitened: Array, centroids: Array) -> Array:
    """The log-likelihood of two classes with logistic distributions: Gaussian in the middle, tails that forgive a surprise.

    The rarer class, whose centroid c is the farther from the mean, scatters more: were the scores calibrated probabilities
    with a Beta distribution, a class's variance would go with 1 + |c| |c - c'|.
    """
    distances = abs(centroids)
    variances = (1.0 + distances * distances.sum()) / (1.0 + 2.0 * distances.prod())  # one, in the mean over all samples
    scales = (3.0 * variances) ** 0.5 / math.pi
    deviations = whitened - centroids
    # beyond its centroid a class has the wider class's tail: with a thinner one, it would lose to that class far out
    beyond = deviations * centroids > 0
    widths = scales + (scales.max() - scales) * beyond
    return -2.0 * arrays.log_cosh(deviations / widths / 2.0) - arrays.log(scales)


def bent(cosine: Array, bend: float) -> Array:
    """A cosine whose slope falls by the part `2 bend` from zero to one: among many classes a step away from a right angle says
    more than one towards the centroid."""
    return cosine * (1.0 - bend * abs(cosine)) if bend else cosine


def _positive(matrix: np.ndarray, floor: float) -> np.ndarray:
    """The nearest matrix with no eigenvalue below the floor: mean leverages may leave a covariance slightly indefinite."""
    values, vectors = scipy.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def _settled(axes: np.ndarray) -> np.ndarray:
    """The same axes, turned to lie as near as they can to fixed cosines. No evidence depends on how they are turned, but an
    eigenvector's sign, and its direction where two values are close, are an accident of rounding: engines would differ in it."""
    classes, directions = axes.shape
    cosines = np.cos(np.pi * np.outer(np.arange(classes) + 0.5, np.arange(1, directions + 1)) / classes)
    turn, _ = scipy.linalg.polar(axes.T @ cosines)
    return np.asarray(axes @ turn)
