"""Candidates: what a client may make of the shared model, each with what it says of the client's own samples without them.

Every candidate is linear in its coordinates, so that a mean of candidates is a candidate, and becomes one head at the end.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gramfold.features import Map
from gramfold.methods.pace.influence import blended
from gramfold.numerics.arrays import Array
from gramfold.solve.free_ridge import FreeRidge

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples


class Basis(Protocol):
    """What a candidate's coordinates are coordinates of: weights on a map's features."""

    @property
    def moves(self) -> bool:
        """Whether the weights move the shared solution, rather than stand beside it, as a stream with a `map` of its own."""

    def solution(self, coordinates: Array) -> tuple[Array, Any]:
        """Weights (m x C) and intercept (C)."""


@dataclass(frozen=True)
class Candidate:
    """One way to be personal. What it says of a sample is what the shared model says, moved perhaps, `share` times, plus what is
    `added`: values, or logits where there are classes. Both are left out: row i is told by all samples but i."""

    name: str
    scores: Array
    """Left-out scores (n x C) of the shared model, where this candidate moves it to."""
    added: Array
    """Left-out values or logits (n x C) beside them."""
    share: float = 1.0
    coordinates: Mapping[Basis, Array] = field(default_factory=dict)
    before: float = 1.0
    """How likely it is before any sample is seen, in units of staying."""
    alpha: float = 0.0
    """How many times more the client's own samples count in the shared solution."""


def mean_of(candidates: Sequence[Candidate], shares: Sequence[float], name: str = "mean") -> Candidate:
    """The mean of candidates with these shares, which add up to one."""
    kept = [(candidate, share) for candidate, share in zip(candidates, shares, strict=True) if share > 0]
    share = sum(part * candidate.share for candidate, part in kept)
    coordinates: dict[Basis, Array] = {}
    for candidate, part in kept:
        of_shared = part * candidate.share / share if share > 0 else 0.0
        for basis, numbers in candidate.coordinates.items():
            scaled = (of_shared if basis.moves else part) * numbers
            coordinates[basis] = coordinates[basis] + scaled if basis in coordinates else scaled
    scores = [(part * candidate.share / share) * candidate.scores for candidate, part in kept if candidate.share]
    return Candidate(
        name,
        sum(scores[1:], scores[0]) if scores else candidates[0].scores,
        sum((part * candidate.added for candidate, part in kept[1:]), kept[0][1] * kept[0][0].added),
        share,
        coordinates,
        alpha=sum(part * candidate.alpha for candidate, part in kept),
    )


class OwnRidge(FreeRidge):
    """A client's own ridge on its own centred columns: a basis of candidates."""

    moves: ClassVar[bool] = False

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
        """Tried in turn, as long as they make the samples more likely."""
        found: list[Candidate] = []
        if not samples.influence.can_weigh_up:
            return found
        best = samples.likelihood.of(stay)
        for alpha in self.alphas:
            move, left = blended(samples.influence, samples.residuals, alpha, samples.copies)
            scores = samples.targets - (left if samples.roots is None else left / samples.roots)
            before = self.before / len(self.alphas)
            tried = Candidate(self.name, scores, stay.added, coordinates={samples.influence: move}, before=before, alpha=alpha)
            told = samples.likelihood.of(tried)
            if told <= best:
                break
            found, best = [*found, tried], told
        return found


@dataclass(frozen=True)
class Residual(Part):
    """The shared model, and a ridge of what it leaves unexplained (APFL)."""

    name: ClassVar[str] = "residual"
    of_classes: tuple[tuple[float, float], ...] = ((1.0, 0.3), (1.0, 10.0), (0.3, 0.003))
    """How much of logits to believe, and penalty. A client with two of ten classes is all but certain of most samples, and what
    is left is noise of the few others; at a part of their face value all samples have a say, and at less of a penalty."""
    of_two_classes: tuple[tuple[float, float], ...] = ((1.0, 0.3), (1.0, 3.0), (1.0, 30.0))
    """Of two classes none is ruled out beforehand."""
    of_values: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 1e4)
    """Penalties; with the last an offset is all there is."""
    before: float = 4.0

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits:
            return []
        trials = self.of_two_classes if samples.targets.shape[1] == 2 else self.of_classes
        if not samples.likelihood.classification:
            trials = tuple((1.0, gamma) for gamma in self.of_values)
        before, ridge, found = self.before / len(trials), samples.on_refinement, []
        for trust, gamma in trials:
            fit, numbers = samples.fitted(ridge, samples.likelihood.unexplained(stay, trust), gamma)
            found.append(Candidate(self.name, stay.scores, stay.added + fit, 1.0, {ridge: numbers}, before))
        return found


@dataclass(frozen=True)
class Own(Part):
    """A model of the client's own: a ridge on its own centred columns, of which nothing is shared but the map."""

    name: ClassVar[str] = "own"
    on: str = "on_features"
    of_classes: tuple[float, ...] = (0.3,)
    of_values: tuple[float, ...] = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
    before: float = 0.1

    def candidates(self, samples: "OwnSamples", stay: Candidate) -> list[Candidate]:
        if not samples.fits:
            return []
        gammas = self.of_classes if samples.likelihood.classification else self.of_values
        before, ridge, found = self.before / len(gammas), getattr(samples, self.on), []
        for gamma in gammas:
            fit, numbers = samples.fitted(ridge, samples.likelihood.alone, gamma)
            found.append(Candidate(self.name, stay.scores, fit, 0.0, {ridge: numbers}, before))
        return found


PARTS: tuple[Part, ...] = (Blend(), Residual(), Own())
