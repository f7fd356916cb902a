"""The single maps. Random ones take their numbers from a frozen stream, so they agree on every machine."""

import base64
import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import erf, expit

from gramfold.errors import FeaturesError
from gramfold.features.base import FeatureMap, Function, Gradient, constant, whole
from gramfold.moments import Implied
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array


@dataclass(frozen=True)
class Linear(FeatureMap):
    """The inputs themselves."""

    def width(self, inputs: int) -> int:
        return inputs

    def function(self, inputs: int, seed: int, name: str) -> Function:
        return lambda rows: rows

    def gradient(self, inputs: int, seed: int, name: str) -> Gradient:
        return lambda rows, directions: directions

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied() if length is None else Implied(lengths=((0, inputs, length),))


@dataclass(frozen=True)
class Bias(FeatureMap):
    """A constant one, so that a linear head has an intercept."""

    def width(self, inputs: int) -> int:
        return 1

    def function(self, inputs: int, seed: int, name: str) -> Function:
        return lambda rows: arrays.zeros((rows.shape[0], 1), rows) + 1.0

    def gradient(self, inputs: int, seed: int, name: str) -> Gradient:
        return lambda rows, directions: arrays.zeros((len(rows), inputs), rows)

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied(ones=(0,))


@dataclass(frozen=True)
class Normalize(FeatureMap):
    """Every sample scaled to length sqrt(d): no means to exchange, and as accurate as global standardising."""

    def width(self, inputs: int) -> int:
        return inputs

    def function(self, inputs: int, seed: int, name: str) -> Function:
        def normalize(rows: Array) -> Array:
            if arrays.is_traced():
                squares = arrays.row_squares(rows)
                return rows * ((inputs / (squares + (squares == 0))) ** 0.5)[:, None]
            if not len(rows):
                return rows
            squares = arrays.row_squares(rows)
            if not (float(squares.min()) > 1e-200 and float(squares.max()) < 1e200):  # squares that overflow or vanish
                largest = arrays.row_max(abs(rows))
                rows = rows / (largest + (largest == 0))[:, None]
                squares = arrays.row_squares(rows)
            return rows * ((inputs / (squares + (squares == 0))) ** 0.5)[:, None]  # an all-zero sample stays zero

        return normalize

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied(lengths=((0, inputs, float(inputs)),))


LONG, REACH = 2.0, 6.0
"""Scales from the centre beyond which a column counts by its logarithm: a value far out is far out, and drags nothing along. And
where it ends: an outlier, or a lie, counts as one of that size."""


def standardised(rows: Array, centre: Array, scale: Array, long: float | None, reach: float | None) -> Array:
    """z = (rows - centre) / scale up to |z| = long, long (1 + log(|z| / long)) with z's sign beyond, and never more than the
    reach; continuous, and up to there so is its slope. None: without that."""
    rows = (rows - centre) / scale
    if long is not None:
        within = rows.clip(-long, long)
        rows = within + within * arrays.log((abs(rows) / long).clip(1.0, None))
    return rows if reach is None else rows.clip(-reach, reach)


@dataclass(frozen=True)
class Standardize(FeatureMap):
    """Every column less its centre, over its scale, with shorter tails and no farther than REACH from zero."""

    centre: tuple[float, ...]
    scale: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", tuple(map(float, self.centre)))
        object.__setattr__(self, "scale", tuple(map(float, self.scale)))
        if len(self.centre) != len(self.scale) or not all(math.isfinite(s) and s > 0 for s in self.scale):
            raise FeaturesError("columns are standardised by one centre and one positive scale each")

    def width(self, inputs: int) -> int:
        if inputs != len(self.centre):
            raise FeaturesError(f"{len(self.centre)} columns are standardised, the inputs have {inputs}")
        return inputs

    def describe(self) -> dict[str, Any]:
        return {"kind": "standardize", "centre": list(self.centre), "scale": list(self.scale)}

    def function(self, inputs: int, seed: int, name: str) -> Function:
        centre, scale = constant(np.array(self.centre)), constant(np.array(self.scale))
        return lambda rows: standardised(rows, centre(rows), scale(rows), LONG, REACH)

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied(lengths=((0, inputs, inputs * REACH**2),))


def _gelu(x: np.ndarray) -> np.ndarray:
    """x (1 + erf(x / sqrt 2)) / 2, in one array: it is memory that takes the time."""
    out = x / math.sqrt(2)
    erf(out, out=out)
    out += 1
    out *= x
    out *= 0.5
    return out


ACTIVATIONS: dict[str, Function] = {
    "identity": lambda x: x,
    "relu": arrays.activation("relu", lambda x: np.maximum(x, 0)),
    "hardswish": arrays.activation("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "tanh": arrays.activation("tanh", np.tanh),
    "sigmoid": arrays.activation("sigmoid", expit),
    "gelu": arrays.activation("gelu", _gelu),
    "leakyrelu": arrays.activation("leaky_relu", lambda x: np.where(x >= 0, x, 0.01 * x)),
    "softshrink": arrays.activation("softshrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
}
"""The eight of APFL's study, with torch's definitions."""
BETWEEN_ONES = ("tanh", "sigmoid")
"""Those whose values lie within -1 and 1."""


@dataclass(frozen=True)
class Projection(FeatureMap):
    """act(z A), A ~ N(0, 1/d): APFL's random streams."""

    dim: int
    activation: str = "relu"

    def __post_init__(self) -> None:
        _check_dim(self.dim)
        if self.activation not in ACTIVATIONS:
            raise FeaturesError(f"unknown activation {self.activation!r}; known: {', '.join(ACTIVATIONS)}")

    def width(self, inputs: int) -> int:
        return self.dim

    def drawn(self, inputs: int) -> int:
        return inputs * self.dim

    def matrix(self, inputs: int, seed: int, name: str) -> np.ndarray:
        """A."""
        return seeds.frozen(seed, f"{name}/projection").standard_normal((inputs, self.dim)) / math.sqrt(inputs)

    def function(self, inputs: int, seed: int, name: str) -> Function:
        on, activation = constant(self.matrix(inputs, seed, name)), ACTIVATIONS[self.activation]
        return lambda rows: activation(rows @ on(rows))

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied(lengths=((0, self.dim, float(self.dim)),)) if self.activation in BETWEEN_ONES else Implied()


@dataclass(frozen=True)
class Fourier(FeatureMap):
    """cos(z Omega + b), Omega ~ N(0, scale^2/d): random features of the Gaussian kernel on inputs of length sqrt(d)."""

    dim: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_dim(self.dim)
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise FeaturesError(f"the scale of a Fourier map must be positive, got {self.scale}")

    def width(self, inputs: int) -> int:
        return self.dim

    def drawn(self, inputs: int) -> int:
        return inputs * self.dim

    def frequencies(self, inputs: int, seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Omega and b, drawn."""
        stream = seeds.frozen(seed, f"{name}/fourier")
        frequencies = stream.standard_normal((inputs, self.dim)) * (self.scale / math.sqrt(inputs))
        return frequencies, stream.uniform(0, 2 * math.pi, self.dim)

    def waves(self, inputs: int, seed: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Omega and b, as NumPy arrays."""
        frequencies, phases = _waves(self, inputs, seed, name)
        return frequencies(np.empty(0)), phases(np.empty(0))

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def function(self, inputs: int, seed: int, name: str) -> Function:
        frequencies, phases = _waves(self, inputs, seed, name)

        def cosine(rows: Array) -> Array:
            angles = rows @ frequencies(rows)
            angles += phases(rows)
            return arrays.cos_inplace(angles)

        return cosine

    def gradient(self, inputs: int, seed: int, name: str) -> Gradient:
        frequencies, phases = _waves(self, inputs, seed, name)

        def along(rows: Array, directions: Array) -> Array:
            angles = rows @ frequencies(rows)
            angles += phases(rows) + math.pi / 2  # the cosine's derivative
            return (arrays.cos_inplace(angles) * directions) @ frequencies(rows).T

        return along

    def implied(self, inputs: int, length: float | None) -> Implied:
        return Implied(lengths=((0, self.dim, float(self.dim)),))


@dataclass(frozen=True, eq=False)
class Nystroem(FeatureMap):
    """k(z, landmarks) k(landmarks, landmarks)^-1/2 for the Gaussian kernel exp(-gamma |z - z'|^2 / d), landmarks given."""

    landmarks: np.ndarray = field(repr=False)
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if self.landmarks.ndim != 2 or not np.isfinite(self.landmarks).all():
            raise FeaturesError("Nystroem landmarks must be a finite l x d array")
        if not (math.isfinite(self.gamma) and self.gamma >= 0):
            raise FeaturesError(f"the gamma of a Nystroem map must not be negative, got {self.gamma}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nystroem) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash((self.landmarks.tobytes(), self.gamma))

    def width(self, inputs: int) -> int:
        return len(self.landmarks)

    def describe(self) -> dict[str, Any]:
        packed = base64.b64encode(np.ascontiguousarray(self.landmarks, dtype="<f8").tobytes()).decode()
        return {"kind": "nystroem", "landmarks": packed, "count": len(self.landmarks), "gamma": self.gamma}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "Nystroem":
        landmarks = np.frombuffer(base64.b64decode(fields["landmarks"]), dtype="<f8").reshape(fields["count"], -1)
        return cls(landmarks.copy(), fields["gamma"])

    def drawn(self, inputs: int) -> int:
        if self.landmarks.shape[1] != inputs:
            raise FeaturesError(f"landmarks have {self.landmarks.shape[1]} numbers, the inputs {inputs}")
        return len(self.landmarks) ** 2

    def _similarity(self, rows: Array, points: Array) -> Array:
        distance = (rows**2).sum(1)[:, None] + (points**2).sum(1)[None, :] - 2 * rows @ points.T
        return arrays.exp((-self.gamma / points.shape[1]) * (distance * (distance > 0)))

    def whitening(self) -> np.ndarray:
        """k(landmarks, landmarks)^-1/2."""
        values, vectors = np.linalg.eigh(self._similarity(self.landmarks, self.landmarks))
        return np.asarray((vectors * np.maximum(values, 1e-12 * values.max()) ** -0.5) @ vectors.T)

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def function(self, inputs: int, seed: int, name: str) -> Function:
        landmarks, whiten = constant(self.landmarks), constant(self.whitening())
        return lambda rows: self._similarity(rows, landmarks(rows)) @ whiten(rows)


@functools.lru_cache(maxsize=8)
def _waves(spec: Fourier, inputs: int, seed: int, name: str) -> tuple[Function, Function]:
    frequencies, phases = spec.frequencies(inputs, seed, name)
    return constant(frequencies), constant(phases)


def _check_dim(dim: int) -> None:
    if whole(dim, "number of outputs") < 1:
        raise FeaturesError(f"a feature map needs at least one output, got {dim}")
