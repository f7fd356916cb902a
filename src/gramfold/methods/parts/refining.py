"""The refinement of a client's evidence: its own ridge on what the evidence leaves unexplained, as strong as is sensible.

In a table a site is often no different from the others, and what it learns alone is noise. So there it takes a mean of no
refinement and of stronger and weaker ones, each by how likely it leaves the samples that were left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gramfold.methods.parts.own_way import Fit
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import mean_squared_length, ridge_with_left_out

PENALTY = 0.3
"""In units of the kernel's mean diagonal; the result is flat from 0.1 to 3."""
IN_TABLES = (0.3, 3.0, 30.0)


@dataclass(frozen=True)
class Refined:
    """The weights of the refinement's features, the samples with its left-out fit, those of evidence and refinement, and how
    unlikely these leave the samples."""

    ridge: Array
    fit: Fit
    weights: np.ndarray
    loss: float


def refine(
    fit: Fit,
    evidence: np.ndarray,
    start: np.ndarray,
    precision: np.ndarray,
    rows: Array,
    unexplained: Array,
    roots: Array | None,
    penalty: float = PENALTY,
) -> Refined:
    """With one penalty. `rows` and `unexplained` are times the `roots` of the samples' weights."""
    ridge, left_out = ridge_with_left_out(rows, unexplained, penalty * mean_squared_length(rows, roots), roots)
    fit = replace(fit, refined=arrays.to_numpy(left_out))
    return Refined(ridge, fit, *fit.weights(evidence, start, precision))


def mean_of(ways: Sequence[Refined], plain: np.ndarray, loss: float) -> Refined:
    """The mean of all ways and of none, whose weights are `plain` and which leaves the samples as unlikely as `loss`; none is as
    likely before as any."""
    losses = np.array([loss, *(way.loss for way in ways)])
    shares = np.exp(losses.min() - losses) * [1.0, *[1.0 / len(ways)] * len(ways)]
    shares /= shares.sum()
    weights = shares[0] * np.append(plain, 0.0) + sum(share * way.weights for share, way in zip(shares[1:], ways, strict=True))
    each = shares[1:] * [way.weights[-1] for way in ways] / (weights[-1] or 1.0)
    ridge = sum((float(part) * way.ridge for part, way in zip(each, ways, strict=True)), 0.0)
    left_out = np.tensordot(each, np.stack([way.fit.refined for way in ways if way.fit.refined is not None]), 1)
    return Refined(ridge, replace(ways[0].fit, refined=left_out), weights, float(losses[shares.argmax()]))
