"""Clients that a program makes one by one: a function that yields them, an iterable, or a generator."""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import ClientsError, LabelsError, SamplesError
from gramfold.federation.given import WITH_TEST
from gramfold.federation.streams import (
    CLIENTS,
    NUMBERS,
    ClientBatch,
    ClientStream,
    Contents,
    codes_of,
    held_out,
    require_distinct,
    require_finite,
    training_samples,
)
from gramfold.numerics import inputs as check

Clients = Iterable[Any] | Callable[[], Iterable[Any]]
"""Of (name, X, y), or (name, X, y, X_test, y_test)."""


class GeneratedClients(ClientStream):
    """What yields clients is asked once to see what there is, and then once for each pass. A generator, which can be asked only
    once, is written to a temporary folder as it goes."""

    def __init__(
        self, source: Clients, test: float, seed: int, labels: Sequence[int | str] | None = None, regression: bool = False
    ) -> None:
        if not callable(source) and not isinstance(source, Iterable):
            raise ClientsError(
                f"a stream is a function that yields (name, X, y), or an iterable of those; got {type(source).__name__}"
            )
        self._source, self._test, self._seed, self._regression = source, test, seed, regression
        self._spool: tempfile.TemporaryDirectory[str] | None = None
        if isinstance(source, Iterator):
            self._spool = tempfile.TemporaryDirectory(prefix="gramfold-")
        self.contents = self._look(labels)

    def _look(self, labels: Sequence[int | str] | None) -> Contents:
        digest, names, begins = hashlib.sha256(), list[str](), [0]
        known, train, inputs, outputs = set[Any](), 0, 0, 0
        for place, given in enumerate(self._gathered()):
            inputs, outputs = given.inputs.shape[1], int(np.prod(given.targets.shape[1:], dtype=np.int64))
            if not self._regression:
                known.update(check.encode(given.targets)[1])
            train += training_samples(np.diff(given.starts), self._test) if given.split is None else int((~given.split).sum())
            names += given.names
            begins.append(len(names))
            digest.update(given.digest())
            if self._spool is not None:
                given.save(Path(self._spool.name) / f"{place}.npz")
        if not names:
            raise ClientsError("the stream has no clients")
        require_distinct(names)
        found = tuple(labels) if labels is not None else tuple(sorted(known)) if not self._regression else None
        if found is not None:
            if len(found) < 2:
                raise LabelsError("only one class in the labels; classification needs at least two")
            outputs = len(found)
        about = f"{self._test} {self._seed} {found}"
        digest.update(about.encode())
        return Contents(len(names), train, inputs, outputs, found, tuple(begins), digest.hexdigest()[:32])

    def read(self, first: int = 0) -> Iterator[ClientBatch]:
        sizes, seen = np.diff(self.contents.batches).tolist(), list[int]()
        for place, given in enumerate(self._gathered() if self._spool is None else self._spooled()):
            seen.append(len(given.names))
            if seen != sizes[: len(seen)]:
                break
            if place >= first:
                yield self._batch(given)
        if seen != sizes:
            raise ClientsError("the stream has other clients than when it was first read; it must yield the same ones each time")

    def _batch(self, given: "_Given") -> ClientBatch:
        whose, labels = f"clients {given.names[0]!r} to {given.names[-1]!r}", self.contents.labels
        codes = None if labels is None else codes_of(given.targets, labels, whose)
        held = given.split
        if held is None:
            held = held_out(given.names, codes, given.starts, self._test, self._seed)
        targets = given.targets.reshape(len(held), -1) if codes is None else codes
        return ClientBatch(given.names, given.inputs, targets, given.starts, held)

    def _spooled(self) -> "Iterator[_Given]":
        assert self._spool is not None
        for place in range(len(self.contents.batches) - 1):
            yield _Given.load(Path(self._spool.name) / f"{place}.npz")

    def _gathered(self) -> "Iterator[_Given]":
        """Clients as they come, a batch at a time."""
        waiting, numbers, alike = list[_One](), 0, None
        for item in self._source() if callable(self._source) else self._source:
            one = _One(item, self._regression)
            alike = alike or one
            if one.inputs.shape[1] != alike.inputs.shape[1]:
                raise SamplesError(
                    f"client {one.name!r} has {one.inputs.shape[1]} numbers per sample, {alike.name!r} {alike.inputs.shape[1]}"
                )
            if (one.targets.dtype.kind == "U") != (alike.targets.dtype.kind == "U"):
                raise ClientsError("clients mix class numbers and class names; use one or the other")
            if (one.split is None) != (alike.split is None):
                raise ClientsError(f"either all clients have test samples of their own or none: {one.name!r}, {alike.name!r}")
            waiting.append(one)
            numbers += one.inputs.size
            if numbers >= NUMBERS or len(waiting) >= CLIENTS:
                yield _Given.of(waiting)
                waiting, numbers = [], 0
        if waiting:
            yield _Given.of(waiting)


class _One:
    """A client as it was yielded, converted; test samples behind the others."""

    def __init__(self, item: Any, regression: bool) -> None:
        if not isinstance(item, tuple | list) or len(item) not in (3, 5):
            raise ClientsError(f"a stream yields (name, X, y), or (name, {WITH_TEST[1:]}; got {_described(item)}")
        self.name = str(item[0])
        whose = f"client {self.name!r}"
        parts = [check.shaped(part, whose) for part in item[1::2]]
        if any(part.ndim != 2 or not isinstance(part, np.ndarray) for part in parts):
            raise SamplesError(
                f"{whose}: a stream takes rows of numbers; extract features first, or flatten with X.reshape(len(X), -1)"
            )
        targets = [
            check.values(y, len(X), None, whose) if regression else check.labels(y, len(X), whose)
            for X, y in zip(parts, item[2::2], strict=True)
        ]
        if not len(parts[0]):
            raise ClientsError(f"{whose} has no samples; leave empty clients out")
        self.inputs = parts[0] if len(parts) == 1 else np.concatenate(parts)
        self.targets = targets[0] if len(parts) == 1 else np.concatenate(targets)
        self.split = None if len(parts) == 1 else np.arange(len(self.inputs)) >= len(parts[0])


def _described(item: Any) -> str:
    return f"{len(item)} things" if isinstance(item, tuple | list) else type(item).__name__


class _Given:
    """A batch before its labels are codes."""

    def __init__(
        self, names: Sequence[str], inputs: np.ndarray, targets: np.ndarray, starts: np.ndarray, split: np.ndarray | None
    ) -> None:
        self.names, self.inputs, self.targets, self.starts, self.split = names, inputs, targets, starts, split

    @classmethod
    def of(cls, clients: Sequence[_One]) -> "_Given":
        names, starts = [one.name for one in clients], np.cumsum([0, *(len(one.inputs) for one in clients)])
        inputs, targets = (np.concatenate([getattr(one, part) for one in clients]) for part in ("inputs", "targets"))
        require_finite(names, inputs, starts)
        split = None if clients[0].split is None else np.concatenate([one.split for one in clients if one.split is not None])
        return cls(names, inputs, targets, starts, split)

    def digest(self) -> bytes:
        found = hashlib.sha256("\0".join(self.names).encode())
        for part in (self.inputs, self.targets, self.starts, self.split):
            if part is not None:
                found.update(f"{part.dtype}{part.shape}".encode())
                found.update(np.ascontiguousarray(part).view(np.uint8).data)
        return found.digest()

    def save(self, path: Path) -> None:
        parts = {"names": np.array(self.names), "inputs": self.inputs, "targets": self.targets, "starts": self.starts}
        if self.split is not None:
            parts["split"] = self.split
        np.savez(path, allow_pickle=False, **parts)

    @classmethod
    def load(cls, path: Path) -> "_Given":
        with np.load(path) as kept:
            return cls(kept["names"].tolist(), kept["inputs"], kept["targets"], kept["starts"], kept.get("split"))
