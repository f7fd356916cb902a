"""Streams: what a head's scores are a sum of."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gramfold.features import Map
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

Mapped = dict[tuple[Any, ...], Array]
"""What maps have made of some inputs."""


@dataclass(frozen=True)
class Stream:
    """One summand of a head's scores: scale * map(x) weights."""

    map: Map
    weights: Array
    scale: float = 1.0


@dataclass(frozen=True)
class Unsolved:
    """In place of a stream's weights, what they follow from where that is smaller: `arrays` of the client's own, and plain values
    `about` them. The method that wrote it solves it (`Method.weights_of`)."""

    kind: str
    arrays: Mapping[str, Array]
    about: Mapping[str, Any]


def key_of(given: Map) -> tuple[Any, ...]:
    """Equal for maps that are the same. A learned one's fingerprint would hash its arrays, wherever they lie."""
    if not given.arrays:
        return (given.fingerprint,)
    return (json.dumps(given.description, sort_keys=True), *(id(array) for array in given.arrays.values()))


def summed(streams: Sequence[Stream], inputs: Array, mapped: Mapped) -> Array:
    """The streams' sum; `mapped` holds what maps have made of these inputs already."""
    total = None
    for stream in streams:
        key = key_of(stream.map)
        if key not in mapped:
            mapped[key] = stream.map(inputs)
        part = mapped[key] @ arrays.like(stream.weights, inputs)
        if stream.scale != 1.0:
            part *= stream.scale
        if total is None:
            total = part
        else:
            total += part
    return total
