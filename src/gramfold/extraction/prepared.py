"""Data of any kind as numbers: features as they are, raw samples through a backbone, tables through their encoder."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from gramfold.backbones import Backbone, open_backbone, reopen
from gramfold.backbones.function import FunctionBackbone
from gramfold.errors import ColumnsError, FileError, SamplesError
from gramfold.extraction.pipeline import FAIL, Progress, extract
from gramfold.federation import Dataset
from gramfold.federation.raw import dataset_of, in_order, table_dataset
from gramfold.heads import Head
from gramfold.numerics import inputs as check
from gramfold.origin import TABLE, Origin
from gramfold.progress import display
from gramfold.sources import RELEASE_WORDS, Columns, Source, TableEncoder, encoded, raw_table, source_of
from gramfold.sources.base import COLUMNS, NUMBERS, TEXTS
from gramfold.wire.npz import read_arrays

ROWS = 4096
"""Rows that are copied together."""


def load_data(
    data: Any,
    backbone: Any = None,
    *,
    label_column: str | None = None,
    client_column: str | None = None,
    path_column: str | None = None,
    text_column: str | None = None,
    split_column: str | None = None,
    block_column: str | None = None,
    columns: Sequence[str] | Columns | None = None,
    regression: bool = False,
    targets: str | None = None,
    labels: Sequence[int | str] | None = None,
    cache: Path | None = None,
    unreadable: str = FAIL,
    progress: Progress | bool = True,
    encoder: TableEncoder | None = None,
    release_words: int = RELEASE_WORDS,
    whole: bool = True,
) -> Dataset:
    """Labelled samples as numbers, for `Federation.from_dataset`: from a path (a folder of images, a CSV or Parquet table, an
    .npz file of images), a frame (pandas, polars, pyarrow), a data set of Hugging Face or of torch (pairs of a sample and its
    label), splits of such by name (train, test), (X, y), or a mapping of columns. Several (a folder of tables, a pattern such as
    "north*.csv", a list of paths; paths, frames and data sets by name) are a client each.

    `backbone` makes features of images and texts: a network of torch, a function of a list of samples, or a name. A table of
    numbers and categories needs none: the statistics of its columns are folded over its clients, unless an `encoder` is given. A
    word has a place in the encoder only where `release_words` training rows of one client have it; see `TableStatistics`. With a
    `cache`, a folder, features are computed once. Images that are `unreadable` fail, or are skipped with a warning.

    `block_column` says what each row is part of, such as a recording: see `Federation.from_clients`.

    `progress`: as in `gramfold.run`, but that a function is called with the samples done, those of them computed, and all.

    `label_column` names the labels, or makes two classes of a column: "num > 0" is 1 where it holds and 0 elsewhere, and
    "outcome = ill" likewise; "a,b,c" are several columns of 0 and 1, a label each. `targets` and `labels`: as in
    `Federation.split`. With `regression` labels are values. `columns` lists those of numbers and categories to use.

    >>> rows = {"age": [40, 60, None, 50] * 3, "sex": ["f", "f", "m", "m"] * 3, "num": [0, 2, 1, 0] * 3}
    >>> load_data(rows, label_column="num > 0").inputs.shape
    (12, 4)
    """
    if isinstance(data, Dataset):
        return data
    backbone = None if backbone is None else open_backbone(backbone)
    named = {"label_column": label_column, "client_column": client_column, "path_column": path_column}
    which = Columns.of(
        columns, **named, text_column=text_column, split_column=split_column, block_column=block_column, regression=regression,
        targets=targets, names=tuple(labels or ()),
    )  # fmt: skip
    which = in_order(which, data)
    source = source_of(data, which) if backbone is None else _source_for(backbone, data, which)
    if backbone is not None:
        with _shown(progress, source, backbone) as report:
            found = extract(source, backbone, cache, unreadable=unreadable, progress=report)
        return dataset_of(source, found.rows, found.origin, found.kept, whole)
    if source.kind not in (COLUMNS, NUMBERS):
        raise SamplesError(f"{source.name} holds {source.kind}; name a backbone for them, such as {_SUCH_AS[source.kind]}")
    return table_dataset(source, release_words, encoder, whole)


def _source_for(backbone: Backbone, data: Any, which: Columns) -> Source:
    try:
        return source_of(data, which, backbone.kind)
    except ColumnsError as error:
        if not isinstance(backbone, FunctionBackbone) or backbone.kind == TEXTS:
            raise
        raise ColumnsError(f"{error}; if the function takes texts, say so first: function.kind = 'texts'") from None


@contextmanager
def _shown(progress: Progress | bool, source: Source, backbone: Backbone) -> Iterator[Progress | None]:
    """What an extraction calls: what was given, nothing (False), or a display of its own (True)."""
    if not isinstance(progress, bool):
        yield progress
    elif progress:
        with display() as shown, shown.piece(source.name) as show:
            yield lambda done, computed, total: show(f"features of {backbone.name}", done, total)
    else:
        yield None


_SUCH_AS = {
    "images": "--backbone dinov2s (in Python backbone=, which takes a network of torch, too)",
    "texts": "--backbone minilm (in Python backbone=, which takes a function, too)",
}


def features_for(
    head: Head, data: Any, *, columns: Columns | None = None, cache: Path | None = None, unreadable: str = FAIL,
    device: str = "cpu", backbone: str | None = None, progress: Progress | None = None,
) -> tuple[Any, np.ndarray, Source]:  # fmt: skip
    """What a head takes, of raw samples: the rows, which samples they are of, and the samples themselves."""
    if head.origin is None:
        raise SamplesError("this head does not know what makes its features of raw samples; give it features (an .npz file)")
    if head.origin.kind == TABLE:
        name = Path(data).name if isinstance(data, str | Path) else type(data).__name__
        table = raw_table(data)
        source = Source(name, COLUMNS, table)
        return encoded(head.origin, table, name), np.arange(source.n), source
    opened = reopen(head.origin, device, backbone)
    source = source_of(data, replace(columns or Columns(), labelled=False), opened.kind)
    found = extract(source, opened, cache, unreadable=unreadable, progress=progress)
    return found.rows, found.kept, source


def read_data(head: Head, data: str, **options: Any) -> tuple[Any, np.ndarray, Source | None]:
    """The same for a path: an .npz file of features is taken as it is, if it comes from where the head's inputs do."""
    if not Path(data).exists():
        raise FileError(f"no such data: {data}")
    if not data.endswith(".npz"):
        return features_for(head, data, **options)
    arrays, origin = load_features(Path(data))
    if arrays is None:
        return features_for(head, data, **options)
    if head.origin is not None:
        head.origin.require(origin, data)
    return arrays, np.arange(len(arrays)), None


def load_features(path: Path) -> tuple[np.ndarray | None, Origin | None]:
    """The features of an .npz file, labelled or not, and where they come from; series as they are; None where it holds images."""
    if not path.is_file():
        raise FileError(f"no such data file: {path}")
    found = read_arrays(path, ("features", "series", "origin"))
    if "series" in found:
        values = found["series"]
        return values[..., None] if values.ndim == 2 else values, None
    if "features" not in found:
        return None, None
    if not len(found["features"]):
        raise SamplesError(f"{path.name} holds no samples")
    origin = Origin.from_json(str(found["origin"]), path.name) if "origin" in found else None
    return check.samples(found["features"], path.name), origin


def save_features(path: Path, dataset: Dataset) -> None:
    """An .npz file as `load_npz` reads it, that says where the features come from. Rows are copied a block at a time."""
    content: dict[str, np.ndarray] = {"labels": dataset.targets}
    if dataset.labels is not None and isinstance(dataset.labels[0], str):
        content["classes"] = np.array(dataset.labels)
    elif dataset.labels is not None:
        content["labels"] = np.asarray(dataset.labels)[dataset.targets]
    given = {"train": dataset.train, "client": dataset.client, "block": dataset.blocks}
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
        raise FileError(f"cannot write {path}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _write_blocks(archive: zipfile.ZipFile, name: str, values: Any) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        header = {"descr": npy.dtype_to_descr(values.dtype), "fortran_order": False, "shape": tuple(values.shape)}
        npy.write_array_header_2_0(file, header)
        for first in range(0, max(len(values) if values.ndim else 1, 1), ROWS):
            block = values[first : first + ROWS] if values.ndim else values
            file.write(np.ascontiguousarray(block).tobytes())
