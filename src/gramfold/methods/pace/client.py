"""PACE at clients: their own samples, each left out of the shared model, their candidates, the mean of these, and heads.

Clients of about as many samples are one stack, zeros behind: a client alone is a stack of one. What is of every sample stays
where the features are; what is a number or two of every client is NumPy's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gramfold.features import Map
from gramfold.federation import Samples
from gramfold.heads import Head
from gramfold.methods.differences.effects import Effects
from gramfold.methods.pace.candidates import PARTS, Blend, Candidate, Own, OwnRidge, Part
from gramfold.methods.pace.centroids import UNMOVED, moved
from gramfold.methods.pace.evidence import of_classes
from gramfold.methods.pace.heads import Written, classifiers, regressors, solution
from gramfold.methods.pace.influence import OfFactor, OfSketch, influence_of
from gramfold.methods.pace.likelihood import Likelihood, OfClasses, OfValues, average
from gramfold.methods.pace.priors import PRIORS, Priors
from gramfold.methods.pace.server import Pooled
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space, blocks_of, often_of, root_weights, scaled, together
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.numerics.stacks import lifted, transposed
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.leave_one_out import left_out_residuals
from gramfold.solve.left_out_blocks import told_by_others, without_blocks


@dataclass(frozen=True)
class Given:
    """What clients are given beside their samples: the same for all of a stack."""

    space: Space
    pooled: Pooled
    refinement: Map | None = None
    """The map that residuals are fitted on; None: the shared features."""
    personal: Sequence[Map] = ()
    """Maps in the metric that clients' own functions share, where one was found."""
    copies: float = 1.0
    """How many times the shared solution counts the samples of clients like these, if these are in it."""
    priors: Priors = PRIORS
    weights: Sequence[float] | None = None
    """Of the terms of evidence, where they are not to be chosen."""
    effects: Effects | None = None
    """How far clients' own offsets and slopes lie apart, where they do."""


@dataclass
class OwnSamples:
    """What clients know of their samples, once for all candidates."""

    given: Given
    train: Samples
    """Of all clients, one after another."""
    padding: Padding
    rows: Array
    """Features (clients x n x m), and one-hot classes or values (clients x n x C)."""
    targets: Array
    unseen: np.ndarray | None
    """Samples whose labels the features have not seen, one client's after another's; None: all."""
    roots: Array | None
    """Square roots of the samples' weights (clients x n x 1); None: each counts once, and there is no padding."""
    once: Array
    """How often each counts (clients x n)."""
    copies: float
    """How often they are in the sum behind the shared solution: once, more often in that of their group; of late clients, not at
    all."""
    influence: OfFactor | OfSketch
    residuals: Array
    """What the shared model as it is leaves of the targets, times the roots."""
    scores: Array
    """What it says of each sample without it."""
    apart: Sequence[np.ndarray] | None = None
    """The clients' offsets that are out of the targets already."""
    blocks: Sequence[np.ndarray] | None = None
    """Of each client's samples what they are part of: what is left out is then all of a block. None: nobody says."""

    @classmethod
    def of(
        cls, clients: Sequence[ClientData], given: Given, rows: Array, unseen: np.ndarray | None = None,
        apart: Sequence[np.ndarray] | None = None,
    ) -> "OwnSamples":  # fmt: skip
        """`rows` are the features of the samples that count, one client's after another's. Either all clients are in the sum
        behind the shared solution or none is."""
        train, padding = together(clients)
        wanted, pooled = given.space.targets(train, rows), given.pooled
        often = arrays.like(often_of(train), rows)
        once = padding(often)
        roots = None if train.weights is None and padding.even else once[..., None] ** 0.5
        influence = influence_of(scaled(rows, root_weights(train, rows)), pooled.leverage, padding)
        targets, residuals = padding(wanted), padding(wanted - rows @ pooled.weights)
        # a sample is left out with all its weight w, and all its copies: its leverage is so many times h
        copies = given.copies * clients[0].contributed
        left, blocks = left_out_residuals(residuals, copies * influence.leverages), blocks_of(clients)
        if blocks is not None and copies and isinstance(influence, OfFactor):
            hat = copies * influence.half @ transposed(influence.half)
            left = without_blocks(scaled(residuals, roots), hat, blocks)
            left = left if roots is None else left / (roots + (roots == 0))
        return cls(given, train, padding, padding(rows), targets, unseen, roots, once, copies, influence,
                   scaled(residuals, roots), targets - left, apart, blocks)  # fmt: skip

    @property
    def inputs(self) -> Array:
        """Of all clients, one after another."""
        return self.train.inputs

    @cached_property
    def likelihood(self) -> Likelihood:
        """How likely candidates make them."""
        return of_classes(self) if self.given.space.classification else OfValues(self.targets, self.once)

    @property
    def held_out(self) -> Array:
        """How often each counts where candidates are compared."""
        if self.unseen is None:
            return self.once
        return self.padding(arrays.like(often_of(self.train) * self.unseen, self.once))

    def mapped(self, map: Map) -> Array:
        """What another map makes of the samples (clients x n x features)."""
        return self.padding(map(self.inputs))

    @cached_property
    def on_features(self) -> OwnRidge:
        """The clients' own ridges on the shared features, for every penalty and whatever they are to explain."""
        return OwnRidge(self.given.space.map, self.rows, self.roots)

    @cached_property
    def on_refinement(self) -> OwnRidge:
        """The same on those of the refinement's map."""
        map = self.given.refinement
        if map is None or map.fingerprint == self.given.space.map.fingerprint:
            return self.on_features
        return OwnRidge(map, self.mapped(map), self.roots)

    @property
    def fits(self) -> bool:
        """Whether there are samples enough to fit anything."""
        return min(self.padding.sizes) > 2

    def unweighted(self, numbers: Array) -> Array:
        """Numbers of samples without the roots of their weights."""
        return numbers if self.roots is None else numbers / (self.roots + (self.roots == 0))

    def fitted(self, ridge: OwnRidge, targets: Array, gamma: float) -> tuple[Array, Array]:
        """What ridges of the clients' own tell each sample by the others (clients x n x C), and their coordinates; both in what
        they add to a prediction."""
        fit, numbers = ridge.fit(targets, gamma)
        if self.blocks is not None:
            fit = told_by_others(ridge, targets, gamma, self.blocks)
        step = lifted(self.likelihood.step, fit)
        return step * fit, step * numbers

    def beside(self, name: str, ridge: OwnRidge, targets: Array, penalty: float, before: float, stay: Candidate) -> Candidate:
        """The candidate that adds a ridge of `targets`, what it leaves of them say, to the shared model as it is."""
        fit, numbers = self.fitted(ridge, targets, penalty)
        return Candidate(name, stay.scores, stay.added + fit, 1.0, {ridge: numbers}, before)

    def alone(self, name: str, ridge: OwnRidge, penalty: float, before: float) -> Candidate:
        """The candidate that shares nothing but a map: a ridge of the targets."""
        fit, numbers = self.fitted(ridge, self.likelihood.alone, penalty)
        return Candidate(name, self.scores, fit, 0.0, {ridge: numbers}, before)


def personalized(samples: OwnSamples, parts: Sequence[Part], method: str, written: Written | None = None) -> list[Head]:
    """The clients' own heads: of each the mean of its candidates by left-out likelihood."""
    likelihood = samples.likelihood
    stay = Candidate("stay", samples.scores, samples.scores * 0.0)
    if isinstance(likelihood, OfClasses):
        likelihood.weigh(stay)
    candidates = [stay, *(each for part in parts for each in part.candidates(samples, stay))]
    mixture, shares = average(candidates, likelihood)
    discriminants, worth = list[Discriminant](), np.full(samples.padding.clients, UNMOVED)
    if isinstance(likelihood, OfClasses):
        likelihood, discriminants, worth = moved(samples, likelihood, mixture)
    gained, pooled = gains(candidates, mixture, likelihood), samples.given.pooled.chosen
    chosen = [{**pooled, **tried, **gain} for tried, gain in zip(_tried(shares, candidates), gained, strict=True)]
    if isinstance(samples.influence, OfFactor) and any(part.name == Blend.name for part in parts):
        alphas = np.broadcast_to(mixture.alpha, len(gained))
        chosen = [{**mine, "alpha": float(alpha)} for mine, alpha in zip(chosen, alphas, strict=True)]
    for k in np.flatnonzero(worth != UNMOVED).tolist():
        chosen[k]["centroids_worth"] = float(worth[k])
    solutions = solution(samples, mixture, written)
    if isinstance(likelihood, OfClasses):
        return classifiers(samples, likelihood, mixture, solutions, discriminants, method, chosen)
    return regressors(samples, mixture, solutions, method, chosen)


def _tried(shares: dict[str, np.ndarray], candidates: Sequence[Candidate]) -> list[dict[str, float]]:
    """Of each client the shares of the kinds of candidate that were tried for it."""
    found: list[dict[str, float]] = [{} for _ in shares["stay"]]
    for name, share in shares.items():
        tried = np.zeros(share.shape, bool)
        for each in candidates:
            if each.name == name:
                tried |= np.asarray(each.before) > 0
        for mine, was, part in zip(found, tried.tolist(), share.tolist(), strict=True):
            if was:
                mine[name] = round(part, 4)
    return found


def gains(candidates: Sequence[Candidate], mixture: Candidate, likelihood: Likelihood) -> list[dict[str, float]]:
    """What each client gained by joining: by how much its left-out samples are likelier than in a model of its own alone, in nats
    a sample. Nothing where it has too few for one."""
    own, counts = [each for each in candidates if each.name == Own.name], arrays.to_numpy(likelihood.held_out.sum(-1))
    if not own:
        return [{} for _ in counts]
    alone, _ = average(own, likelihood)
    apart = likelihood.of(mixture) - likelihood.of(alone)
    return [{"gained_by_joining": float(more / n)} if n > 0 else {} for more, n in zip(apart, counts, strict=True)]


def personal_head(client: ClientData, given: Given, rows: Array, method: str, fitted: bool) -> Head:
    """PACE's head on any features, for methods that make their own. `fitted`: whether these were fitted to the samples' labels;
    a sample cannot be left out of them then, and an estimate of the accuracy would be too good."""
    head = personalized(OwnSamples.of([client], given, rows), PARTS, method)[0]
    chosen = {key: value for key, value in head.chosen.items() if not (fitted and "leave_one_out" in key)}
    return replace(head, chosen=chosen)
