"""A client: a name and a way to its data, which is only loaded when it is worked on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gramfold.arrays import Array


class Samples(NamedTuple):
    """Inputs (n x d features, or images) and targets: class codes, or continuous values (n x outputs)."""

    inputs: Array
    targets: Array

    @property
    def n(self) -> int:
        return len(self.inputs)


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
