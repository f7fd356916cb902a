"""What each number of the inputs adds to a change of features, along the straight way from one sample to another.

Random features are functions of one projection each, g(z . w): on the way from a to b such a feature changes by g(b . w) - g(a .
w), of which the number j of the inputs brings the part (b_j - a_j) w_j / ((b - a) . w). Summed over features that is the integral
of the gradient along the way (Aumann and Shapley's shares of a cost, "integrated gradients") without an integral, and over the
numbers it is the whole change. The way is straight between comparable inputs: standardised columns, or rows of one length.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gramfold.features.base import DrawnMap, FeatureMap
from gramfold.features.directions import DirectionsMap
from gramfold.features.maps import ACTIVATIONS, Bias, Fourier, Linear, Normalize, Projection, Standardize
from gramfold.features.metric import MetricMap
from gramfold.features.stack import Chain, Concat
from gramfold.numerics import arrays

Secant = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(from, to, directions) -> n x inputs: the mean gradient of <features(z_i), direction_i> on the way."""
Rows = Callable[[np.ndarray], np.ndarray]
SAME = 1e-9
"""Projections that differ by less are at one place: there the slope is the derivative."""


class Part(NamedTuple):
    """Some features: how inputs are made comparable, the features of comparable rows, and their secant."""

    comparable: Rows
    features: Rows
    secant: Secant
    dim: int


class Way:
    """From some rows to others, sample by sample, through a map. Raises TypeError for maps whose shares are not known."""

    def __init__(self, map: Any, start: np.ndarray, end: np.ndarray) -> None:
        ends = [np.asarray(rows, float) for rows in (start, end)]
        self._parts = [(part, part.comparable(ends[0]), part.comparable(ends[1])) for part in _parts(map)]

    def features(self, at: float) -> np.ndarray:
        """Where `at` goes from 0, the start, to 1."""
        return np.concatenate([part.features(a + at * (b - a)) for part, a, b in self._parts], axis=1)

    def shares(self, directions: np.ndarray, since: float = 0.0, until: float = 1.0) -> np.ndarray:
        """What each number of the inputs adds to the change of <features, direction_i> (n x inputs)."""
        total, first = np.zeros_like(self._parts[0][1]), 0
        for part, a, b in self._parts:
            low, high = a + since * (b - a), a + until * (b - a)
            total += part.secant(low, high, directions[:, first : first + part.dim]) * (high - low)
            first += part.dim
        return total


def centre(map: Any) -> np.ndarray | None:
    """The mean of all samples' inputs, where a map standardises by it."""
    if isinstance(map, MetricMap):
        return None if map.columns is None else arrays.to_numpy(map.columns[0]).astype(float)
    first = _spec(map).parts[0] if isinstance(map, DrawnMap) and isinstance(_spec(map), Chain) else None
    return np.array(first.centre) if isinstance(first, Standardize) else None


def _spec(map: DrawnMap) -> Any:
    return FeatureMap.from_description(map.description["map"])


def _parts(map: Any) -> list[Part]:
    if isinstance(map, DrawnMap):
        return _drawn(map)
    if isinstance(map, DirectionsMap):
        return [_after(map.comparable, _along(map, part)) for part in _drawn(map.after)]
    if not isinstance(map, MetricMap):
        raise TypeError(f"{map!r} has no shares")
    turned = [_turned(part, block.metric.apply) for block in map.blocks for part in _drawn(block.map)]
    return [_after(map.comparable, part) for part in (*_drawn(map.plain), *turned)]


def _drawn(map: DrawnMap) -> list[Part]:
    return _of(_spec(map), map.inputs, map.description["seed"], str(map.description["name"]))


def _of(spec: Any, inputs: int, seed: int, name: str) -> list[Part]:
    if isinstance(spec, Concat):
        return [made for i, part in enumerate(spec.parts) for made in _of(part, inputs, seed, f"{name}/{i}")]
    if not isinstance(spec, Chain):
        return [Part(_as_they_are, spec.function(inputs, seed, name), _secant(spec, inputs, seed, name), spec.width(inputs))]
    *before, last = spec.parts
    if not all(isinstance(part, Normalize | Standardize) for part in before):  # a number stays in its place
        raise TypeError(f"{spec!r} has no shares")
    steps = [part.function(inputs, seed, f"{name}/{i}") for i, part in enumerate(before)]
    made = _of(last, inputs, seed, f"{name}/{len(before)}")
    return [functools.reduce(lambda done, step: _after(step, done), reversed(steps), part) for part in made]


def _after(step: Rows, part: Part) -> Part:
    """The same features of rows that are made comparable by one step more, before the others."""
    return part._replace(comparable=lambda rows: part.comparable(step(rows)))


def _turned(part: Part, turn: Rows) -> Part:
    """Features in a metric, which is symmetric."""
    if part.comparable is not _as_they_are:
        raise TypeError("features of rows that are scaled within a metric have no shares")
    return part._replace(
        features=lambda rows: part.features(turn(rows)),
        secant=lambda a, b, directions: np.asarray(turn(part.secant(turn(a), turn(b), directions))),
    )


def _along(map: DirectionsMap, part: Part) -> Part:
    """Features of what rows are along some directions."""
    if part.comparable is not _as_they_are:
        raise TypeError("features of directions that are scaled have no shares; write raw+ before their map")

    def forth(rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows[:, map.columns] @ map.directions)

    def secant(a: np.ndarray, b: np.ndarray, along: np.ndarray) -> np.ndarray:
        back = np.zeros_like(a)
        back[:, map.columns] = part.secant(forth(a), forth(b), along) @ map.directions.T
        return back

    return part._replace(features=lambda rows: part.features(forth(rows)), secant=secant)


def _as_they_are(rows: np.ndarray) -> np.ndarray:
    return rows


@functools.singledispatch
def _secant(spec: Any, inputs: int, seed: int, name: str) -> Secant:
    raise TypeError(f"{spec!r} has no shares")


@_secant.register
def _(spec: Linear, inputs: int, seed: int, name: str) -> Secant:
    return lambda a, b, directions: directions


@_secant.register
def _(spec: Bias, inputs: int, seed: int, name: str) -> Secant:
    return lambda a, b, directions: np.zeros_like(a)


@_secant.register
def _(spec: Fourier, inputs: int, seed: int, name: str) -> Secant:
    waves, phases = spec.waves(inputs, seed, name)

    def secant(a: np.ndarray, b: np.ndarray, directions: np.ndarray) -> np.ndarray:
        half = (b - a) @ waves / 2
        # cos(p + 2h) - cos(p) = -2 sin(p + h) sin(h), over 2h
        slopes = -np.sin(a @ waves + phases + half) * np.sinc(half / np.pi)
        return np.asarray((slopes * directions) @ waves.T)

    return secant


@_secant.register
def _(spec: Projection, inputs: int, seed: int, name: str) -> Secant:
    matrix, activation = spec.matrix(inputs, seed, name), ACTIVATIONS[spec.activation]

    def secant(a: np.ndarray, b: np.ndarray, directions: np.ndarray) -> np.ndarray:
        low, high = a @ matrix, b @ matrix
        close = abs(high - low) < SAME
        low, high = np.where(close, low - 1e3 * SAME, low), np.where(close, high + 1e3 * SAME, high)
        return np.asarray(((activation(high) - activation(low)) / (high - low) * directions) @ matrix.T)

    return secant
