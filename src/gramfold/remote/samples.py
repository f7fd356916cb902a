"""Turns a client of an in-process federation into a site: its samples as a file, and the loader that reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import RemoteError
from gramfold.federation import Client, Samples, Task
from gramfold.numerics.arrays import to_numpy
from gramfold.wire.npz import read_arrays

LOADER = f"{__name__}:load"
PARTS = ("X", "y", "X_test", "y_test")


def save(path: Path, client: Client, task: Task) -> None:
    """Write both splits, with the original labels instead of class codes."""
    train, test = client.train(), client.test()
    if train.weights is not None:
        raise RemoteError(f"client {client.name!r} has sample weights, which a site's file does not hold; run in one process")
    if train.blocks is not None:
        raise RemoteError(
            f"client {client.name!r} has blocks of samples, which a site's file does not hold; run in one process, or give the "
            "site its table and `block-column`"
        )
    arrays = [part for samples in (train, test) for part in (to_numpy(samples.inputs), _with_labels(samples, task))]
    named: dict[str, Any] = dict(zip(PARTS, arrays, strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **named)


def load(site: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """A site's loader: reads what `save` wrote, from the file named by `samples` in the site's configuration."""
    found = read_arrays(Path(str(site["samples"])), PARTS)
    return tuple(found[part] for part in PARTS)


def _with_labels(samples: Samples, task: Task) -> np.ndarray:
    targets = to_numpy(samples.targets)
    return targets if task.labels is None else np.asarray(task.labels)[targets.astype(np.int64)]
