"""Data sets of pairs (x, y), as torch has them; and splits by name, as Hugging Face has them."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from gramfold.errors import ColumnsError, SamplesError
from gramfold.numerics.arrays import is_sparse, is_torch, to_numpy
from gramfold.sources.base import IMAGES, NUMBERS, TESTING, TEXTS, TRAINING, Columns, Source
from gramfold.sources.reading import is_frame

VALIDATION = ("val", "valid", "validation")
COLOURS = (1, 3, 4)
"""Channels of an image, which torch has in front."""


def is_pairs(data: Any) -> bool:
    """Whether it is a data set of torch, a loader of one, or something else that gives pairs by their place."""
    if isinstance(data, Mapping | Sequence | np.ndarray) or is_frame(data) or is_sparse(data) or hasattr(data, "detach"):
        return False
    if _is_loader(data) or any(base.__module__.startswith("torch.utils.data") for base in type(data).__mro__):
        return True
    return hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "items") and not hasattr(data, "shape")


def is_splits(data: Any) -> bool:
    """Whether it is a mapping from splits (train, test, ...) to data sets or frames."""
    if not isinstance(data, Mapping) or not data or not all(is_pairs(part) or is_frame(part) for part in data.values()):
        return False
    return any(str(name).lower() in TRAINING for name in data) and all(isinstance(name, str) for name in data)


def used_splits(data: Mapping[str, Any], whose: str) -> dict[str, tuple[Any, bool]]:
    """Which splits are used, and whether for training. A split for validation is for testing where there is no other, and for
    training where there is: nothing here is tuned on it."""
    lower = {str(name).lower(): name for name in data}
    tested = any(name in TESTING and name not in VALIDATION for name in lower)
    found = {}
    for word, name in lower.items():
        if word in TRAINING or (word in VALIDATION and tested):
            found[name] = (data[name], True)
        elif word in TESTING:
            found[name] = (data[name], False)
        else:
            warnings.warn(f"{whose}: split {name!r} is neither for training nor for testing, and is not used", stacklevel=4)
    return found


def pairs_source(data: Any, name: str, kind: str | None, columns: Columns) -> Source:
    """A data set of pairs: samples, which are read when they are needed, and labels. `kind`: what a backbone takes."""
    dataset = _dataset_of(data, name)
    if not len(dataset):
        raise SamplesError(f"{name} holds no samples; leave it out")
    first = _read(dataset, 0, name)
    labels = _labels(dataset, name) if columns.labelled else None
    items: Any = Read(dataset, name)
    if kind is None:
        kind = kind_of(first[0])
        items = numbers(items, name) if kind == NUMBERS else items
    return Source(name, kind, items, labels, regression=columns.regression)


class Read(Sequence[Any]):
    """What a data set has at each place, without its label; nothing is kept."""

    def __init__(self, dataset: Any, name: str) -> None:
        self._dataset, self._name = dataset, name

    def __len__(self) -> int:
        return len(self._dataset)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        return _read(self._dataset, i % len(self), self._name)[0]


class Behind(Sequence[Any]):
    """Several sequences, one behind the other; nothing is read before it is asked for."""

    def __init__(self, parts: Sequence[Sequence[Any]]) -> None:
        self._parts, self._ends = parts, np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(i)
        part = int(np.searchsorted(self._ends, i, side="right"))
        return self._parts[part][i - int(self._ends[part]) + len(self._parts[part])]


def numbers(items: Sequence[Any], name: str) -> np.ndarray:
    """Samples of numbers as one array, images with their channels behind, as gramfold has them."""
    rows = [_row(item) for item in items]
    odd = next((i for i, row in enumerate(rows) if row.shape != rows[0].shape), None)
    if odd is not None:
        raise SamplesError(
            f"{name}: sample {odd} has shape {rows[odd].shape}, sample 0 has {rows[0].shape}; bring them to one shape, or name a "
            "backbone that takes them as they are"
        )
    return np.stack(rows)


def _row(item: Any) -> np.ndarray:
    found = to_numpy(item) if is_torch(item) else np.asarray(item)
    if is_torch(item) and found.ndim == 3 and found.shape[0] in COLOURS and found.shape[2] not in COLOURS:
        found = found.transpose(1, 2, 0)
    return found.reshape(1) if found.ndim == 0 else found


def kind_of(sample: Any) -> str:
    """What a sample is that nobody has said anything of."""
    if isinstance(sample, str):
        return TEXTS
    if is_torch(sample) or isinstance(sample, np.ndarray | list | tuple | float | int | np.number):
        return NUMBERS
    return IMAGES


def _is_loader(data: Any) -> bool:
    return hasattr(data, "dataset") and hasattr(data, "batch_size")


def _dataset_of(data: Any, name: str) -> Any:
    """The data set itself; a loader's, or all of one that can only be gone through."""
    if _is_loader(data):
        sampler = type(getattr(data, "sampler", None)).__name__
        if sampler not in ("SequentialSampler", "RandomSampler", "_InfiniteConstantSampler", "NoneType"):
            raise SamplesError(f"{name}: a loader with a {sampler} does not say which samples are its own; give a Subset")
        data = data.dataset
    return data if hasattr(data, "__getitem__") and hasattr(data, "__len__") else list(data)


def _read(dataset: Any, i: int, name: str) -> tuple[Any, Any]:
    """The pair at a place."""
    try:
        found = dataset[i]
    except Exception as error:  # a data set is the user's own code
        raise SamplesError(f"{name}: sample {i} cannot be read: {type(error).__name__}: {error}") from None
    if isinstance(found, Mapping):
        raise ColumnsError(
            f"{name}: sample {i} is a mapping ({', '.join(map(str, list(found)[:6]))}); give pairs (x, y), or a data set of "
            "Hugging Face, whose columns go by name"
        )
    if not isinstance(found, tuple | list) or len(found) != 2:
        what = f"{len(found)} values" if isinstance(found, tuple | list) else f"a {type(found).__name__}"
        raise SamplesError(f"{name}: sample {i} is {what}; a data set gives pairs (x, y)")
    return found[0], found[1]


def _labels(dataset: Any, name: str) -> np.ndarray:
    """All labels, where they are to be had without the samples: `targets`, as torchvision has them, or a data set's tensors."""
    known = _known_labels(dataset)
    if known is None:
        known = [_read(dataset, i, name)[1] for i in range(len(dataset))]
    listed = to_numpy(known) if is_torch(known) else [to_numpy(label) if is_torch(label) else label for label in known]
    return np.asarray(listed)


def _known_labels(dataset: Any) -> Any:
    if hasattr(dataset, "dataset") and hasattr(dataset, "indices"):  # a Subset
        inside = _known_labels(dataset.dataset)
        return None if inside is None else _rows(inside, dataset.indices)
    if hasattr(dataset, "datasets"):  # several, one behind the other
        parts = [_known_labels(part) for part in dataset.datasets]
        return None if any(part is None for part in parts) else np.concatenate([np.asarray(_rows(part)) for part in parts])
    if hasattr(dataset, "tensors") and len(dataset.tensors) == 2:
        return dataset.tensors[1]
    changed = getattr(dataset, "target_transform", None) is not None
    together = getattr(dataset, "transforms", None) is not None and getattr(dataset, "transform", None) is None
    return None if changed or together else getattr(dataset, "targets", None)


def _rows(labels: Any, places: Any = None) -> Any:
    found = to_numpy(labels) if is_torch(labels) else np.asarray(labels)
    return found if places is None else found[np.asarray(places)]
