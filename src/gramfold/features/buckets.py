"""Codes of random groups of thresholded inputs: which corner of a few yes-or-no questions a sample is in."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from gramfold.errors import FeaturesError
from gramfold.features.base import FeatureMap, Function, constant, whole
from gramfold.moments import Implied
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array


@dataclass(frozen=True)
class Buckets(FeatureMap):
    """`dim` features, 2^group for each group of bits, of which one is 1. A bit says whether an input of mean 0 and variance 1 is
    above one of `levels` quantiles of a normal distribution. All bits are shuffled into groups, over and over, until there are
    enough."""

    dim: int
    group: int = 4
    levels: int = 3

    def __post_init__(self) -> None:
        for value, what in ((self.dim, "number of outputs"), (self.group, "bits in a group"), (self.levels, "levels")):
            if whole(value, what) < 1:
                raise FeaturesError(f"bucketed features need at least one {what.removeprefix('number of ')}, got {value}")
        if self.group > 16 or self.dim % 2**self.group:
            raise FeaturesError(
                f"{self.dim} bucketed features are no multiple of {2**self.group}, the corners of {self.group} bits"
            )

    @property
    def _groups(self) -> int:
        return self.dim // int(2**self.group)

    def width(self, inputs: int) -> int:
        return self.dim

    def drawn(self, inputs: int) -> int:
        return self._groups * self.group + inputs * self.levels

    def bits(self, inputs: int, seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The input that each bit asks about, and its threshold: groups x bits each."""
        stream, wanted = seeds.frozen(seed, f"{name}/buckets"), self._groups * self.group
        rounds = [stream.permutation(inputs * self.levels) for _ in range(-(-wanted // (inputs * self.levels)))]
        chosen = np.concatenate(rounds)[:wanted].reshape(-1, self.group)
        quantiles = np.array([NormalDist().inv_cdf((level + 1) / (self.levels + 1)) for level in range(self.levels)])
        return chosen // self.levels, quantiles[chosen % self.levels]

    def function(self, inputs: int, seed: int, name: str) -> Function:
        places, thresholds = self.bits(inputs, seed, name)
        groups, corners = places.shape[0], 2**self.group
        above, power, every = constant(thresholds), constant(2.0 ** np.arange(self.group)), constant(np.arange(corners) * 1.0)

        def codes(rows: Array) -> Array:
            asked = rows[:, places.ravel()].reshape(len(rows), groups, self.group) > above(rows)
            corner = (asked * power(rows)).sum(2)
            return arrays.float64(corner[:, :, None] == every(rows)).reshape(len(rows), self.dim)

        return codes

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied(lengths=((0, self.dim, float(self._groups)),))
