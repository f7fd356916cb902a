"""Where the classes lie at each client: as everybody's samples have it, or moved as far as its own, left out, are likelier so."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from gramfold.methods.pace.candidates import Candidate
from gramfold.methods.pace.influence import OfFactor
from gramfold.methods.pace.likelihood import OfClasses
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.own_places import SURE, OwnPlaces, Told

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples

NEVER = 1e12
"""Samples that a shared centroid is worth to a client that keeps to it."""
LEAST_ALPHA = 1e-6
"""A client's samples that count once are weighed up by next to nothing."""


@dataclass(frozen=True)
class Placed:
    """A client's discriminant, and what is to be said of it."""

    discriminant: Discriminant
    said: Mapping[str, float] = field(default_factory=dict)


def moved(samples: "OwnSamples", likelihood: OfClasses, mixture: Candidate) -> tuple[OfClasses, list[Placed]]:
    """The likelihood with the places that each client's samples make likeliest, and the clients' discriminants: a shared centroid
    is worth fewer and fewer samples, as long as left-out samples are likelier so."""
    pooled, priors, clients = samples.given.pooled, samples.given.priors, samples.padding.clients
    shared = pooled.discriminant
    assert shared is not None
    worth = np.full(clients, NEVER)
    nothing = likelihood, [Placed(shared)] * clients
    if likelihood.given is not None or samples.targets.shape[-1] == 2 or samples.blocks is not None:
        return nothing  # centroids are left out sample by sample
    if not isinstance(influence := samples.influence, OfFactor):
        return nothing
    told = Told.without(shared, mixture.scores, samples.targets, likelihood.codes, samples.once)
    sums = told.sums
    trying = sums.differ(shared) > SURE
    if not trying.any():
        return nothing
    everybody, told = arrays.to_numpy(pooled.counts), _with_own(told, samples, influence, mixture)
    staying = best = likelihood.of(mixture)
    for each in priors.places:
        own = OwnPlaces.of(shared, everybody, sums, np.full(clients, each))
        tried = likelihood.placed(own.place(told), mixture).of(mixture)
        trying &= tried > best
        if not trying.any():
            break
        worth, best = np.where(trying, each, worth), np.where(trying, tried, best)
    worth[best < staying + priors.places_gain] = NEVER
    if (worth == NEVER).all():
        return nothing
    own = OwnPlaces.of(shared, everybody, sums, worth)
    found, own_clients = [Placed(shared)] * clients, np.flatnonzero(worth != NEVER).tolist()
    for k, discriminant in zip(own_clients, own.discriminants(own_clients), strict=True):
        found[k] = Placed(discriminant, {"centroids_worth": float(worth[k])})
    return likelihood.placed(own.place(told), mixture, worth != NEVER), found


def _with_own(told: Told, samples: "OwnSamples", influence: OfFactor, mixture: Candidate) -> Told:
    """With what the clients' own samples add to scores in a mean of candidates, at its mean alpha."""
    alpha = np.broadcast_to(mixture.alpha, samples.padding.clients).clip(LEAST_ALPHA)
    asked: Array = arrays.concatenate([told.targets, told.places], axis=-1)
    asked = asked if samples.roots is None else asked * samples.roots
    _, left, leverages = influence.weighed_up(asked, alpha)
    often = arrays.like(1.0 + samples.copies / alpha, left)
    return replace(told, own=often[:, None, None] * samples.unweighted(asked - left), leverages=often[:, None] * leverages)
