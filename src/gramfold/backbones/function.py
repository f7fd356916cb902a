"""Backbones of one's own: `python:module:function`, or `python:FILE.py:function`."""

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramfold.backbones.base import IMAGES, TEXTS, Backbone, fingerprint, finished
from gramfold.backbones.pixels import read_image
from gramfold.errors import GramfoldError
from gramfold.imports import import_from


class FunctionBackbone(Backbone):
    """A function from a list of samples to n x d numbers.

    The samples are RGB images as PIL has them; texts, where the function has an attribute `kind = "texts"`. Its fingerprint
    covers its source, and its attribute `version` where it has one: set that when the weights behind it change.
    """

    pooling = "own"

    def __init__(self, function: Callable[[list[Any]], Any], name: str) -> None:
        self._function, self.name = function, name
        self.kind = str(getattr(function, "kind", IMAGES))
        if self.kind not in (IMAGES, TEXTS):
            raise GramfoldError(f"{name}: its kind must be {IMAGES!r} or {TEXTS!r}, got {self.kind!r}")
        version = str(getattr(function, "version", ""))
        self.fingerprint = fingerprint([getattr(function, "__name__", ""), version, self.kind], [_source(function).encode()])

    def prepare(self, sample: Any) -> Any:
        return str(sample) if self.kind == TEXTS else read_image(sample)

    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        rows = self._function(list(batch))
        rows = rows.detach().cpu().numpy() if hasattr(rows, "detach") else rows
        return finished(rows, len(batch), self.name)


def of_function(function: Any) -> FunctionBackbone:
    """The backbone that a function is, by the name it could be imported by."""
    if hasattr(function, "state_dict"):
        raise GramfoldError(
            f"a {type(function).__name__} takes tensors, a backbone a list of samples; give a function: "
            "def backbone(images): return model(torch.stack([transform(image) for image in images]))"
        )
    if not callable(function):
        raise GramfoldError(
            f"a backbone is a name, a Backbone or a function of a list of samples, not a {type(function).__name__}"
        )
    kind = function if inspect.isroutine(function) else type(function)
    return FunctionBackbone(function, f"python:{kind.__module__}:{kind.__qualname__}")


def load_function(place: str) -> FunctionBackbone:
    """The function at module:function or FILE.py:function."""
    module, _, name = place.rpartition(":")
    if not module:
        raise GramfoldError(f"cannot read backbone 'python:{place}'; write python:module:function or python:FILE.py:function")
    try:
        function = getattr(_module(module), name)
    except (ImportError, AttributeError, OSError, SyntaxError) as error:
        raise GramfoldError(f"backbone python:{place} cannot be imported: {type(error).__name__}: {error}") from None
    if not callable(function):
        raise GramfoldError(f"backbone python:{place} is no function, but a {type(function).__name__}")
    return FunctionBackbone(function, f"python:{place}")


def _module(name: str) -> Any:
    if not name.endswith(".py") and "" not in sys.path:  # a module in the working folder, as python -m would find it
        sys.path.insert(0, "")
    return import_from(name)


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):
        return repr(type(function))
