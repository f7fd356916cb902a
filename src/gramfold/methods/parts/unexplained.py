"""PACE's refinement: a client's own ridge of what prior-adjusted probabilities leave unexplained, in one of two ways."""

from dataclasses import dataclass, replace

import numpy as np

from gramfold.heads import softmax
from gramfold.methods.parts.own_way import Fit
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import mean_squared_length, ridge_with_left_out

GAMMA = 0.3
"""Penalty in units of the kernel's mean diagonal; the result is flat from 0.1 to 3."""
DOUBT, DOUBTED_GAMMA = 0.3, 0.003
"""The other way. A client with two of ten classes is all but certain of most samples, and what is left unexplained is noise of
the few others: there logits are taken at so much of their face value, that all samples have a say, and at less of a penalty."""
IN_TABLES = (0.3, 3.0, 30.0)
"""Penalties in a table. There a site is often no different from the others, and what it learns alone is noise: it takes a mean of
these and of no refinement, each by how likely it leaves the samples that were left out."""
CLEARLY = 0.5
"""By how much, as a logarithm, the other way must make the samples more likely."""
TINY, FEW = 50.0, 20.0
"""Samples at which the refinement's expected weight is halved, since that of a client with few is mostly noise; and from which on
the other way is tried, where there are more than two classes: of two none is ruled out beforehand, and it only adds noise."""


def believed(size: float, table: bool) -> float:
    """The part of the refinement's expected weight that a client of so many samples starts from. In a table it takes a mean with
    no refinement at all besides, and need not start so low."""
    return size / (size + TINY) if table else size**2 / (size**2 + TINY**2)


@dataclass(frozen=True)
class Refinement:
    """Ridge weights on psi, how its left-out fit is weighed beside the evidence, and how unlikely that leaves the samples."""

    ridge: Array
    fit: Fit
    weights: np.ndarray
    loss: float


def refine(
    fit: Fit,
    evidence: np.ndarray,
    logits: np.ndarray,
    rows: Array,
    targets: np.ndarray,
    roots: Array | None,
    start: np.ndarray,
    precision: np.ndarray,
    size: float,
    plain: float | None = None,
) -> Refinement:
    """`logits` (n x C) are those of the evidence and the prior; `rows` (psi of the samples) come times the `roots` of weights,
    which add up to `size`. `plain`, in a table: how unlikely the samples are without any refinement."""
    unit = mean_squared_length(rows, roots)

    def way(trust: float, gamma: float) -> Refinement:
        left = arrays.like(targets - softmax(trust * logits), rows)
        ridge, fitted = ridge_with_left_out(rows, left if roots is None else left * roots, gamma * unit, roots)
        with_it = replace(fit, refined=arrays.to_numpy(fitted))
        return Refinement(ridge, with_it, *with_it.weights(evidence, start, precision))

    if plain is not None:
        return _mean_of([way(1.0, gamma) for gamma in IN_TABLES], start, plain)
    found = way(1.0, GAMMA)
    if fit.given is None and size > FEW and targets.shape[1] > 2:
        other = way(DOUBT, DOUBTED_GAMMA)
        if other.loss < found.loss - CLEARLY:
            return other
    return found


def _mean_of(ways: list[Refinement], start: np.ndarray, plain: float) -> Refinement:
    """The mean of all ways and of none, which has the first weights of `start`; none is as likely before as any."""
    losses = np.array([plain, *(way.loss for way in ways)])
    shares = np.exp(losses.min() - losses) * [1.0, *[1.0 / len(ways)] * len(ways)]
    shares /= shares.sum()
    weights = shares @ np.stack([np.append(start[:-1], 0.0), *(way.weights for way in ways)])
    each = shares[1:] * [way.weights[-1] for way in ways] / (weights[-1] or 1.0)
    ridge = sum((float(part) * way.ridge for part, way in zip(each, ways, strict=True)), 0.0)
    fitted = np.tensordot(each, np.stack([way.fit.refined for way in ways if way.fit.refined is not None]), 1)
    return Refinement(ridge, replace(ways[0].fit, refined=fitted), weights, float(losses[shares.argmax()]))
