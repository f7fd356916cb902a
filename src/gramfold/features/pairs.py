"""Fourier features of two columns at a time: in tables much depends on one column, or on two together, and little on all at once.
Frequencies along all columns meet such axes by chance alone."""

import math
from dataclasses import dataclass

import numpy as np

from gramfold.errors import FeaturesError
from gramfold.features.maps import Fourier
from gramfold.numerics import seeds


@dataclass(frozen=True)
class Pairs(Fourier):
    """cos(z Omega + b), every column of Omega with two numbers ~ N(0, scale^2) and zeros. `chances`: how likely each column of z
    is to be one of the two, in any unit."""

    chances: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "chances", tuple(map(float, self.chances)))
        if not all(0 < chance < math.inf for chance in self.chances):
            raise FeaturesError("a map of pairs of columns needs a positive chance for every column")

    def width(self, inputs: int) -> int:
        if inputs != len(self.chances):
            raise FeaturesError(f"pairs of {len(self.chances)} columns, the inputs have {inputs}")
        return self.dim

    def frequencies(self, inputs: int, seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Omega and b. The two columns are the first to arrive, at exponentially distributed times, each by its chances."""
        stream = seeds.frozen(seed, f"{name}/pairs")
        arrivals = stream.exponential(size=(self.dim, len(self.chances))) / np.array(self.chances)
        first = np.argsort(arrivals, axis=1)[:, :2]
        frequencies = np.zeros((len(self.chances), self.dim))
        np.put_along_axis(frequencies, first.T, stream.standard_normal(first.shape).T * self.scale, axis=0)
        return frequencies, stream.uniform(0, 2 * math.pi, self.dim)
