"""Clients given as data of their own: arrays, or a function that loads them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from gramfold.errors import ClientsError, LabelsError
from gramfold.federation.blocks import held_out_size, stratified
from gramfold.federation.client import Client, Samples, Task
from gramfold.numerics import inputs as check
from gramfold.numerics import seeds
from gramfold.numerics.arrays import Array, is_torch

ClientArrays = tuple[Array, Array] | tuple[Array, Array, Array, Array]
WITH_TEST = "(X, y, X_test, y_test)"
ClientSource = ClientArrays | Callable[[], ClientArrays]


def load_source(name: str, source: ClientSource) -> ClientArrays:
    """A client's arrays, converted but not yet looked through: see `Task.admit`."""
    loaded = source() if callable(source) else source
    if not isinstance(loaded, tuple | list) or len(loaded) not in (2, 4):
        got = f"{len(loaded)} arrays" if isinstance(loaded, tuple | list) else type(loaded).__name__
        raise ClientsError(f"client {name!r} must be (X, y) or {WITH_TEST}, got {got}")
    whose, parts = f"client {name!r}", list(loaded)
    for i in range(0, len(parts), 2):
        parts[i] = check.shaped(parts[i], whose)
        parts[i + 1] = parts[i + 1] if is_torch(parts[i + 1]) else np.asarray(parts[i + 1])
        n, targets = parts[i].shape[0], parts[i + 1].shape[0] if parts[i + 1].ndim else 1
        if n != targets:
            raise LabelsError(f"{whose} has {n} samples but {targets} targets")
    if not parts[0].shape[0]:
        raise ClientsError(f"{whose} has no samples; leave empty clients out")
    return tuple(parts)


def samples_of(clients: Mapping[str, ClientSource], test: float, in_blocks: bool) -> int | None:
    """Training samples in all; None where some are only known once loaded, or how many are held out hangs on their blocks."""
    total = 0
    for source in clients.values():
        if callable(source) or (in_blocks and len(source) == 2):
            return None
        n = len(source[1])
        total += n - (int(held_out_size(np.array(n), test)) if len(source) == 2 else 0)
    return total


def labels_of(clients: Mapping[str, ClientSource]) -> tuple[int | str, ...]:
    found: set[Any] = set()
    for name, source in clients.items():
        for y in load_source(str(name), source)[1::2]:
            found.update(check.encode(check.labels(y, len(y), f"client {name!r}"))[1])
    if len({type(label) for label in found}) > 1:
        raise ClientsError("clients mix class numbers and class names; use one or the other")
    return tuple(sorted(found))


def blocks_by_client(blocks: Mapping[str, Any] | None, clients: Mapping[str, ClientSource]) -> dict[str, Any]:
    """The blocks of each client that has any."""
    if blocks is not None and not isinstance(blocks, Mapping):
        raise ClientsError(f"blocks= goes by client, {{{next(iter(clients))!r}: [...]}}, got {type(blocks).__name__}")
    found = {str(name): given for name, given in (blocks or {}).items()}
    strange = next((name for name in found if name not in clients), None)
    if strange is not None:
        raise ClientsError(f"blocks= names {strange!r}, which is no client; there are: {', '.join(list(clients)[:8])}")
    return found


def given_client(name: str, source: ClientSource, task: Task, test: float, blocks: Any = None) -> Client:
    """A client of a task from its own data: see `Federation.from_clients`."""

    def samples(part: int) -> Samples:
        loaded = load_source(name, source)
        X, y = loaded[2 * part : 2 * part + 2] if len(loaded) == 4 else loaded
        found = task.admit(name, X, y, None if len(loaded) == 4 and part else blocks)
        if len(loaded) == 4:
            return found
        codes = found.targets if task.labels is not None else np.zeros(found.n, dtype=np.int64)
        return found.take(stratified(codes, test, seeds.generator(task.seed, f"split/{name}"), found.blocks)[part])

    return Client(name, partial(samples, 0), partial(samples, 1))
