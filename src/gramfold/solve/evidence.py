"""What a place among the classes says for each of them: named terms, which a client weighs by how likely they make its samples.

Three classes and more have an angle: the cosine decides among many, with few the length matters too (the Gaussian). Two have
one axis, on which an angle is only a sign: there a score is taken for a probability, or for a draw from two distributions.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant, Place

UNLIKELY, BEYOND = 0.02, 4.0
"""As a probability a score is taken at its word down to so much, or a quarter of a rare class's share; and what it says beyond,
as a logarithm for every unit."""
BEND, FEW_CLASSES = 0.5, 20
"""How far the cosine is bent among many classes, and up to how many it is not: there the likelihood bends the evidence itself."""
KINDS: dict[str, type["Term"]] = {}
"""Every kind of evidence, by the name that a head's file knows it by."""


@dataclass(frozen=True)
class Term(ABC):
    """Evidence of one kind, n x C numbers that count as logarithms once they are weighed."""

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        KINDS[cls.name] = cls

    @abstractmethod
    def __call__(self, place: Place) -> Array:
        """Of scores, or of scores that were left out, from their place."""

    @abstractmethod
    def to_onnx(self, graph: Any, place: Any) -> str:
        """The same as nodes of an ONNX graph; `place` names those of a place's parts."""


@dataclass(frozen=True)
class Cosine(Term):
    """The cosine between a place and each centroid, its slope falling by the part `2 bend` from zero to one: among many classes a
    step away from a right angle says more than one towards the centroid."""

    name: ClassVar[str] = "cosine"
    bend: float = 0.0

    def __call__(self, place: Place) -> Array:
        sizes = (place.lengths.clip(0.0) ** 0.5) * (place.squares.clip(0.0) ** 0.5)
        return bent((place.products / (sizes + (sizes == 0))).clip(-1.0, 1.0), self.bend)

    def to_onnx(self, graph: Any, place: Any) -> str:
        sizes = graph.one_where_zero(graph.times(graph.add("Sqrt", place.lengths), np.sqrt(place.squares)))
        cosine = graph.add("Div", place.products, sizes)
        if not self.bend:
            return str(cosine)
        slope = graph.plus(graph.times(graph.add("Abs", cosine), -self.bend), 1.0)
        return str(graph.add("Mul", cosine, slope))


@dataclass(frozen=True)
class Gaussian(Term):
    """The log-likelihood of classes that scatter alike, up to a constant per sample."""

    name: ClassVar[str] = "gaussian"

    def __call__(self, place: Place) -> Array:
        return place.products - 0.5 * place.squares

    def to_onnx(self, graph: Any, place: Any) -> str:
        return str(graph.plus(place.products, -0.5 * place.squares))


@dataclass(frozen=True)
class LogOdds(Term):
    """What two classes' scores say beyond their mean if they are probabilities. Where features can follow any curve, least
    squares makes them just that. They cannot be sure of it: see UNLIKELY."""

    name: ClassVar[str] = "log_odds"

    def __call__(self, place: Place) -> Array:
        scores, mean = place.scores, place.mean
        share = (0.5 + 0.5 * (mean[1:] - mean[:1])).clip(UNLIKELY / 10, 1.0 - UNLIKELY / 10)
        low, high = share.clip(0.0, 4 * UNLIKELY) / 4, 1.0 - (1.0 - share).clip(0.0, 4 * UNLIKELY) / 4
        likely = 0.5 + 0.5 * (scores[..., 1:] - scores[..., :1])
        within = likely.clip(low, high)
        odds = arrays.log(within / (1.0 - within) * (1.0 - share) / share) + BEYOND * (likely - within)
        return arrays.concatenate([-0.5 * odds, 0.5 * odds], axis=-1)

    def to_onnx(self, graph: Any, place: Any) -> str:
        contrast = np.array([[-0.5], [0.5]])
        share = float(np.clip(0.5 + place.mean @ contrast[:, 0], UNLIKELY / 10, 1 - UNLIKELY / 10))
        low, high = min(share, 4 * UNLIKELY) / 4, 1.0 - min(1.0 - share, 4 * UNLIKELY) / 4
        likely = graph.plus(graph.matmul(place.scores, contrast), 0.5)
        within = graph.add("Max", graph.add("Min", likely, graph.constant(high)), graph.constant(low))
        odds = graph.times(graph.add("Div", within, graph.plus(graph.times(within, -1.0), 1.0)), (1 - share) / share)
        beyond = graph.times(graph.add("Sub", likely, within), BEYOND)
        return str(graph.matmul(graph.add("Add", graph.add("Log", odds), beyond), contrast.T))


@dataclass(frozen=True)
class Logistic(Term):
    """The log-likelihood of two classes with logistic distributions: Gaussian in the middle, tails that forgive a surprise."""

    name: ClassVar[str] = "logistic"

    def __call__(self, place: Place) -> Array:
        centroids = place.centroids[:, 0]
        scales = _scales(centroids)
        deviations = place.whitened - centroids
        # beyond its centroid a class has the wider class's tail: with a thinner one, it would lose to that class far out
        widths = scales + (scales.max() - scales) * (deviations * centroids > 0)
        return -2.0 * arrays.log_cosh(deviations / widths / 2.0) - arrays.log(scales)

    def to_onnx(self, graph: Any, place: Any) -> str:
        centroids = place.centroids[:, 0]
        scales = _scales(centroids)
        deviations = graph.plus(place.whitened, -centroids)
        beyond = graph.add("Greater", graph.times(deviations, np.sign(centroids)), graph.constant(0.0))
        widths = graph.add("Where", beyond, graph.constant(scales.max() + 0 * scales), graph.constant(scales))
        halves = graph.times(graph.add("Abs", graph.add("Div", deviations, widths)), 0.5)
        tail = graph.add("Log", graph.plus(graph.add("Exp", graph.times(halves, -2.0)), 1.0))
        log_cosh = graph.plus(graph.add("Add", halves, tail), -math.log(2.0))
        return str(graph.plus(graph.times(log_cosh, -2.0), -np.log(scales)))


def _scales(centroids: Array) -> Array:
    """Of the two logistic distributions.

    The rarer class, whose centroid c is the farther from the mean, scatters more: were the scores calibrated probabilities with a
    Beta distribution, a class's variance would go with 1 + |c| |c - c'|.
    """
    distances = abs(centroids)
    variances = (1.0 + distances * distances.sum()) / (1.0 + 2.0 * distances.prod())  # one, in the mean over all samples
    return (3.0 * variances) ** 0.5 / math.pi


def bend(classes: int) -> float:
    return BEND * max(1.0 - FEW_CLASSES / classes, 0.0)


def bent(cosine: Array, bend: float) -> Array:
    return cosine * (1.0 - bend * abs(cosine)) if bend else cosine


def terms(classes: int) -> tuple[Term, ...]:
    """The evidence that so many classes have."""
    return (LogOdds(), Logistic()) if classes == 2 else (Cosine(bend(classes)), Gaussian())


@dataclass(frozen=True)
class Evidence:
    """Terms with weights: what becomes of the scores of a probabilistic head."""

    discriminant: Discriminant
    terms: tuple[Term, ...]
    weights: tuple[float, ...]

    def __call__(self, scores: Array) -> Array:
        return weighed(self.terms, self.weights, self.discriminant.place(scores))


def weighed(terms: Sequence[Term], weights: Sequence[Any], place: Place) -> Array:
    """The sum of all terms (n x C), each times its weight; of stacked samples, weights of each client."""
    total = None
    for term, weight in zip(terms, weights, strict=True):
        part = term(place) * weight
        total = part if total is None else total + part
    return total
