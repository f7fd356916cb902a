"""A map with learned layers: residual steps Phi + act(Phi B) Omega over a drawn first one, as DeepAFL grows them.

The B are drawn from the seed; the Omega were solved for and travel with the map.
"""

import functools
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from gramfold import seeds, stopwatch
from gramfold.arrays import Array, like
from gramfold.errors import GramfoldError
from gramfold.features.base import Function, Map, constant, draw_described
from gramfold.features.maps import ACTIVATIONS


class DeepMap:
    """Callable on rows: the drawn base, then one residual step for each Omega.

    `description` is {"base": a drawn map's description, "activation": a name}; the arrays are "omega.0", "omega.1", ...
    """

    def __init__(self, description: Mapping[str, Any], omegas: Mapping[str, Array]) -> None:
        self.description = dict(description)
        self._base = draw_described(self.description["base"])
        self.inputs, self.dim = self._base.inputs, self._base.dim
        self.arrays: Mapping[str, Array] = {f"omega.{t}": omegas[f"omega.{t}"] for t in range(len(omegas))}
        if any(tuple(omega.shape) != (self.dim, self.dim) for omega in self.arrays.values()):
            raise GramfoldError(f"the layers of a deep map must be {self.dim} x {self.dim}")
        canonical = json.dumps([self.description, len(self.arrays)], sort_keys=True)
        self.fingerprint = hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def __call__(self, inputs: Array) -> Array:
        """float64 features (n x dim)."""
        rows = self._base(inputs)
        for t in range(len(self.arrays)):
            rows = self.step(rows, t)
        return rows

    def widen(self, rows: Array, layer: int) -> Array:
        """act(Phi B_t): what the layer's step is made of."""
        with stopwatch.phase("features"):
            activation = ACTIVATIONS[self.description["activation"]]
            return activation(rows @ _drawn(self.description["base"]["seed"], self.dim, layer)(rows))

    def step(self, rows: Array, layer: int) -> Array:
        """Phi_t+1 from Phi_t."""
        return rows + self.widen(rows, layer) @ like(self.arrays[f"omega.{layer}"], rows)


@functools.lru_cache(maxsize=64)
def _drawn(seed: int, dim: int, layer: int) -> Function:
    return constant(seeds.frozen(seed, f"deep/{layer}").standard_normal((dim, dim)) / math.sqrt(dim))


def restore(description: Mapping[str, Any], arrays: Mapping[str, Array]) -> Map:
    """The map that a description and its arrays tell of."""
    return DeepMap(description, arrays) if "base" in description else draw_described(description)
