"""A map back from its description and its arrays: which kind it is stands in the description."""

import importlib
from collections.abc import Mapping
from typing import Any

from gramfold.errors import FeaturesError
from gramfold.features.base import Map
from gramfold.numerics.arrays import Array

MAPS = {
    "drawn": "gramfold.features.base:DrawnMap",
    "deep": "gramfold.features.deep:DeepMap",
    "metric": "gramfold.features.metric:MetricMap",
    "directions": "gramfold.features.directions:DirectionsMap",
    "convolution": "gramfold.convolution.network:ConvolutionMap",
}
"""The kinds of map and their classes, imported for a map that needs one; each has a class method `restore` like the one below."""


def restore(description: Mapping[str, Any], arrays: Mapping[str, Array], fingerprint: str | None = None) -> Map:
    """The map with this description and these learned arrays. A fingerprint that is given is trusted: it need not be computed."""
    kind = description.get("kind") if isinstance(description, Mapping) else None
    place = MAPS.get(str(kind))
    if place is None:
        raise FeaturesError(f"unknown kind of map {kind!r}; known: {', '.join(MAPS)}")
    module, _, name = place.partition(":")
    restored: Map = getattr(importlib.import_module(module), name).restore(description, arrays, fingerprint)
    return restored
