"""How likely candidates make a client's own samples, each left out. Classes and values differ in nothing else."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramfold.heads import softmax
from gramfold.methods.pace.candidates import Candidate, mean_of
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.class_prior import ClassPrior
from gramfold.solve.discriminant import Place
from gramfold.solve.evidence import Term
from gramfold.solve.softmax import most_likely

LEAST = 1e-3
"""A candidate with less of the mean than this is left out of it."""


class Likelihood(ABC):
    """Of a client's samples, one after another left out. `judges`: how often each counts here (n); those whose labels the
    features have seen do not."""

    classification: ClassVar[bool]
    judges: np.ndarray
    alone: Array
    """What a model of the client's own has to explain (n x C), with nothing shared."""
    step: float = 1.0
    """What a unit of what is unexplained adds to a prediction."""

    @abstractmethod
    def each(self, candidate: Candidate) -> np.ndarray:
        """The logarithm of how likely a candidate makes each sample (n)."""

    @abstractmethod
    def unexplained(self, candidate: Candidate, trust: float = 1.0) -> Array:
        """What a candidate leaves of the targets (n x C), when so much of its logits is believed."""

    def of(self, candidate: Candidate) -> float:
        """The same of all samples together."""
        return float(self.judges @ self.each(candidate))


def average(candidates: Sequence[Candidate], likelihood: Likelihood) -> tuple[Candidate, dict[str, float]]:
    """The mean of candidates, each with the share that the client's left-out samples give it, and these shares by name.

    With L_c for the log-likelihood under candidate c, and q_c for what it was before, w_c is q_c exp(L_c) over its sum: of all
    shares those with the largest sum_c w_c L_c - KL(w, q). Logits (or values) are averaged, and by Jensen's inequality
    L(mean) >= sum_c w_c L_c >= max_c (L_c + log q_c) up to the normalising sum: who joins loses at most log 1/q of any candidate.
    """
    told = np.array([likelihood.of(candidate) for candidate in candidates])
    before = np.array([candidate.before for candidate in candidates])
    shares = before * np.exp(told - told.max())
    shares[shares < LEAST * shares.sum()] = 0.0
    shares /= shares.sum()
    names = dict.fromkeys(candidate.name for candidate in candidates)
    by_name = {name: float(sum(w for w, each in zip(shares, candidates, strict=True) if each.name == name)) for name in names}
    return mean_of(candidates, [float(share) for share in shares]), by_name


@dataclass
class OfValues(Likelihood):
    """Normally distributed errors, as wide as the candidate's own are."""

    classification: ClassVar[bool] = False
    targets: Array
    judges: np.ndarray

    def __post_init__(self) -> None:
        self.alone = self.targets

    def each(self, candidate: Candidate) -> np.ndarray:
        squares = arrays.to_numpy((self.unexplained(candidate) ** 2).sum(1))
        width = float(np.average(squares, weights=self.judges)) + np.finfo(float).tiny
        return -0.5 * (squares / width + math.log(width))

    def unexplained(self, candidate: Candidate, trust: float = 1.0) -> Array:
        return self.targets - predicted(candidate)


def predicted(candidate: Candidate) -> Array:
    """Its left-out values (n x outputs)."""
    return candidate.share * candidate.scores + candidate.added


@dataclass
class OfClasses(Likelihood):
    """Classes of samples, from the evidence of left-out scores, what is added to it, and the left-out class prior."""

    classification: ClassVar[bool] = True
    codes: np.ndarray
    prior: ClassPrior
    once: np.ndarray
    judges: np.ndarray
    terms: tuple[Term, ...]
    place: Callable[[Array], Place]
    """Where left-out scores lie, each sample left out of the discriminant as well."""
    centre: np.ndarray
    """The terms' weights before any sample is seen, and (below) the precision of these, in samples."""
    precision: np.ndarray
    step: float
    given: Sequence[float] | None = None
    """The terms' weights, where they are not to be chosen."""

    def __post_init__(self) -> None:
        self.shares = self.prior.log_shares
        # evidence is weighed beside the prior that is right for a left-out sample; beside a surer one, as is right for class
        # shares that stay what they are, evidence would have to shout it down, and be too sure of itself ever after
        self.left_out_shares = self.prior.left_out(self.codes, self.once, fresh=True)
        self.targets = np.eye(len(self.shares))[self.codes]
        self.alone = self.targets - softmax(self.shares[None])
        self._known: tuple[Any, np.ndarray] = (None, np.zeros(0))

    def weigh(self, stay: Candidate) -> None:
        """Choose the terms' weights by the shared model as it is."""
        self.weights = self.fitted(stay)[0] if self.given is None else np.array(self.given)

    def evidence(self, candidate: Candidate) -> np.ndarray:
        """Of all terms (terms x n x C)."""
        if self._known[0] is not candidate.scores:
            place = self.place(candidate.scores)
            self._known = candidate.scores, np.stack([arrays.to_numpy(term(place)) for term in self.terms])
        return self._known[1]

    def logits(self, candidate: Candidate) -> np.ndarray:
        """Beside the prior."""
        told = np.tensordot(self.weights, self.evidence(candidate), 1)
        return np.asarray(candidate.share * told + arrays.to_numpy(candidate.added))

    def each(self, candidate: Candidate) -> np.ndarray:
        logits = self.logits(candidate) + self.left_out_shares
        logits -= logits.max(1, keepdims=True)
        right = logits[np.arange(len(logits)), self.codes]
        return np.asarray(right - np.log(np.exp(logits).sum(1)))

    def unexplained(self, candidate: Candidate, trust: float = 1.0) -> np.ndarray:
        return np.asarray(self.targets - softmax(trust * (self.logits(candidate) + self.shares)))

    def fitted(self, candidate: Candidate, added: bool = False) -> tuple[np.ndarray, float]:
        """The most likely weights of the terms, and of what is `added`, near what they were."""
        evidence, centre, precision = candidate.share * self.evidence(candidate), self.centre, self.precision
        if added:
            evidence = np.concatenate([evidence, arrays.to_numpy(candidate.added)[None]])
            centre, precision = np.append(self.weights, 1.0), np.append(precision, self.precision_of_added)
        return most_likely(evidence, self.left_out_shares, self.codes, centre, precision, self.judges)

    precision_of_added: float = 20.0
