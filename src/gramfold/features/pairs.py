"""Fourier features of two columns at a time: in tables much depends on one column, or on two together, and little on all at once.
Frequencies along all columns meet such axes by chance alone."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from gramfold.errors import FeaturesError
from gramfold.features.base import FeatureMap, Function, constant, whole
from gramfold.moments import Implied
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array


@dataclass(frozen=True)
class Pairs(FeatureMap):
    """cos(z Omega + b), every column of Omega with two numbers ~ N(0, scale^2) and zeros. `chances`: how likely each column of z
    is to be one of the two, in any unit."""

    dim: int
    scale: float
    chances: tuple[float, ...]

    def __post_init__(self) -> None:
        if whole(self.dim, "number of outputs") < 1:
            raise FeaturesError(f"a feature map needs at least one output, got {self.dim}")
        object.__setattr__(self, "chances", tuple(map(float, self.chances)))
        if not (math.isfinite(self.scale) and self.scale > 0 and all(0 < chance < math.inf for chance in self.chances)):
            raise FeaturesError("a map of pairs of columns needs a positive scale, and a positive chance for every column")

    def width(self, inputs: int) -> int:
        if inputs != len(self.chances):
            raise FeaturesError(f"pairs of {len(self.chances)} columns, the inputs have {inputs}")
        return self.dim

    def drawn(self, inputs: int) -> int:
        return inputs * self.dim

    def waves(self, inputs: int, seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Omega and b, as NumPy arrays."""
        frequencies, phases = _frequencies(self, seed, name)
        return frequencies(np.empty(0)), phases(np.empty(0))

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def function(self, inputs: int, seed: int, name: str) -> Function:
        frequencies, phases = _frequencies(self, seed, name)

        def cosine(rows: Array) -> Array:
            angles = rows @ frequencies(rows)
            angles += phases(rows)
            return arrays.cos_inplace(angles)

        return cosine

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied(lengths=((0, self.dim, float(self.dim)),))


@functools.lru_cache(maxsize=4)
def _frequencies(pairs: Pairs, seed: int, name: str) -> tuple[Function, Function]:
    """Omega and b. The two columns are the first to arrive, at times that are exponentially distributed, each by its chances."""
    stream = seeds.frozen(seed, f"{name}/pairs")
    arrivals = stream.exponential(size=(pairs.dim, len(pairs.chances))) / np.array(pairs.chances)
    first = np.argsort(arrivals, axis=1)[:, :2]
    frequencies = np.zeros((len(pairs.chances), pairs.dim))
    np.put_along_axis(frequencies, first.T, stream.standard_normal(first.shape).T * pairs.scale, axis=0)
    return constant(frequencies), constant(stream.uniform(0, 2 * math.pi, pairs.dim))
