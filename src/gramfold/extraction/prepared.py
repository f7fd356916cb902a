"""Data of any kind as numbers: features as they are, raw samples through a backbone, tables through their encoder."""

import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from gramfold.backbones import Backbone, open_backbone, reopen
from gramfold.errors import GramfoldError
from gramfold.extraction.pipeline import FAIL, Progress, extract
from gramfold.federation import Dataset
from gramfold.federation.npz import read_arrays
from gramfold.heads import Head
from gramfold.numerics import inputs as check
from gramfold.origin import TABLE, Origin
from gramfold.sources import RELEASE_WORDS, Cells, Columns, Source, TableEncoder, TableStatistics, source_of
from gramfold.sources.base import COLUMNS

ROWS = 4096
"""Rows that are copied together."""


def load_data(
    data: Any,
    backbone: Backbone | str | None = None,
    *,
    columns: Columns | None = None,
    cache: Path | None = None,
    unreadable: str = FAIL,
    progress: Progress | None = None,
    encoder: TableEncoder | None = None,
    release_words: int = RELEASE_WORDS,
    whole: bool = True,
) -> Dataset:
    """Labelled samples as numbers, for `Federation.from_dataset`: from a path (a folder of images, a CSV or Parquet table, an
    .npz file of images), a frame (pandas, polars, pyarrow), a data set of Hugging Face, or a mapping of columns.

    `backbone` makes features of images and texts: one that is open, or its name. A table of numbers and categories needs none:
    the statistics of its columns are folded over its clients, unless an `encoder` is given. `columns` says which column is what.
    A word has a place in the encoder only where `release_words` training rows of one client have it.

    With a `cache`, a folder, features are computed once. Images that are `unreadable` fail, or are skipped with a warning.

    >>> rows = {"age": [40, 60, None, 50] * 3, "sex": ["f", "f", "m", "m"] * 3, "label": ["well", "ill", "ill", "well"] * 3}
    >>> load_data(rows).inputs.shape
    (12, 4)
    """
    backbone = open_backbone(backbone) if isinstance(backbone, str) else backbone
    source = source_of(data, columns, None if backbone is None else backbone.kind)
    if backbone is not None:
        found = extract(source, backbone, cache, unreadable=unreadable, progress=progress)
        return source.dataset(found.rows, found.origin, found.kept, whole)
    if source.kind != COLUMNS:
        raise GramfoldError(f"{source.name} holds {source.kind}; name a backbone for them, such as {_SUCH_AS[source.kind]}")
    if encoder is not None:
        return source.dataset(encoder(source.items), encoder.origin, whole=whole)
    table = CodedTable(source, release_words)
    training = table.training()
    say_unused(table.statistics(training))
    return replace(source.dataset(*table(training), whole=whole), recode=table)


_SUCH_AS = {"images": "--backbone dinov2s", "texts": "--backbone minilm"}


class CodedTable:
    """A table whose cells are read once, for an encoder of whichever training rows a cut of it leaves."""

    def __init__(self, source: Source, release_words: int = RELEASE_WORDS) -> None:
        self._source, self._release_words = source, release_words
        self._cells = {name: Cells(values) for name, values in source.items.items()}

    def training(self) -> list[np.ndarray]:
        """The training rows of each client."""
        source = self._source
        owners = np.zeros(source.n, dtype=np.int64) if source.client is None else np.unique(source.client, return_inverse=True)[1]
        owners = owners if source.train is None or not source.train.any() else np.where(source.train, owners, -1)
        return [np.flatnonzero(owners == owner) for owner in np.unique(owners[owners >= 0])]

    def statistics(self, training: Sequence[np.ndarray]) -> TableStatistics:
        """What owners of these rows say of them, each for its own, and then their sum."""
        return reduce(add, (self._of({name: cells.take(rows) for name, cells in self._cells.items()}) for rows in training))

    def _of(self, cells: dict[str, Cells]) -> TableStatistics:
        return TableStatistics.of_cells(cells, self._release_words, self._source.wanted)

    def __call__(self, training: Sequence[np.ndarray]) -> tuple[np.ndarray, Origin]:
        encoder = TableEncoder.of(self.statistics(training))
        return encoder.encode(self._cells), encoder.origin


def say_unused(statistics: TableStatistics) -> None:
    """Warn of the columns that no encoder takes."""
    for name, why in statistics.unused().items():
        forced = (
            "; name it among --columns (Columns(only=...)) if it is a measurement" if statistics.by_column[name].singular else ""
        )
        warnings.warn(f"column {name!r} {why}: it is not used{forced}", stacklevel=3)


def features_for(
    head: Head, data: Any, *, columns: Columns | None = None, cache: Path | None = None, unreadable: str = FAIL,
    device: str = "cpu", backbone: str | None = None, progress: Progress | None = None,
) -> tuple[Any, np.ndarray, Source]:  # fmt: skip
    """What a head takes, of raw samples: the rows, which samples they are of, and the samples themselves."""
    if head.origin is None:
        raise GramfoldError("this head does not know what makes its features of raw samples; give it features (an .npz file)")
    if head.origin.kind == TABLE:
        encoder = TableEncoder.reopen(head.origin)
        source = source_of(data, Columns(only=tuple(encoder.names), labelled=False), COLUMNS)
        return encoder(source.items), np.arange(source.n), source
    opened = reopen(head.origin, device, backbone)
    source = source_of(data, replace(columns or Columns(), labelled=False), opened.kind)
    found = extract(source, opened, cache, unreadable=unreadable, progress=progress)
    return found.rows, found.kept, source


def read_data(head: Head, data: str, **options: Any) -> tuple[Any, np.ndarray, Source | None]:
    """The same for a path: an .npz file of features is taken as it is, if it comes from where the head's inputs do."""
    if not Path(data).exists():
        raise GramfoldError(f"no such data: {data}")
    if not data.endswith(".npz"):
        return features_for(head, data, **options)
    arrays, origin = load_features(Path(data))
    if arrays is None:
        return features_for(head, data, **options)
    if head.origin is not None:
        head.origin.require(origin, data)
    return arrays, np.arange(len(arrays)), None


def load_features(path: Path) -> tuple[np.ndarray | None, Origin | None]:
    """The features of an .npz file, labelled or not, and where they come from; None where it holds images."""
    if not path.is_file():
        raise GramfoldError(f"no such data file: {path}")
    found = read_arrays(path, ("features", "origin"))
    if "features" not in found:
        return None, None
    if not len(found["features"]):
        raise GramfoldError(f"{path.name} holds no samples")
    origin = Origin.from_json(str(found["origin"]), path.name) if "origin" in found else None
    return check.samples(found["features"], path.name), origin


def save_features(path: Path, dataset: Dataset) -> None:
    """An .npz file as `load_npz` reads it, that says where the features come from. Rows are copied a block at a time."""
    content: dict[str, np.ndarray] = {"labels": dataset.targets}
    if dataset.labels is not None and isinstance(dataset.labels[0], str):
        content["classes"] = np.array(dataset.labels)
    elif dataset.labels is not None:
        content["labels"] = np.asarray(dataset.labels)[dataset.targets]
    given = {"train": dataset.train, "client": dataset.client}
    content |= {name: values for name, values in given.items() if values is not None}
    if dataset.origin is not None:
        content["origin"] = np.array(dataset.origin.to_json())
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            _write_blocks(archive, "features", dataset.inputs)
            for name, values in content.items():
                _write_blocks(archive, name, values)
        temporary.replace(path)
    except OSError as error:
        raise GramfoldError(f"cannot write {path}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _write_blocks(archive: zipfile.ZipFile, name: str, values: Any) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {"descr": npy.dtype_to_descr(values.dtype), "fortran_order": False, "shape": tuple(values.shape)}
        npy.write_array_header_2_0(file, header)
        for first in range(0, max(len(values) if values.ndim else 1, 1), ROWS):
            block = values[first : first + ROWS] if values.ndim else values
            file.write(np.ascontiguousarray(block).tobytes())
