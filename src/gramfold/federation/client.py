"""A client: a name and a way to its data, which is only loaded when it is worked on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.numerics.arrays import Array, to_numpy


class _Pair(NamedTuple):
    inputs: Array
    targets: Array


class Samples(_Pair):
    """Inputs (n x d features, or images) and targets: class codes, or continuous values (n x outputs).

    A pair, `inputs, targets = samples`, that may carry weights, one number per sample; None: every sample counts once.
    """

    weights: np.ndarray | None

    def __new__(cls, inputs: Array, targets: Array, weights: np.ndarray | None = None) -> Self:
        made = super().__new__(cls, inputs, targets)
        made.weights = weights
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts()

    @property
    def n(self) -> int:
        return len(self.inputs)

    def parts(self) -> tuple[Array, ...]:
        """All arrays: inputs, targets, and weights where there are any."""
        return tuple(self) if self.weights is None else (*self, self.weights)

    def take(self, rows: np.ndarray) -> Self:
        """Some of the samples."""
        return type(self)(*(part[rows] for part in self.parts()))


@dataclass(frozen=True)
class Client:
    """A participant. `train()` and `test()` load its samples anew each time; nothing is kept between calls."""

    name: str
    train: Callable[[], Samples]
    test: Callable[[], Samples]


@dataclass(frozen=True)
class Task:
    """What everybody agrees on before the first round."""

    inputs: int
    """Numbers per sample."""
    labels: tuple[int | str, ...] | None
    """The classes; None for regression."""
    outputs: int
    """Classes, or continuous targets."""
    seed: int
    samples: int | None = None
    """Training samples in all, where that is known beforehand."""
    shape: tuple[int, ...] = ()
    """A sample's shape where it is more than a row of numbers: height, width and channels of an image."""

    def encode(self, name: str, y: Array) -> np.ndarray:
        """Targets as methods see them: class codes, or rows of values. `name` is whose they are."""
        y = to_numpy(y)
        if self.labels is None:
            if not np.isfinite(y).all():
                raise GramfoldError(f"client {name!r} has targets that are NaN or infinite; remove them")
            return np.reshape(y.astype(np.float64), (len(y), self.outputs))
        y = y.astype(str) if y.dtype.kind == "S" else y
        known = {label: code for code, label in enumerate(self.labels)}
        try:
            return np.array([known[label] for label in y.tolist()], dtype=np.int64)
        except KeyError as error:
            wrong = error.args[0]
            raise GramfoldError(f"client {name!r} has label {wrong!r}, which is not among the {self.outputs} classes") from None
