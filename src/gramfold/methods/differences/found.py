"""What was found out about how clients differ, as it travels with a method's broadcasts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold import features
from gramfold.features import Bias, Block, Fourier, Linear, Map, Metric, MetricMap
from gramfold.methods.differences.effects import Effects
from gramfold.methods.differences.groups import Groups
from gramfold.numerics.arrays import Array
from gramfold.wire.record import Record

WIDTHS = (0.1, 0.3, 1.0, 3.0)
"""Squared widths of the kernels in the personal metric, in units of the mean squared distance of a client's samples."""
WAVES = 256
"""Fourier features of each."""


@dataclass(frozen=True)
class Found(Record, kind="differences/found"):
    """`groups`: of clients that resemble each other; `personal`: maps in the metric that clients' own functions share; `matters`:
    how much each column does in it. None: nothing that was worth it."""

    groups: Groups | None = None
    personal: Sequence[Map] | None = None
    matters: Array | None = None
    gain: float = 0.0
    """By how much that metric makes left-out samples likelier than one that prefers no column, in nats a sample."""
    effects: Effects | None = None
    """How far clients' own offsets and slopes lie apart."""

    @property
    def described(self) -> dict[str, Any]:
        """For the result."""
        said: dict[str, Any] = {} if self.groups is None else dict(self.groups.described)
        if self.personal is not None and self.matters is not None:
            said |= {"personal_columns": _ranked(self.matters), "personal_gain": self.gain}
        return said if self.effects is None else said | self.effects.described


def personal_maps(root: np.ndarray, columns: tuple[Array, Array], seed: int) -> list[MetricMap]:
    """Features of clients' own kernels in the metric T: [1, x T, cos((x T) Omega + b)], a map for each width."""
    inputs = len(root)
    plain = features.draw(Bias(), inputs, seed, "personal/plain")
    straight = features.draw(Linear(), inputs, seed, "personal/straight")
    maps = []
    for i, width in enumerate(WIDTHS):
        waves = features.draw(Fourier(WAVES, math.sqrt(0.5 / width)), inputs, seed, f"personal/{i}")
        # the straight part of the kernel is as long as the waves' part
        blocks = [Block(straight, _metric(root * math.sqrt(WAVES / 2 / inputs))), Block(waves, _metric(root))]
        maps.append(MetricMap.of(plain, blocks, columns))
    return maps


def _metric(root: np.ndarray) -> Metric:
    """T as base I + axes axes'."""
    values, vectors = np.linalg.eigh(root)
    base = max(float(values[0]), 0.0)
    rest = (values - base).clip(0.0)
    kept = rest > 1e-9 * max(float(values[-1]), 1e-300)
    return Metric(vectors[:, kept] * rest[kept] ** 0.5, np.array([base]))


def _ranked(shares: Array) -> Mapping[str, float]:
    """Columns by how much they matter, as far as they do."""
    order = np.argsort(-np.asarray(shares))
    return {str(int(column)): round(float(shares[column]), 3) for column in order[:8] if shares[column] >= 0.01}
