"""Whether the parts of a head that came from elsewhere fit together."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from gramfold.errors import HeadError
from gramfold.solve.evidence import Evidence

if TYPE_CHECKING:
    from gramfold.heads.head import Head

LONGEST = 200
"""Characters of a name that is shown in a terminal."""


def require_sound(head: "Head") -> None:
    """Raise unless the parts of a linear head fit together."""
    if not head.streams:
        raise HeadError("not a gramfold head: it has no streams")
    require_description(head)
    if not 0 < head.temperature < math.inf:
        raise HeadError(f"a head's temperature must be positive, got {head.temperature}")
    outputs = len(head.labels) if head.labels is not None else head.streams[0].weights.shape[1]
    for stream in (*head.streams, *head.refinement):
        if stream.weights.shape != (stream.map.dim, outputs) or stream.map.inputs != head.inputs:
            raise HeadError(f"head weights of shape {stream.weights.shape} do not fit a map of {stream.map.dim} features")
        parts = (stream.weights, *stream.map.arrays.values())
        if not (all(np.isfinite(part).all() for part in parts) and math.isfinite(stream.scale)):
            raise HeadError("head weights must be finite; found NaN or infinity")
    if head.offset is not None and (head.offset.shape != (outputs,) or not (head.offset < np.inf).all()):
        raise HeadError(f"a head for {outputs} classes cannot have this offset")
    if head.errors is not None:
        head.errors.check(outputs)
    if head.familiar is not None:
        head.familiar.check(head.streams[0].map.dim)
    if head.bounds is not None and not (head.bounds.shape == (outputs, 2) and (head.bounds[:, 0] <= head.bounds[:, 1]).all()):
        raise HeadError(f"a head for {outputs} values cannot have these bounds")
    if head.evidence is not None:
        _require_evidence(head.evidence, outputs)


def require_description(head: "Head") -> None:
    """Raise unless what the file of any head says is of the right types."""
    labels = () if head.labels is None else head.labels
    if not all(isinstance(label, int | str) for label in labels) or len(set(map(type, labels))) > 1:
        raise HeadError("a head's labels must be whole numbers, or text")
    if not (isinstance(head.method, str) and isinstance(head.chosen, Mapping) and isinstance(head.probabilistic, bool)):
        raise HeadError("not a gramfold head: its description is not of the right types")
    if not all(isinstance(word, str) and word.isprintable() and len(word) <= LONGEST for word in (head.method, *head.chosen)):
        raise HeadError(f"not a gramfold head: its method and what was chosen are words of at most {LONGEST} letters")
    if not 0 <= head.unforeseen < 1:
        raise HeadError(f"a head cannot spread {head.unforeseen} of its predictions over all classes")


def _require_evidence(evidence: Evidence, outputs: int) -> None:
    fields = vars(evidence.discriminant)
    axes = fields["axes"]
    sizes = fields["mean"].shape == (outputs,) and axes.ndim == 2 and len(axes) == outputs
    if not sizes or fields["centroids"].shape != axes.shape:
        raise HeadError(f"a head for {outputs} classes cannot have this discriminant")
    weights = *evidence.weights, *(value for term in evidence.terms for value in vars(term).values())
    if not all(np.isfinite(part).all() for part in (*fields.values(), *weights)):
        raise HeadError("a head's discriminant must be finite; found NaN or infinity")
