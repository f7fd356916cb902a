"""From a mean of candidates to heads: one for each client of a stack, with what it is told to be worth."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold.heads import Errors, Head, Stream
from gramfold.methods.pace.candidates import Candidate
from gramfold.methods.pace.likelihood import OfClasses, predicted
from gramfold.methods.pace.priors import Priors
from gramfold.methods.parts.selection import best_f1, left_out_r2
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.evidence import Evidence

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples
    from gramfold.methods.pace.places import Placed

Solution = tuple[Stream, list[Stream], Array | float]
"""The shared solution where a client's mixture moves it to, the streams beside it, and their intercept."""


def classifiers(
    samples: "OwnSamples", likelihood: OfClasses, mixture: Candidate, solutions: list[Solution],
    places: list["Placed"], method: str, chosen: list[dict[str, Any]],
) -> list[Head]:  # fmt: skip
    weights, share = _final_weights(likelihood, mixture), np.broadcast_to(mixture.share, samples.padding.clients)
    evidence = share[:, None] * weights[:, :-1]
    likelihood.weights = weights[:, :-1]
    told = likelihood.logits(mixture) + arrays.like(weights[:, -1:, None] - 1.0, mixture.added) * mixture.added
    judges = likelihood.judges
    if not (arrays.to_numpy(judges.sum(-1)) > 0).all():  # who has no sample that may judge is judged by all
        judges = judges + samples.once * (judges.sum(-1) == 0)[:, None]
    # two estimates: for new samples whose classes are a fresh draw, so that a sample does not count towards its own class,
    # and for new samples in the class shares that the client has
    new = told + likelihood.prior(False)
    fresh = _accuracies(new, likelihood.codes, judges)
    same = _accuracies(told + likelihood.shares, likelihood.codes, judges)
    shares = arrays.to_numpy(likelihood.shares)
    space = samples.given.space
    heads = []
    for k, (base, streams, offset) in enumerate(solutions):
        named = {term.name: float(weight) for term, weight in zip(likelihood.terms, evidence[k], strict=True)}
        estimates = {"leave_one_out_accuracy": float(fresh[k]), "leave_one_out_accuracy_same_shares": float(same[k])}
        if len(space.labels or ()) == 2:
            estimates |= best_f1(arrays.to_numpy(new[k]), arrays.to_numpy(judges[k]))
        beside = float(weights[k, -1])
        heads.append(Head(
            [base],
            space.labels,
            evidence=Evidence(places[k].discriminant, likelihood.terms, tuple(named.values())),
            refinement=[Stream(stream.map, stream.weights, beside) for stream in streams],
            offset=shares[k, 0] + beside * arrays.to_numpy(offset),
            probabilistic=True,
            method=method,
            chosen={**chosen[k], **places[k].said, **named, **estimates},
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
    # all samples choose; those whose labels the features have not seen say how far off it is: who chooses flatters itself
    split, judging, pooled, heads = samples.padding.split, samples.judging, samples.given.pooled, []
    targets, told, once = (split(arrays.to_numpy(part)) for part in (samples.targets, predicted(mixture), samples.once))
    judges = [None] * len(once) if judging is None else np.split(judging, np.cumsum(samples.padding.sizes)[:-1])
    spread = None if pooled.spread is None else arrays.to_numpy(pooled.spread)
    share = np.broadcast_to(mixture.share, samples.padding.clients)
    for k, (base, streams, offset) in enumerate(solutions):
        judge = judges[k]
        may = slice(None) if judge is None or not judge.any() else judge
        wanted, said, often = targets[k][may], told[k][may], once[k][may]
        error = wanted - said
        rmse = math.sqrt(np.average((error**2).sum(1), weights=often))
        heads.append(Head(
            [Stream(base.map, base.weights, float(share[k])), *streams],
            None,
            offset=None if isinstance(offset, float) else arrays.to_numpy(offset),
            method=method,
            chosen={**chosen[k], **left_out_r2(wanted, said, often), "leave_one_out_rmse": rmse},
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
