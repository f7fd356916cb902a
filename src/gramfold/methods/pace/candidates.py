"""Candidates: what a client may make of the shared model, each with what it says of the client's own samples without them.

Every candidate is linear in its coordinates, so that a mean of candidates is a candidate, and becomes one head at the end.
Clients of about as many samples are looked at together: arrays have them along their first axis.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from gramfold.features import Map
from gramfold.methods.pace.influence import OfFactor
from gramfold.numerics.arrays import Array
from gramfold.numerics.stacks import lifted
from gramfold.solve.free_ridge import FreeRidge

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples


ROUNDING = 1e-9
"""Relative differences of log-likelihoods below this are rounding."""


class Basis(Protocol):
    """What a candidate's coordinates are coordinates of: weights on a map's features."""

    @property
    def map(self) -> Map | None:
        """Of the stream that the weights make beside the shared solution; None: they are added to that solution itself."""

    def solution(self, coordinates: Array) -> tuple[Array, Any]:
        """Each client's weights (m x C) and intercept (C)."""


Numbers = float | np.ndarray
"""One for all clients, or one for each."""


@dataclass(frozen=True)
class Candidate:
    """One way to be personal. What it says of a sample is what the shared model says, moved perhaps, `share` times, plus what is
    `added`: values, or logits where there are classes. Both are left out: row i is told by all samples but i."""

    name: str
    scores: Array
    """Left-out scores (clients x n x C) of the shared model, where this candidate moves it to."""
    added: Array
    """Left-out values or logits (clients x n x C) beside them."""
    share: Numbers = 1.0
    coordinates: Mapping[Basis, Array] = field(default_factory=dict)
    before: Numbers = 1.0
    """How likely it is before any sample is seen, in units of staying; zero for clients that it is not tried for."""
    alpha: Numbers = 0.0
    """How many times more the client's own samples count in the shared solution."""
    present: Mapping[Basis, np.ndarray] = field(default_factory=dict)
    """Of a mean: for which clients its coordinates are any."""


def mean_of(candidates: Sequence[Candidate], shares: Sequence[float] | np.ndarray) -> Candidate:
    """The mean of candidates with these shares (candidates, or clients x candidates), which add up to one."""
    parts = np.asarray(shares, float)
    kept = [(each, parts[..., i]) for i, each in enumerate(candidates) if parts[..., i].any()]
    share = np.asarray(sum(part * each.share for each, part in kept))
    inverse = np.where(share > 0, 1.0 / np.where(share > 0, share, 1.0), 0.0)
    coordinates: dict[Basis, Array] = {}
    present: dict[Basis, np.ndarray] = {}
    for each, part in kept:
        for basis, numbers in each.coordinates.items():
            scaled = lifted(part * each.share * inverse if basis.map is None else part, numbers) * numbers
            coordinates[basis] = coordinates[basis] + scaled if basis in coordinates else scaled
            present[basis] = present.get(basis, np.zeros(part.shape, bool)) | (part > 0)
    moved = [(each.scores, part * each.share * inverse) for each, part in kept if np.any(each.share)]
    return Candidate(
        "mean",
        _sum(moved) if moved else candidates[0].scores,
        _sum([(each.added, part) for each, part in kept]),
        share,
        coordinates,
        alpha=np.asarray(sum(part * each.alpha for each, part in kept)),
        present=present,
    )


def _sum(weighed: Sequence[tuple[Array, np.ndarray]]) -> Array:
    total = None
    for numbers, part in weighed:
        if len(weighed) == 1 and (part == 1.0).all():
            return numbers
        scaled = lifted(part, numbers) * numbers
        total = scaled if total is None else total.__iadd__(scaled)
    return total


class OwnRidge(FreeRidge):
    """A client's own ridge on its own centred columns: a basis of candidates."""

    def __init__(self, map: Map, rows: Array, roots: Array | None) -> None:
        super().__init__(rows, roots)
        self.map = map


class Part(ABC):
    """Makes candidates. PACE has a tuple of parts; without one it has that part's candidates no more."""

    name: ClassVar[str]

    @abstractmethod
    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        """Beside `stay`, the shared model as it is."""


@dataclass(frozen=True)
class Blend(Part):
    """The shared solution with the client's samples weighted up (FedHiP), where the server sent what it takes."""

    name: ClassVar[str] = "blend"
    alphas: tuple[float, ...] = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
    before: float = 0.1

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        """Tried in turn, as long as they make a client's samples more likely."""
        found: list[Candidate] = []
        influence, residuals = samples.influence, samples.residuals
        if not isinstance(influence, OfFactor) or samples.blocks is not None:  # a blend is left out sample by sample
            return found
        best, before = samples.likelihood.of(stay), self.before / len(self.alphas)
        trying = np.ones(np.shape(best), bool)
        for alpha in self.alphas:
            move, left = influence.blended(residuals, alpha, samples.copies)
            scores = samples.targets - samples.unweighted(left)
            tried = Candidate(self.name, scores, stay.added, coordinates={influence: move}, alpha=alpha)
            log_likelihood = samples.likelihood.of(tried)
            trying &= log_likelihood > best + ROUNDING * (1.0 + abs(best))
            if not trying.any():
                break
            found, best = [*found, replace(tried, before=before * trying)], np.where(trying, log_likelihood, best)
        return found


@dataclass(frozen=True)
class Residual(Part):
    """The shared model, and a ridge of its residuals (APFL)."""

    name: ClassVar[str] = "residual"
    of_classes: tuple[tuple[float, float], ...] = ((1.0, 0.3), (1.0, 10.0), (0.3, 0.003))
    """A factor that shrinks the logits, and the penalty. A client with two of ten classes is all but certain of most samples, and
    its residuals are the noise of the few others; with shrunk logits, and a smaller penalty, all samples contribute."""
    of_two_classes: tuple[tuple[float, float], ...] = ((1.0, 0.3), (1.0, 3.0), (1.0, 30.0))
    """The same of two classes, of which a client is hardly ever that certain (`clean_tables.py`)."""
    of_values: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 1e4)
    """Penalties; with the last an offset is all there is."""
    before: float = 4.0

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits:
            return []
        trials = self.of_two_classes if samples.targets.shape[-1] == 2 else self.of_classes
        if not samples.likelihood.classification:
            trials = tuple((1.0, gamma) for gamma in self.of_values)
        before, ridge, found = self.before / len(trials), samples.on_refinement, []
        for trust, gamma in trials:
            left = samples.likelihood.residuals(stay, trust)
            found.append(samples.beside(self.name, ridge, left, gamma, before, stay))
        return found


@dataclass(frozen=True)
class Own(Part):
    """A model of the client's own: a ridge on its own centred columns, of which nothing is shared but the map."""

    name: ClassVar[str] = "own"
    of_classes: tuple[float, ...] = (0.3,)
    of_values: tuple[float, ...] = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
    before: float = 0.1

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits:
            return []
        gammas = self.of_classes if samples.likelihood.classification else self.of_values
        before = self.before / len(gammas)
        return [samples.alone(self.name, samples.on_features, gamma, before) for gamma in gammas]


@dataclass(frozen=True)
class PersonalKernel(Part):
    """A ridge on each of the personal maps: of the targets, with nothing else shared, and of the shared model's residuals."""

    name: ClassVar[str] = "personal"
    of_classes: tuple[float, ...] = (0.03, 0.3)
    of_values: tuple[float, ...] = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
    before: float = 0.1

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits or not samples.given.personal:
            return []
        likelihood, found = samples.likelihood, []
        penalties = self.of_classes if likelihood.classification else self.of_values
        before, left = self.before / (2 * len(penalties) * len(samples.given.personal)), likelihood.residuals(stay)
        for map in samples.given.personal:
            ridge = OwnRidge(map, samples.mapped(map), samples.roots)
            for penalty in penalties:
                found.append(samples.alone(self.name, ridge, penalty, before))
                found.append(samples.beside(self.name, ridge, left, penalty, before, stay))
        return found


PARTS: tuple[Part, ...] = (Blend(), Residual(), Own())
