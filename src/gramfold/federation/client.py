"""A client: a name and a way to load its data, which is loaded only when needed."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from gramfold.errors import LabelsError, SamplesError
from gramfold.federation.blocks import block_codes
from gramfold.numerics import inputs
from gramfold.numerics.arrays import Array, is_sparse, to_numpy
from gramfold.origin import Origin
from gramfold.sources.targets import COUNTS, ORDERED, SEVERAL, read_counts, read_several


class _Pair(NamedTuple):
    inputs: Array
    targets: Array


class Samples(_Pair):
    """Inputs (n x d features, perhaps sparse, or images) and targets: class codes, or continuous values (n x outputs).

    A pair, `inputs, targets = samples`, that may carry weights, one number per sample (None: every sample counts once), and the
    block of each sample, a number: those of one block give each other away (`federation.blocks`).
    """

    weights: np.ndarray | None
    blocks: np.ndarray | None

    def __new__(cls, inputs: Array, targets: Array, weights: np.ndarray | None = None, blocks: np.ndarray | None = None) -> Self:
        made = super().__new__(cls, inputs, targets)
        made.weights, made.blocks = weights, blocks
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.inputs, self.targets, self.weights, self.blocks

    @property
    def n(self) -> int:
        return int(self.inputs.shape[0])

    def parts(self) -> tuple[Array, ...]:
        """All arrays: inputs, targets, and weights and blocks where there are any."""
        return (*self, *(part for part in (self.weights, self.blocks) if part is not None))

    def buffers(self) -> Iterator[np.ndarray]:
        """The numbers of all of them as NumPy arrays, for a hash; sparse inputs are not made dense."""
        for part in self.parts():
            yield from (part.data, part.indices, part.indptr) if is_sparse(part) else (to_numpy(part),)

    def digest(self) -> str:
        """The SHA-256 of all numbers, with their types and shapes: equal for equal samples."""
        digest = hashlib.sha256()
        for part in self.buffers():
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.data.cast("B") if array.size else b"")
        return digest.hexdigest()

    def take(self, rows: np.ndarray) -> Self:
        """Some of the samples."""
        weights, blocks = (None if part is None else part[rows] for part in (self.weights, self.blocks))
        return type(self)(self.inputs[rows], self.targets[rows], weights, blocks)


@dataclass(frozen=True)
class Client:
    """A participant. `train()` and `test()` load its samples anew each time; nothing is kept between calls."""

    name: str
    train: Callable[[], Samples]
    test: Callable[[], Samples]

    def __repr__(self) -> str:
        return f"Client({self.name!r})"


@dataclass(frozen=True)
class Task:
    """What all clients agree on before the first round."""

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
    origin: Origin | None = None
    """What makes rows of numbers of raw samples, the same at all clients; None where nobody says."""
    targets: str = field(default="", repr=False)
    """What targets are where that is more than a class or a value: see `sources.targets`."""
    names: tuple[int | str, ...] = field(default=(), repr=False)
    """Where a sample may have several labels, all of them: targets are then rows of as many numbers, one where it has the label
    and zero where it has not, and `labels` is None."""

    def of_values(self, outputs: int) -> "Task":
        """The same samples with so many values each as their targets."""
        return replace(self, labels=None, outputs=outputs, targets="", names=())

    def encode(self, name: str, y: Array) -> np.ndarray:
        """Targets as methods see them: class codes, or rows of values. `name` is whose they are."""
        whose = f"client {name!r}"
        if self.targets == SEVERAL:
            return read_several(y, len(y), whose, self.names)
        if self.targets == COUNTS:
            return read_counts(y, len(y), whose)
        if self.labels is None:
            return inputs.values(y, len(y), self.outputs, whose)
        found = inputs.labels(y, len(y), whose).tolist()
        known = {label: code for code, label in enumerate(self.labels)}
        unknown = next((i for i, label in enumerate(found) if label not in known), None)
        if unknown is not None:
            sample = f"{whose} has label {found[unknown]!r} (sample {unknown})"
            rest = "; a new class is named by labels=[...], in update or from_clients"
            raise LabelsError(f"{sample}, which is not among the {self.outputs} classes: {_in_short(self.labels)}{rest}")
        return np.array([known[label] for label in found], dtype=np.int64)

    def admit(self, name: str, X: Array, y: Array, blocks: Any = None) -> Samples:
        """A client's samples as methods see them, checked: finite, of this task's shape, every label known."""
        whose = f"client {name!r}"
        X = inputs.samples(X, whose)
        n, shape = X.shape[0], tuple(X.shape[1:])
        if n != len(y):
            raise LabelsError(f"{whose} has {n} samples but {len(y)} targets")
        if int(np.prod(shape)) != self.inputs:
            raise SamplesError(f"{whose} has {int(np.prod(shape))} numbers per sample, the others {self.inputs}")
        if shape != (self.shape or (self.inputs,)):
            raise SamplesError(f"{whose} has samples of shape {shape}, the others {self.shape or (self.inputs,)}; reshape them")
        return Samples(X, self.encode(name, y), blocks=None if blocks is None else block_codes(blocks, n, whose))


def targets_in_words(labels: tuple[int | str, ...] | None, outputs: int, kind: str) -> str:
    """
    >>> targets_in_words(None, 3, "labels"), targets_in_words((0, 1), 2, "")
    ('any of 3 labels', '2 classes')
    """
    if labels is not None:
        return f"{outputs} {'ordered ' if kind == ORDERED else ''}classes"
    return {SEVERAL: f"any of {outputs} labels", COUNTS: "counts"}.get(kind, f"{outputs} continuous targets")


def _in_short(labels: tuple[int | str, ...]) -> str:
    return ", ".join(map(str, labels if len(labels) <= 10 else (*labels[:8], "...", labels[-1])))
