"""The centroids of the classes at each client: the shared ones, or moved as far as its own samples, left out, are likelier so."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramfold.methods.pace.candidates import Candidate
from gramfold.methods.pace.influence import OfFactor
from gramfold.methods.pace.likelihood import OfClasses
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.own_centroids import SURE, LeftOut, OwnCentroids

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples

UNMOVED = 1e12
"""Samples that a shared centroid is worth to a client that keeps to it."""
LEAST_ALPHA = 1e-6
"""A client's samples that count once are weighed up by next to nothing."""


def moved(samples: "OwnSamples", likelihood: OfClasses, mixture: Candidate) -> tuple[OfClasses, list[Discriminant], np.ndarray]:
    """The likelihood with the centroids that each client's samples make likeliest, the clients' discriminants, and how many
    samples a shared centroid is worth to each: fewer and fewer, as long as left-out samples are likelier so."""
    pooled, priors, clients = samples.given.pooled, samples.given.priors, samples.padding.clients
    shared = pooled.discriminant
    assert shared is not None
    worth = np.full(clients, UNMOVED)
    nothing = likelihood, [shared] * clients, worth
    if likelihood.given is not None or samples.targets.shape[-1] == 2 or samples.blocks is not None:
        return nothing  # centroids are left out sample by sample
    if not isinstance(influence := samples.influence, OfFactor):
        return nothing
    left_out = LeftOut.without(shared, mixture.scores, samples.targets, likelihood.codes, samples.once)
    sums = left_out.sums
    trying = sums.differ(shared) > SURE
    if not trying.any():
        return nothing
    everybody, left_out = arrays.to_numpy(pooled.counts), _with_own(left_out, samples, influence, mixture)
    staying = best = likelihood.of(mixture)
    for each in priors.centroids:
        own = OwnCentroids.of(shared, everybody, sums, np.full(clients, each))
        tried = likelihood.placed(own.place(left_out), mixture).of(mixture)
        trying &= tried > best
        if not trying.any():
            break
        worth, best = np.where(trying, each, worth), np.where(trying, tried, best)
    worth[best < staying + priors.centroids_gain] = UNMOVED
    if (worth == UNMOVED).all():
        return nothing
    own = OwnCentroids.of(shared, everybody, sums, worth)
    found, own_clients = [shared] * clients, np.flatnonzero(worth != UNMOVED).tolist()
    for k, discriminant in zip(own_clients, own.discriminants(own_clients), strict=True):
        found[k] = discriminant
    return likelihood.placed(own.place(left_out), mixture, worth != UNMOVED), found, worth


def _with_own(left_out: LeftOut, samples: "OwnSamples", influence: OfFactor, mixture: Candidate) -> LeftOut:
    """With what the clients' own samples add to scores in a mean of candidates, at its mean alpha."""
    alpha = np.broadcast_to(mixture.alpha, samples.padding.clients).clip(LEAST_ALPHA)
    asked: Array = arrays.concatenate([left_out.targets, left_out.places], axis=-1)
    asked = asked if samples.roots is None else asked * samples.roots
    _, left, leverages = influence.weighed_up(asked, alpha)
    often = arrays.like(1.0 + samples.copies / alpha, left)
    return replace(left_out, own=often[:, None, None] * samples.unweighted(asked - left), leverages=often[:, None] * leverages)
