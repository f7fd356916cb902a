"""Samples with their labels beside them: (X, y), or (X, y, X_test, y_test)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import LabelsError, SamplesError
from gramfold.numerics.arrays import is_sparse, is_torch, to_numpy
from gramfold.sources.base import NUMBERS, Columns, Source
from gramfold.sources.pairs import kind_of, numbers
from gramfold.sources.reading import is_frame


def is_beside(data: Any) -> bool:
    """Whether it is samples and their labels, rather than several files, and not a table beside its labels."""
    if not isinstance(data, tuple) or len(data) not in (2, 4):
        return False
    return not any(isinstance(part, str | Path) or is_frame(part) for part in data[::2]) and all(map(_has_length, data))


def beside_source(data: tuple[Any, ...], name: str, kind: str | None, columns: Columns) -> Source:
    """The samples of both splits, one behind the other. `kind`: what a backbone takes; None: numbers, as they are."""
    sizes = [_length(part) for part in data]
    for here, beside in zip(sizes[::2], sizes[1::2], strict=True):
        if here != beside:
            raise LabelsError(f"{name} has {here} samples but {beside} labels")
    if not sizes[0]:
        raise SamplesError(f"{name} holds no samples; leave it out")
    found = kind or (NUMBERS if is_sparse(data[0]) else kind_of(data[0][0]))
    parts = data[::2]
    if found != NUMBERS:
        items: Any = [sample for part in parts for sample in part]
    elif is_sparse(parts[0]):
        from scipy.sparse import csr_array, vstack

        items = csr_array(vstack(list(parts)))
    else:
        items = np.concatenate([_array(part, name) for part in parts])
    labels = np.concatenate([to_numpy(part) if is_torch(part) else np.asarray(part) for part in data[1::2]])
    train = np.repeat([True, False], sizes[::2]) if len(parts) == 2 else None
    return Source(name, found, items, labels, None, train, columns.regression)


def _array(part: Any, name: str) -> np.ndarray:
    if is_torch(part) or isinstance(part, np.ndarray):
        return to_numpy(part)
    return numbers(part, name)


def _has_length(part: Any) -> bool:
    return isinstance(part, Sequence) or hasattr(part, "shape") or hasattr(part, "__len__")


def _length(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)
