"""Clients that are read a batch at a time: as many as a disk holds, in the memory of a few thousand."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import overload

import numpy as np

from gramfold.errors import ClientsError, LabelsError
from gramfold.federation.blocks import held_out_size
from gramfold.federation.client import Client, Samples, Task
from gramfold.numerics import arrays, lots
from gramfold.numerics import inputs as check

NUMBERS, CLIENTS = 2**21, 4096
"""A batch is full when its samples have so many numbers, or when there are so many clients in it; a client is never cut."""


@dataclass(frozen=True)
class ClientBatch:
    """Some clients, one client's samples after another's."""

    names: Sequence[str]
    inputs: np.ndarray
    targets: np.ndarray
    """Class codes, or rows of values."""
    starts: np.ndarray
    """Where each client's samples begin, and where the last one's end."""
    held_out: np.ndarray
    """Which samples are for testing."""

    def samples(self, k: int, testing: bool) -> Samples:
        """Of client k."""
        mine = slice(self.starts[k], self.starts[k + 1])
        wanted = self.held_out[mine] == testing
        return Samples(self.inputs[mine][wanted], self.targets[mine][wanted])

    def client(self, k: int) -> Client:
        return Client(self.names[k], partial(self.samples, k, False), partial(self.samples, k, True))

    def part(self, testing: bool) -> tuple[Samples, np.ndarray]:
        """All training samples, or all test samples, one client's after another's; and where each client's begin."""
        wanted = self.held_out == testing
        before = np.concatenate([[0], np.cumsum(wanted)])
        return Samples(self.inputs[wanted], self.targets[wanted]), before[self.starts]


@dataclass(frozen=True)
class Contents:
    """What one look through a stream has found."""

    clients: int
    samples: int
    """For training."""
    inputs: int
    outputs: int
    labels: tuple[int | str, ...] | None
    batches: tuple[int, ...]
    """Which client each batch begins with, and how many there are."""
    digest: str
    """Equal for equal streams."""


class ClientStream(ABC):
    """Clients in batches: the same ones, in the same order, every time they are read."""

    contents: Contents

    @abstractmethod
    def read(self, first: int = 0) -> Iterator[ClientBatch]:
        """The batches from that one on."""

    def task(self, seed: int) -> Task:
        found = self.contents
        return Task(found.inputs, found.labels, found.outputs, seed, found.samples)


class StreamedClients(Sequence[Client]):
    """The clients of a stream, one by one, for what takes them so. The batch that the last one came from stays in memory."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._last: tuple[int, ClientBatch] | None = None

    def __len__(self) -> int:
        return self._stream.contents.clients

    def __iter__(self) -> Iterator[Client]:
        for batch in self._stream.read():
            yield from map(batch.client, range(len(batch.names)))

    @overload
    def __getitem__(self, i: int) -> Client: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Client]: ...
    def __getitem__(self, i: int | slice) -> Client | Sequence[Client]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        begins = self._stream.contents.batches
        place = int(np.searchsorted(begins, i, side="right")) - 1
        with self._lock:
            if self._last is None or self._last[0] != place:
                self._last = place, next(self._stream.read(place))
            return self._last[1].client(i - begins[place])


# --- what sources of batches have in common ---


def held_out(names: Sequence[str], codes: np.ndarray | None, starts: np.ndarray, test: float, seed: int) -> np.ndarray:
    """Which samples are held out, of each client the part `test`, spread evenly over its classes: drawn from the seed and its
    name, so that it is the same whoever else is in the batch."""
    sizes, words = np.diff(starts), lots.of_names(seed, names)
    held = np.zeros(int(starts[-1]), dtype=bool)
    many = held_out_size(sizes, test)
    if not many.any():
        return held
    whose = np.repeat(np.arange(len(names)), sizes)
    place = np.arange(len(whose)) - starts[whose]
    kinds = np.zeros(len(whose), dtype=np.int64) if codes is None else codes
    order = np.lexsort((lots.numbered(words[whose], place + 1), kinds, whose))
    # every (n/size)-th sample of the client's class-sorted list, from a random start
    of = np.repeat(np.arange(len(names)), many)
    count = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)
    picked = np.floor((count + lots.shares(words)[of]) * (sizes[of] / many[of])).astype(np.int64)
    held[order[starts[of] + picked]] = True
    return held


def training_samples(sizes: np.ndarray, test: float) -> int:
    """How many samples `held_out` leaves of clients of these sizes."""
    return int((sizes - held_out_size(sizes, test)).sum())


def codes_of(found: np.ndarray, labels: Sequence[int | str], whose: str) -> np.ndarray:
    """Class codes of labels that were checked."""
    known = np.asarray(labels)
    if known.dtype.kind != found.dtype.kind and not (known.dtype.kind in "iub" and found.dtype.kind in "iub"):
        raise LabelsError(f"{whose}: label {found.reshape(-1)[0].item()!r} is not among the {len(known)} classes")
    order = np.argsort(known)
    place = np.searchsorted(known[order], found).clip(max=len(known) - 1)
    codes = order[place]
    wrong = np.flatnonzero(known[codes] != found)
    if len(wrong):
        raise LabelsError(f"{whose}: label {found[wrong[0]].item()!r} is not among the {len(known)} classes")
    return np.asarray(codes, dtype=np.int64)


def require_finite(names: Sequence[str], inputs: np.ndarray, starts: np.ndarray) -> None:
    """Raise, naming whose sample it is, if any number is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(float(inputs.sum(dtype=np.float64))):
            return
    sound = np.array([arrays.all_finite(inputs[start:end]) for start, end in pairwise(starts)])
    for k in np.flatnonzero(~sound)[:1]:
        check.require_finite(inputs[starts[k] : starts[k + 1]], f"client {names[k]!r}")


def require_distinct(names: Sequence[str]) -> None:
    """Raise if a name comes twice, and not one after the other."""
    _, first = np.unique(lots.of_names(0, names), return_index=True)
    if len(first) < len(names):
        repeated = np.ones(len(names), dtype=bool)
        repeated[first] = False
        raise ClientsError(
            f"client {names[int(np.flatnonzero(repeated)[0])]!r} comes again after others; a stream has each client's samples in "
            "one place: sort it by client"
        )
