"""Backbones of one's own: a function or a network, as it is, or by `FILE.py:NAME` or `python:MODULE:NAME`."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramfold.backbones.base import IMAGES, TEXTS, Backbone, fingerprint, finished
from gramfold.backbones.module import ModuleBackbone, source_of_type
from gramfold.backbones.pixels import read_image
from gramfold.errors import BackboneError
from gramfold.imports import object_at
from gramfold.numerics.arrays import is_torch


class FunctionBackbone(Backbone):
    """A function from a list of samples to n x d numbers.

    The samples are RGB images as PIL has them, or tensors where a data set gives tensors; texts, where the function has an
    attribute `kind = "texts"`. Its fingerprint covers its source, and its attribute `version` where it has one: set that when
    the weights behind it change.
    """

    pooling = "own"

    def __init__(self, function: Callable[[list[Any]], Any], name: str) -> None:
        self._function, self.name = function, name
        self.kind = str(getattr(function, "kind", IMAGES))
        if self.kind not in (IMAGES, TEXTS):
            raise BackboneError(f"{name}: its kind must be {IMAGES!r} or {TEXTS!r}, got {self.kind!r}")
        version = str(getattr(function, "version", ""))
        self.fingerprint = fingerprint(
            [getattr(function, "__name__", ""), version, self.kind], [source_of_type(function).encode()]
        )

    def prepare(self, sample: Any) -> Any:
        if is_torch(sample):
            return sample
        return str(sample) if self.kind == TEXTS else read_image(sample)

    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        rows = self._function(list(batch))
        rows = rows.detach().cpu().numpy() if hasattr(rows, "detach") else rows
        return finished(rows, len(batch), self.name)


def of_object(given: Any, name: str | None = None, device: str | None = None) -> Backbone:
    """The backbone that an object is: one already, a network of torch, or a function; `name` is where it was found."""
    if isinstance(given, Backbone):
        return given
    if hasattr(given, "state_dict"):
        return ModuleBackbone(given, name, device)
    if not callable(given):
        raise BackboneError(
            f"a backbone is a name, a network of torch or a function of a list of samples, not a {type(given).__name__}"
        )
    kind = given if inspect.isroutine(given) else type(given)
    return FunctionBackbone(given, name or f"python:{kind.__module__}:{kind.__qualname__}")


def load_code(place: str, device: str | None = None) -> Backbone:
    """What is at module:name or FILE.py:name."""
    return of_object(object_at(place, "backbone"), f"python:{place}", device)
