"""A client of a federation in this process as a site of its own: its samples in a file, and the loader that reads them there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.federation import Client, Samples, Task
from gramfold.numerics.arrays import to_numpy

LOADER = f"{__name__}:load"
PARTS = ("X", "y", "X_test", "y_test")


def save(path: Path, client: Client, task: Task) -> None:
    """Write both splits, labels as they are called outside."""
    if client.train().weights is not None:
        raise GramfoldError(f"client {client.name!r} has sample weights, which a site's file does not hold; run in one process")
    arrays = [part for samples in (client.train(), client.test()) for part in (to_numpy(samples.inputs), _outside(samples, task))]
    named: dict[str, Any] = dict(zip(PARTS, arrays, strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **named)


def load(site: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """A site's loader: what `save` wrote to the file that the site's configuration calls `samples`."""
    with np.load(str(site["samples"]), allow_pickle=False) as file:
        return tuple(file[part] for part in PARTS)


def _outside(samples: Samples, task: Task) -> np.ndarray:
    targets = to_numpy(samples.targets)
    return targets if task.labels is None else np.asarray(task.labels)[targets.astype(np.int64)]
