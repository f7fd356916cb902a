"""PACE at a client: its own samples, each left out of the shared model, its candidates, their mean, its head."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from gramfold.features import Map
from gramfold.heads import Errors, Head, Stream
from gramfold.methods.pace.candidates import PARTS, Basis, Candidate, Own, OwnPart, OwnRidge, Part
from gramfold.methods.pace.influence import Influence, influence_of
from gramfold.methods.pace.likelihood import Likelihood, OfClasses, OfValues, average, predicted
from gramfold.methods.pace.priors import PRIORS, Priors
from gramfold.methods.pace.server import Pooled
from gramfold.methods.parts.selection import left_out_r2
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space, counting, root_weights, scaled
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.class_prior import ClassPrior
from gramfold.solve.discriminant import Place
from gramfold.solve.evidence import Evidence, terms
from gramfold.solve.leave_one_out import left_out_residuals
from gramfold.solve.left_out_discriminant import LeftOutDiscriminant
from gramfold.wire.compact import full


@dataclass
class OwnSamples:
    """What a client knows of its samples, once for all candidates."""

    space: Space
    refinement: Map | None
    inputs: Array
    rows: Array
    """Features (n x m), and one-hot classes or values (n x C)."""
    targets: Array
    roots: Array | None
    """Square roots of the samples' weights (n x 1), where they have any."""
    once: np.ndarray
    """How often each counts (n)."""
    copies: float
    """How often they are in the sum behind the shared solution: once, more often in that of their group; of a late client, not at
    all."""
    shared: Array
    """Its weights (m x C)."""
    influence: Influence
    residuals: Array
    """What the shared model as it is leaves of the targets, times the roots."""
    scores: Array
    """What it says of each sample without it."""
    likelihood: Likelihood
    personal: Sequence[Map] = ()
    """Maps in the metric that clients' own functions share, where one was found."""
    apart: OwnPart | None = None
    """The client's own part, where that is taken out of the targets."""

    @classmethod
    def of(
        cls,
        client: ClientData,
        space: Space,
        refinement: Map | None,
        pooled: Pooled,
        rows: Array,
        judging: np.ndarray | None,
        priors: Priors,
        weights: Sequence[float] | None,
        copies: float = 1.0,
        personal: Sequence[Map] = (),
        apart: OwnPart | None = None,
    ) -> "OwnSamples":
        """`rows` are the features of the samples that count, `judging` says whose labels these have not seen (None: all).
        `copies`: how many times the shared solution counts samples of clients like this one; `personal`: maps in the metric that
        clients' own functions share; `apart`: the own part that is out of the targets already."""
        train = counting(client)
        targets, roots, shared = space.targets(train, rows), root_weights(train, rows), full(pooled.weights)
        once = np.ones(train.n) if train.weights is None else arrays.to_numpy(train.weights)
        influence = influence_of(scaled(rows, roots), pooled.leverage)
        residuals = targets - rows @ shared
        # a sample is left out with all its weight w, and all its copies: its leverage is so many times h
        copies = copies * client.contributed
        scores = targets - left_out_residuals(residuals, copies * influence.leverages)
        likelihood: Likelihood = OfValues(targets, once)
        if space.classification:
            likelihood = _of_classes(
                space, pooled, arrays.to_numpy(train.targets), once, once if judging is None else once * judging,
                arrays.to_numpy(scores), arrays.to_numpy(copies * influence.leverages) if copies else None, priors, weights,
                copies,
            )  # fmt: skip
        return cls(space, refinement, train.inputs, rows, targets, roots, once, copies, shared, influence,
                   scaled(residuals, roots), scores, likelihood, personal, apart)  # fmt: skip

    @cached_property
    def on_features(self) -> OwnRidge:
        """The client's own ridge on the shared features, for every penalty and whatever it is to explain."""
        return OwnRidge(self.space.map, self.rows, self.roots)

    @cached_property
    def on_refinement(self) -> OwnRidge:
        """The same on those of the refinement's map."""
        if self.refinement is None or self.refinement.fingerprint == self.space.map.fingerprint:
            return self.on_features
        return OwnRidge(self.refinement, self.refinement(self.inputs), self.roots)

    @property
    def fits(self) -> bool:
        """Whether there are samples enough to fit anything."""
        return len(self.targets) > 2

    def fitted(self, ridge: OwnRidge, targets: Array, gamma: float) -> tuple[Array, Array]:
        """What a ridge of the client's own tells each sample by the others (n x C), and its coordinates; both in what they add to
        a prediction."""
        fit, numbers = ridge.fit(arrays.like(targets, self.rows), gamma)
        return self.likelihood.step * fit, self.likelihood.step * numbers

    def alone(self, name: str, ridge: OwnRidge, penalty: float, before: float) -> Candidate:
        """The candidate that shares nothing but a map: a ridge of the targets as they are, whatever was taken out of them."""
        step, wanted = self.likelihood.step, self.likelihood.alone
        apart = 0.0 if self.apart is None else self.apart.values
        fit, numbers = ridge.fit(arrays.like(wanted, self.rows) + apart, penalty)
        coordinates: dict[Basis, Array] = {ridge: step * numbers}
        if self.apart is not None:
            coordinates[self.apart] = -self.apart.weights
        return Candidate(name, self.scores, step * fit - apart, 0.0, coordinates, before)


def _of_classes(
    space: Space,
    pooled: Pooled,
    codes: np.ndarray,
    once: np.ndarray,
    judges: np.ndarray,
    scores: np.ndarray,
    leverages: np.ndarray | None,
    priors: Priors,
    weights: Sequence[float] | None,
    copies: float,
) -> OfClasses:
    assert pooled.discriminant is not None
    counts = arrays.to_numpy(pooled.counts)
    prior = ClassPrior.of(np.bincount(codes, once, len(counts)), counts)
    place: Any = pooled.discriminant.place
    if leverages is not None and len(counts) > 2:
        place = LeftOutDiscriminant.of(pooled.discriminant, counts, scores, codes, copies * once, leverages).place
        place = partial(_on_numpy, place)
    centre, precision = priors.of_evidence(len(counts), space.map, pooled.discriminant.correlation(counts))
    step = priors.step_of(len(counts), float(once.sum()))
    return OfClasses(codes, prior, once, judges, terms(len(counts)), place, centre, precision, step, weights)


def _on_numpy(place: Any, scores: Array) -> Place:
    found: Place = place(arrays.to_numpy(scores))
    return found


def personalized(samples: OwnSamples, parts: Sequence[Part], pooled: Pooled, judging: np.ndarray | None, method: str) -> Head:
    """The client's own head: the mean of its candidates by left-out likelihood."""
    likelihood = samples.likelihood
    stay = Candidate("stay", samples.scores, samples.scores * 0.0)
    if isinstance(likelihood, OfClasses):
        likelihood.weigh(stay)
    candidates = [stay, *(each for part in parts for each in part.candidates(samples, stay))]
    mixture, shares = average(candidates, likelihood)
    told = {name: round(share, 4) for name, share in shares.items()}
    chosen = {**pooled.chosen, **told, "alpha": mixture.alpha, **gained(candidates, mixture, likelihood)}
    base, streams, offset = solution(samples, mixture)
    if isinstance(likelihood, OfClasses):
        return _classifier(samples, likelihood, mixture, pooled, method, chosen, base, streams, offset)
    return _regressor(samples, mixture, pooled, judging, method, chosen, base, streams, offset)


def gained(candidates: Sequence[Candidate], mixture: Candidate, likelihood: Likelihood) -> dict[str, float]:
    """What the client gained by joining: by how much its left-out samples are likelier than in a model of its own alone, in nats
    a sample. Nothing where it has too few for one."""
    own, judges = [each for each in candidates if each.name == Own.name], float(likelihood.judges.sum())
    if not own or not judges > 0:
        return {}
    alone, _ = average(own, likelihood)
    return {"gained_by_joining": (likelihood.of(mixture) - likelihood.of(alone)) / judges}


def personal_head(
    client: ClientData,
    space: Space,
    refinement: Map | None,
    pooled: Pooled,
    rows: Array,
    weights: Sequence[float] | None,
    method: str,
) -> Head:
    """PACE's head on any features, for methods that make their own."""
    samples = OwnSamples.of(client, space, refinement, pooled, rows, None, PRIORS, weights)
    return personalized(samples, PARTS, pooled, None, method)


def without_estimates(head: Head) -> Head:
    """The head where the map's layers have seen the samples' labels, and cannot be left out with them: an estimate of its
    accuracy would be too good."""
    return replace(head, chosen={key: value for key, value in head.chosen.items() if "leave_one_out" not in key})


def solution(samples: OwnSamples, mixture: Candidate) -> tuple[Stream, list[Stream], Array | float]:
    """The shared solution where a mixture moves it to, the streams beside it, and their intercept."""
    base, streams, offset = samples.shared, [], 0.0
    for basis, coordinates in mixture.coordinates.items():
        weights, intercept = basis.solution(coordinates)
        if basis.moves:
            base = base + weights
        else:
            streams.append(Stream(getattr(basis, "map"), weights))  # noqa: B009 (only a basis that does not move has one)
            offset = offset + intercept
    return Stream(samples.space.map, base), streams, offset


def _classifier(
    samples: OwnSamples, likelihood: OfClasses, mixture: Candidate, pooled: Pooled, method: str, chosen: dict[str, Any],
    base: Stream, streams: list[Stream], offset: Array | float,
) -> Head:  # fmt: skip
    weights = np.append(likelihood.weights, 1.0)
    if likelihood.given is None and mixture.coordinates:
        weights, _ = likelihood.fitted(mixture, added=True)
    evidence = [mixture.share * float(weight) for weight in weights[:-1]]
    told = np.tensordot(np.array(evidence), likelihood.evidence(mixture), 1) + weights[-1] * arrays.to_numpy(mixture.added)
    judges = likelihood.judges if likelihood.judges.any() else likelihood.once
    # two estimates: for new samples whose classes are a fresh draw, so that a sample does not count towards its own class,
    # and for new samples in the class shares that the client has
    chosen |= {term.name: weight for term, weight in zip(likelihood.terms, evidence, strict=True)}
    fresh = likelihood.prior.left_out(likelihood.codes, likelihood.once)
    chosen["leave_one_out_accuracy"] = _accuracy(told + fresh, likelihood.codes, judges)
    chosen["leave_one_out_accuracy_same_shares"] = _accuracy(told + likelihood.shares, likelihood.codes, judges)
    assert pooled.discriminant is not None
    return Head(
        [base],
        samples.space.labels,
        evidence=Evidence(pooled.discriminant, likelihood.terms, tuple(evidence)),
        refinement=[Stream(stream.map, stream.weights, float(weights[-1])) for stream in streams],
        offset=likelihood.shares + float(weights[-1]) * arrays.to_numpy(offset),
        probabilistic=True,
        method=method,
        chosen=chosen,
    )


def _regressor(
    samples: OwnSamples, mixture: Candidate, pooled: Pooled, judging: np.ndarray | None, method: str, chosen: dict[str, Any],
    base: Stream, streams: list[Stream], offset: Array | float,
) -> Head:  # fmt: skip
    # all samples choose; those whose labels the features have not seen say how far off it is: who chooses flatters itself
    targets, told, once = arrays.to_numpy(samples.targets), arrays.to_numpy(predicted(mixture)), samples.once
    if judging is not None and judging.any():
        targets, told, once = targets[judging], told[judging], once[judging]
    error = targets - told
    chosen |= left_out_r2(targets, told, once)
    chosen["leave_one_out_rmse"] = math.sqrt(np.average((error**2).sum(1), weights=once))
    spread = np.zeros(error.shape[1]) if pooled.spread is None else arrays.to_numpy(pooled.spread)
    return Head(
        [Stream(base.map, base.weights, mixture.share), *streams],
        None,
        offset=None if isinstance(offset, float) else arrays.to_numpy(offset),
        method=method,
        chosen=chosen,
        errors=Errors.of(error, spread),
    )


def _accuracy(logits: np.ndarray, codes: np.ndarray, once: np.ndarray) -> float:
    return float(np.average(logits.argmax(1) == codes, weights=once))
