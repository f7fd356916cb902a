"""How likely classes are: the likelihood of clients' samples, from what the server sent and what they know themselves."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gramfold.methods.pace.likelihood import OfClasses
from gramfold.methods.pace.priors import Priors
from gramfold.methods.pace.server import Pooled
from gramfold.methods.spaces import Space
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.solve.class_prior import ClassPrior
from gramfold.solve.evidence import terms
from gramfold.solve.left_out_discriminant import LeftOutDiscriminant


def of_classes(
    space: Space,
    pooled: Pooled,
    padding: Padding,
    codes: np.ndarray,
    often: np.ndarray,
    targets: Array,
    scores: Array,
    judges: Array,
    once: Array,
    copies: float,
    leverages: Array,
    priors: Priors,
    weights: Sequence[float] | None,
) -> OfClasses:
    """`codes` and `often` are the samples' classes and weights, one client's after another's; the rest is stacked."""
    assert pooled.discriminant is not None
    everybodys = arrays.to_numpy(pooled.counts)
    classes, whose = len(everybodys), padding.whose
    counts = np.zeros((padding.clients, classes))
    np.add.at(counts, (whose, codes), often)
    prior = ClassPrior.of(counts, everybodys)
    stacked: Array = padding(arrays.like(codes, scores))
    place: Any = pooled.discriminant.place
    if copies and classes > 2:
        shared = arrays.like(everybodys.astype(float), scores)
        place = LeftOutDiscriminant.of(
            pooled.discriminant, shared, scores, targets, stacked, copies * once, copies * leverages
        ).place
    centre, precision = priors.of_evidence(classes, space.map, pooled.discriminant.correlation(everybodys))
    return OfClasses(
        stacked,
        targets,
        arrays.like(prior.log_shares[:, None], scores),
        partial(_left_out, prior, padding, codes, often, scores),
        judges,
        terms(classes),
        place,
        centre,
        precision,
        priors.step_of(classes, counts.sum(1)),
        weights,
    )


def _left_out(prior: ClassPrior, padding: Padding, codes: np.ndarray, often: np.ndarray, like: Array, fresh: bool) -> Array:
    """The logarithms of the class shares that each sample is expected to follow by the others (clients x n x C)."""
    known, case = prior.left_out(padding.whose, codes, often, fresh)
    return arrays.like(known, like)[padding(arrays.like(case, like))]
