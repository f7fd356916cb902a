"""From a mean of candidates to heads: one for each client of a stack, with estimates of its error."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold.heads import Errors, Head, Stream, Unsolved
from gramfold.methods.pace.candidates import Basis, Candidate
from gramfold.methods.pace.likelihood import OfClasses, predicted
from gramfold.methods.pace.priors import Priors
from gramfold.methods.parts.selection import best_f1, left_out_r2
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.evidence import Evidence

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples

Solution = tuple[Stream, list[Stream], Array | float]
"""The shared solution where a client's mixture moves it to, the streams beside it, and their intercept."""
OfClient = Callable[[int], tuple[Any, Array | float]]
Written = Callable[[Basis, Array], OfClient | None]
"""From coordinates of all clients on a basis: what stands for a client's weights, and its intercept; None: weights, solved."""


def solution(samples: "OwnSamples", mixture: Candidate, written: Written | None = None) -> list[Solution]:
    """For each client the shared solution where its mixture moves it to, the streams beside it, and their intercept."""
    clients = samples.padding.clients
    base: list[Any] = [samples.given.pooled.weights] * clients
    streams: list[list[Stream]] = [[] for _ in range(clients)]
    offsets: list[Array | float] = [0.0] * clients
    for basis, coordinates in mixture.coordinates.items():
        of_client = (None if written is None else written(basis, coordinates)) or _solved(basis, coordinates)
        for k in np.flatnonzero(mixture.present[basis]).tolist():
            weights, intercept = of_client(k)
            if basis.map is None:
                base[k] = weights if isinstance(weights, Unsolved) else base[k] + weights
                continue
            streams[k].append(Stream(basis.map, weights))
            offsets[k] = offsets[k] + intercept
    map = samples.given.space.map
    return [(Stream(map, weights), beside, offset) for weights, beside, offset in zip(base, streams, offsets, strict=True)]


def _solved(basis: Basis, coordinates: Array) -> OfClient:
    weights, intercepts = basis.solution(coordinates)

    def of_client(k: int) -> tuple[Array, Array | float]:
        alone = basis.map is None or len(weights) == 1  # a head that is kept keeps no other's
        return weights[k] if alone else arrays.copy(weights[k]), intercepts if isinstance(intercepts, float) else intercepts[k]

    return of_client


def classifiers(
    samples: "OwnSamples", likelihood: OfClasses, mixture: Candidate, solutions: list[Solution],
    discriminants: list[Discriminant], method: str, chosen: list[dict[str, Any]],
) -> list[Head]:  # fmt: skip
    weights, share = _final_weights(likelihood, mixture), np.broadcast_to(mixture.share, samples.padding.clients)
    evidence = share[:, None] * weights[:, :-1]
    likelihood.weights = weights[:, :-1]
    logits = likelihood.logits(mixture) + arrays.like(weights[:, -1:, None] - 1.0, mixture.added) * mixture.added
    held_out = likelihood.held_out
    if not (arrays.to_numpy(held_out.sum(-1)) > 0).all():  # a client without any is assessed on all of its samples
        held_out = held_out + samples.once * (held_out.sum(-1) == 0)[:, None]
    # two estimates: for new samples whose classes are a fresh draw, so that a sample does not count towards its own class,
    # and for new samples in the class shares that the client has
    new = logits + likelihood.prior(False)
    fresh = _accuracies(new, likelihood.codes, held_out)
    same = _accuracies(logits + likelihood.shares, likelihood.codes, held_out)
    shares = arrays.to_numpy(likelihood.shares)
    space = samples.given.space
    heads = []
    for k, (base, streams, offset) in enumerate(solutions):
        named = {term.name: float(weight) for term, weight in zip(likelihood.terms, evidence[k], strict=True)}
        estimates = {"leave_one_out_accuracy": float(fresh[k]), "leave_one_out_accuracy_same_shares": float(same[k])}
        if len(space.labels or ()) == 2:
            estimates |= best_f1(arrays.to_numpy(new[k]), arrays.to_numpy(held_out[k]))
        beside = float(weights[k, -1])
        heads.append(Head(
            [base],
            space.labels,
            evidence=Evidence(discriminants[k], likelihood.terms, tuple(named.values())),
            refinement=[Stream(stream.map, stream.weights, beside) for stream in streams],
            offset=shares[k, 0] + beside * arrays.to_numpy(offset),
            probabilistic=True,
            method=method,
            chosen={**chosen[k], **named, **estimates},
        ))  # fmt: skip
    return heads


def _final_weights(likelihood: OfClasses, mixture: Candidate) -> np.ndarray:
    """Of the terms of evidence and of what is added (clients x terms + 1): fitted again where there is anything but staying."""
    before = np.concatenate([likelihood.weights, np.ones((len(likelihood.weights), 1))], axis=1)
    moved = np.any(list(mixture.present.values()), axis=0) if mixture.present else np.zeros(len(before), bool)
    if likelihood.given is not None or not moved.any():
        return before
    return np.where(moved[:, None], likelihood.fitted(mixture, added=True), before)


def _accuracies(logits: Array, codes: Array, once: Array) -> np.ndarray:
    right = ((logits.argmax(-1) == codes) * once).sum(-1) / once.sum(-1)
    return arrays.to_numpy(right)


def regressors(
    samples: "OwnSamples", mixture: Candidate, solutions: list[Solution], method: str,
    chosen: list[dict[str, Any]],
) -> list[Head]:  # fmt: skip
    # all samples choose candidates; errors are estimated on those whose labels the features have not seen: others would look good
    split, unseen, pooled, heads = samples.padding.split, samples.unseen, samples.given.pooled, []
    targets, predictions, once = (split(arrays.to_numpy(part)) for part in (samples.targets, predicted(mixture), samples.once))
    held_out = [None] * len(once) if unseen is None else np.split(unseen, np.cumsum(samples.padding.sizes)[:-1])
    spread = None if pooled.spread is None else arrays.to_numpy(pooled.spread)
    share = np.broadcast_to(mixture.share, samples.padding.clients)
    for k, (base, streams, offset) in enumerate(solutions):
        mask = held_out[k]
        may = slice(None) if mask is None or not mask.any() else mask
        wanted, fitted, often = targets[k][may], predictions[k][may], once[k][may]
        error = wanted - fitted
        rmse = math.sqrt(np.average((error**2).sum(1), weights=often))
        heads.append(Head(
            [Stream(base.map, base.weights, float(share[k])), *streams],
            None,
            offset=None if isinstance(offset, float) else arrays.to_numpy(offset),
            method=method,
            chosen={**chosen[k], **left_out_r2(wanted, fitted, often), "leave_one_out_rmse": rmse},
            errors=Errors.of(error, np.zeros(error.shape[1]) if spread is None else spread),
        ))  # fmt: skip
    return heads


def bounded(head: Head, targets: Array, priors: Priors) -> Head:
    """The head of a regression with bounds, from its client's targets (n x outputs): far from the samples seen, features
    may lead anywhere. With too few samples there are none."""
    seen = arrays.to_numpy(targets)
    if head.errors is None or len(seen) < priors.reach_samples:
        return head
    least, largest = seen.min(0), seen.max(0)
    room = priors.reach * head.errors.spread + (largest - least) * priors.reach_samples / len(seen)
    return replace(head, bounds=np.stack([least - room, largest + room], axis=1).astype(float))
