"""How likely classes are: the likelihood of clients' samples, from what the server sent and what they know themselves."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold.methods.pace.likelihood import OfClasses
from gramfold.methods.spaces import often_of
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.solve.class_prior import ClassPrior
from gramfold.solve.evidence import terms
from gramfold.solve.left_out_discriminant import LeftOutDiscriminant

if TYPE_CHECKING:
    from gramfold.methods.pace.client import OwnSamples


def of_classes(samples: "OwnSamples") -> OfClasses:
    """That of stacked clients' samples."""
    given, padding, scores = samples.given, samples.padding, samples.scores
    discriminant, everybodys = given.pooled.discriminant, arrays.to_numpy(given.pooled.counts)
    assert discriminant is not None
    codes, often, classes = arrays.to_numpy(samples.train.targets).astype(np.int64), often_of(samples.train), len(everybodys)
    counts = np.zeros((padding.clients, classes))
    np.add.at(counts, (padding.whose, codes), often)
    prior = ClassPrior.of(counts, everybodys)
    stacked: Array = padding(arrays.like(codes, scores))
    place: Any = discriminant.place
    if samples.copies and classes > 2:
        shared, leverages = arrays.like(everybodys.astype(float), scores), samples.copies * samples.influence.leverages
        once = samples.copies * samples.once
        place = LeftOutDiscriminant.of(discriminant, shared, scores, samples.targets, stacked, once, leverages).place
    centre, precision = given.priors.of_evidence(classes, given.space.map, discriminant.correlation(everybodys))
    return OfClasses(
        stacked,
        samples.targets,
        arrays.like(prior.log_shares[:, None], scores),
        partial(_left_out, prior, padding, codes, often, scores),
        samples.held_out,
        terms(classes),
        place,
        centre,
        precision,
        given.priors.added_samples,
        given.priors.step_of(classes, counts.sum(1)),
        given.weights,
    )


def _left_out(prior: ClassPrior, padding: Padding, codes: np.ndarray, often: np.ndarray, like: Array, fresh: bool) -> Array:
    """The logarithms of the class shares that each sample is expected to follow by the others (clients x n x C)."""
    known, case = prior.left_out(padding.whose, codes, often, fresh)
    return arrays.like(known, like)[padding(arrays.like(case, like))]
