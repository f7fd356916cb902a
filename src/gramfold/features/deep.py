"""A map with learned layers: residual steps Phi + act(Phi B_t) A_t W_t' over a drawn first one, as DeepAFL grows them.

The B are drawn from the seed; A and W were solved for and travel with the map. They are as narrow as there are outputs.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import FeaturesError
from gramfold.features.base import MOST_DRAWN, DrawnMap, Function, LearnedMap, constant, draw_described
from gramfold.features.maps import ACTIVATIONS
from gramfold.moments import Implied
from gramfold.numerics import seeds, stopwatch
from gramfold.numerics.arrays import Array, like


class DeepMap(LearnedMap):
    """Callable on rows: the drawn base, then one residual step for each layer.

    `description` is {"kind": "deep", "base": a drawn map's description, "activation": a name}; the arrays are "inner.0" (A_0),
    "outer.0" (W_0), "inner.1", ..., all dim x outputs.
    """

    kind: ClassVar[str] = "deep"
    implied: ClassVar[Implied] = Implied()
    tabular: ClassVar[bool] = False

    def __init__(self, description: Mapping[str, Any], layers: Mapping[str, Array], fingerprint: str | None = None) -> None:
        super().__init__(description, layers, fingerprint)
        self.base = draw_described(self.description["base"])
        self.inputs, self.dim = self.base.inputs, self.base.dim
        self.layers = len(layers) // 2
        self.arrays: Mapping[str, Array] = {name: layers[name] for t in range(self.layers) for name in layer_names(t)}
        self.next_outer: Array | None = layers.get(layer_names(self.layers)[1])
        """W of the layer that is being solved, once that much of it is."""
        if self.next_outer is not None:
            self.arrays = {**self.arrays, layer_names(self.layers)[1]: self.next_outer}
        shapes = {tuple(array.shape) for array in self.arrays.values()}
        if len(shapes) > 1 or any(len(shape) != 2 or shape[0] != self.dim for shape in shapes):
            raise FeaturesError(f"the layers of a deep map must be {self.dim} x outputs")
        if self.arrays and self.dim**2 > MOST_DRAWN:
            raise FeaturesError(f"a deep map of {self.dim} features has matrices that are too large")
        if self.description["activation"] not in ACTIVATIONS:
            raise FeaturesError(f"unknown activation {self.description['activation']!r}; known: {', '.join(ACTIVATIONS)}")

    @property
    def saw_labels(self) -> bool:
        return self.layers > 0

    def one_unit(self, inputs: bool | None) -> bool | None:
        return self.base.one_unit(inputs)

    def __repr__(self) -> str:
        return f"DeepMap({self.inputs} -> {self.dim}, {self.layers} layers)"

    @classmethod
    def over(cls, base: DrawnMap, activation: str) -> "DeepMap":
        """The map without any layer yet."""
        return cls({"base": base.description, "activation": activation}, {})

    def with_outer(self, outer: Array) -> "DeepMap":
        """The same with W of the next layer."""
        return DeepMap(self.description, {**self.arrays, layer_names(self.layers)[1]: outer})

    def with_inner(self, inner: Array) -> "DeepMap":
        """The same with the next layer complete."""
        return DeepMap(self.description, {**self.arrays, layer_names(self.layers)[0]: inner})

    def __call__(self, inputs: Array) -> Array:
        """float64 features (n x dim)."""
        rows = self.base(inputs)
        for t in range(self.layers):
            rows = self.step(rows, t)
        return rows

    def widen(self, rows: Array, layer: int) -> Array:
        """act(Phi B_t): what the layer's step is made of."""
        with stopwatch.phase("features"):
            activation = ACTIVATIONS[self.description["activation"]]
            return activation(rows @ self._drawn(layer)(rows))

    @property
    def drawn_numbers(self) -> int:
        """How many numbers are drawn for its base and its layers."""
        return self.base.drawn_numbers + -(-len(self.arrays) // 2) * self.dim**2

    def _drawn(self, layer: int) -> Function:
        return _drawn(self.description["base"]["seed"], self.dim, layer)

    def drawn(self, layer: int) -> Array:
        """B_t, as a NumPy array."""
        return self._drawn(layer)(np.empty(0))

    def step(self, rows: Array, layer: int, widened: Array | None = None) -> Array:
        """Phi_t+1 from Phi_t, and from act(Phi_t B_t) where that is known."""
        inner, outer = (like(self.arrays[name], rows) for name in layer_names(layer))
        made = ((self.widen(rows, layer) if widened is None else widened) @ inner) @ outer.T
        made += rows
        return made


def layer_names(layer: int) -> tuple[str, str]:
    """What a layer's two arrays are called."""
    return f"inner.{layer}", f"outer.{layer}"


@functools.lru_cache(maxsize=64)
def _drawn(seed: int, dim: int, layer: int) -> Function:
    return constant(seeds.frozen(seed, f"deep/{layer}").standard_normal((dim, dim)) / math.sqrt(dim))
