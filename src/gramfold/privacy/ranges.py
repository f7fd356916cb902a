"""The range of every number in an upload's vector, from what is public about it."""

import math
from collections.abc import Mapping
from typing import Any

from gramfold import wire
from gramfold.moments import Implied
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.privacy.ring import Block, FixedPoint


def plan(public: Mapping[str, Any], implied: Implied, clients: int) -> FixedPoint:
    """How the uploads of so many clients become ring elements: all of them come to the same plan, each alone."""
    return FixedPoint.plan(blocks(public, implied), clients)


def blocks(public: Mapping[str, Any], implied: Implied) -> list[Block]:
    """Moments of at most MOST_SAMPLES samples, whose features are as long as their map lets them be. Of other uploads nothing is
    known but that they must fit."""
    kind = public["kind"]
    if kind == "moments":
        return _moments(public, implied)
    if kind == "grouped-moments":
        return _moments(public, Implied()) * len(public["fingerprints"])
    return [Block(sum(math.prod(shape) for shape in public["shapes"].values()))]


def _moments(public: Mapping[str, Any], implied: Implied) -> list[Block]:
    dim, outputs, length = public["dim"], public["outputs"], implied.length(public["dim"])
    gram = None if length is None else MOST_SAMPLES * max(length, 1.0)
    classes = float(MOST_SAMPLES) if public["labels"] is not None else None
    cross = None if length is None or classes is None else MOST_SAMPLES * math.sqrt(max(length, 1.0))
    counts = [Block(outputs, classes), Block(2, float(MOST_SAMPLES))]
    return [Block(wire.lower_size(dim), gram), Block(dim * outputs, cross), *counts]
