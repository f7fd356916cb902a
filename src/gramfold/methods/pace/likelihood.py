"""How likely candidates make clients' own samples, each left out. Classes and values differ in nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramfold.methods.pace.candidates import Candidate, mean_of
from gramfold.numerics import arrays, stacks
from gramfold.numerics.arrays import Array
from gramfold.numerics.stacks import lifted, softmax
from gramfold.solve.discriminant import Place
from gramfold.solve.evidence import Term
from gramfold.solve.softmax import most_likely

NEGLIGIBLE = 1e-3
"""A candidate with less of the mean than this is left out of it."""


class Likelihood(ABC):
    """Of clients' samples, one after another left out. `held_out`: how often each counts here (clients x n); those whose labels
    the features have seen do not, nor does padding."""

    classification: ClassVar[bool]
    held_out: Array
    alone: Array
    """What models of the clients' own have to explain (clients x n x C), with nothing shared."""
    step: float | np.ndarray = 1.0
    """What a unit of a residual adds to a prediction."""

    @abstractmethod
    def each(self, candidate: Candidate) -> Array:
        """The logarithm of how likely a candidate makes each sample (clients x n)."""

    @abstractmethod
    def residuals(self, candidate: Candidate, trust: float = 1.0) -> Array:
        """What a candidate leaves of the targets (clients x n x C), its logits shrunk by the factor `trust`."""

    def of(self, candidate: Candidate) -> np.ndarray:
        """The same of all samples of a client together."""
        return arrays.to_numpy(stacks.row_dots(self.held_out, self.each(candidate)))


def average(candidates: Sequence[Candidate], likelihood: Likelihood) -> tuple[Candidate, dict[str, np.ndarray]]:
    """The mean of candidates, each with the share that a client's left-out samples give it, and these shares by name.

    With L_c for the log-likelihood under candidate c, and q_c for what it was before, w_c is q_c exp(L_c) over its sum: of all
    shares those with the largest sum_c w_c L_c - KL(w, q). Logits (or values) are averaged, and by Jensen's inequality
    L(mean) >= sum_c w_c L_c >= max_c (L_c + log q_c) up to the normalising sum: who joins loses at most log 1/q of any candidate.
    """
    logs = np.stack([likelihood.of(candidate) for candidate in candidates], axis=-1)
    before = np.stack([np.broadcast_to(candidate.before, logs.shape[:-1]) for candidate in candidates], axis=-1)
    logs = np.where(before > 0, logs, -np.inf)
    shares = before * np.exp(logs - logs.max(-1, keepdims=True))
    shares[shares < NEGLIGIBLE * shares.sum(-1, keepdims=True)] = 0.0
    shares /= shares.sum(-1, keepdims=True)
    by_name: dict[str, np.ndarray] = {}
    for i, candidate in enumerate(candidates):
        by_name[candidate.name] = by_name.get(candidate.name, 0.0) + shares[..., i]
    return mean_of(candidates, shares), by_name


@dataclass
class OfValues(Likelihood):
    """Normally distributed errors, as wide as the candidate's own are."""

    classification: ClassVar[bool] = False
    targets: Array
    held_out: Array

    def __post_init__(self) -> None:
        self.alone = self.targets

    def each(self, candidate: Candidate) -> Array:
        squares = stacks.row_squares(self.residuals(candidate))
        width = stacks.row_dots(self.held_out, squares) / self.held_out.sum(-1) + np.finfo(float).tiny
        return -0.5 * (squares / width[..., None] + arrays.log(width)[..., None])

    def residuals(self, candidate: Candidate, trust: float = 1.0) -> Array:
        return self.targets - predicted(candidate)


def predicted(candidate: Candidate) -> Array:
    """Its left-out values (clients x n x outputs)."""
    return lifted(candidate.share, candidate.scores) * candidate.scores + candidate.added


@dataclass
class OfClasses(Likelihood):
    """Classes of samples, from the evidence of left-out scores, what is added to it, and the left-out class prior."""

    classification: ClassVar[bool] = True
    codes: Array
    """Of the samples (clients x n)."""
    targets: Array
    """The same one-hot (clients x n x C)."""
    shares: Array
    """The logarithms of the class shares that a client's next sample is expected to follow (clients x 1 x C)."""
    prior: Callable[[bool], Array]
    """The same for each sample from the others alone (clients x n x C), as of a fresh draw or not."""
    held_out: Array
    terms: tuple[Term, ...]
    place: Callable[[Array], Place]
    """Where left-out scores lie, each sample left out of the discriminant as well."""
    centre: np.ndarray
    """The terms' weights before any sample is seen, and (below) the precision of these, in samples."""
    precision: np.ndarray
    added_precision: float
    """That of the weight of what is added, at the end."""
    step: float | np.ndarray
    given: Sequence[float] | None = None
    """The terms' weights, where they are not to be chosen."""

    def __post_init__(self) -> None:
        # evidence is weighted beside the prior that is right for a left-out sample; beside a surer one, which is right for class
        # shares that stay the same, the weights would have to make up for it, and predictions would be overconfident
        self.left_out_shares = self.prior(True)
        self.alone = self.targets - softmax(arrays.copy(self.shares))
        self._known: list[tuple[Array, Array]] = []

    def weigh(self, stay: Candidate) -> None:
        """Choose the terms' weights by the shared model as it is."""
        given = None if self.given is None else np.broadcast_to(np.array(self.given), (len(self.codes), len(self.given)))
        self.weights = self.fitted(stay) if given is None else given

    def placed(self, place: Place, candidate: Candidate, moved: np.ndarray | None = None) -> "OfClasses":
        """The same where a candidate's samples lie elsewhere, with the terms' weights that are likeliest there. Clients that are
        not `moved` keep theirs, whoever is beside them."""
        found = copy(self)
        found.place, found._known = lambda scores: place, []
        found.weights = found.fitted(candidate)
        if moved is not None and not moved.all():
            stay, known = ~moved, found.evidence(candidate)
            known[stay] = self.evidence(candidate)[stay]
            found.weights = np.where(stay[:, None], self.weights, found.weights)
        return found

    def evidence(self, candidate: Candidate) -> Array:
        """Of all terms (clients x terms x n x C). That of the first scores, of staying, is asked for again and again."""
        for scores, known in self._known:
            if scores is candidate.scores:
                return known
        place = self.place(candidate.scores)
        known = arrays.stack([term(place) for term in self.terms], axis=-3)
        self._known = [*self._known[:1], (candidate.scores, known)]
        return known

    def logits(self, candidate: Candidate) -> Array:
        """Beside the prior."""
        evidence = self.evidence(candidate)
        flat = evidence.reshape(*evidence.shape[:-2], -1)
        logits = (arrays.like(self.weights, flat)[..., None, :] @ flat).reshape(self.targets.shape)
        if not (isinstance(candidate.share, float) and candidate.share == 1.0):
            logits *= lifted(candidate.share, logits)
        logits += candidate.added
        return logits

    def each(self, candidate: Candidate) -> Array:
        logits = self.logits(candidate)
        logits += self.left_out_shares
        logits -= arrays.last_max(logits)
        right = stacks.pick(logits, self.codes)
        return right - arrays.log(arrays.exp_inplace(logits).sum(-1))

    def residuals(self, candidate: Candidate, trust: float = 1.0) -> Array:
        logits = self.logits(candidate)
        logits += self.shares
        if trust != 1.0:
            logits *= trust
        return self.targets - softmax(logits)

    def fitted(self, candidate: Candidate, added: bool = False) -> np.ndarray:
        """The most likely weights (clients x terms) of the terms, and of what is `added`, near what they were."""
        evidence, centre, precision = self.evidence(candidate), self.centre, self.precision
        if not (isinstance(candidate.share, float) and candidate.share == 1.0):
            evidence = evidence * arrays.like(np.asarray(candidate.share), evidence)[..., None, None, None]
        if added:
            evidence = arrays.concatenate([evidence, candidate.added[..., None, :, :]], axis=-3)
            centre = np.concatenate([self.weights, np.ones((len(self.weights), 1))], axis=1)
            precision = np.append(precision, self.added_precision)
        return most_likely(evidence, self.left_out_shares, self.codes, centre, precision, self.held_out)[0]
