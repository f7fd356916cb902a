"""Data by a path on the command line, or whatever object a program has."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import ColumnsError, FileError, LabelsError
from gramfold.sources.base import COLUMNS, IMAGES, TEXTS, Columns, Source
from gramfold.sources.beside import beside_source, is_beside
from gramfold.sources.folder import image_folder
from gramfold.sources.pairs import is_pairs, is_splits, pairs_source, used_splits
from gramfold.sources.reading import TABLES, columns_of, is_frame, read_table
from gramfold.sources.sites import files_of, is_pattern, is_table_file, joined, require_no_images, tables_in
from gramfold.sources.table import table_source
from gramfold.wire.npz import read_arrays

SPREADSHEETS = (".xlsx", ".xls", ".ods")


def is_raw(path: str) -> bool:
    """Whether a path names data that is not numbers yet: a folder, a table, or a pattern of tables."""
    return Path(path).is_dir() or is_table_file(path) or is_pattern(path)


def open_source(path: str, columns: Columns | None = None, kind: str | None = None) -> Source:
    """The samples in a folder of images or of tables, a table, tables that match a pattern, or the `images` of an .npz file."""
    place, columns = Path(path), columns or Columns()
    if is_pattern(path):
        return _open_tables([path], columns, kind)
    if place.is_dir():
        return _open_folder(place, columns, kind)
    if is_table_file(place):
        return table_source(read_table(place), columns, place.name, place.parent, kind)
    if place.suffix.lower() == ".npz":
        return _images_of(place, columns.regression)
    if place.suffix.lower() in SPREADSHEETS:
        raise FileError(f"{path} is a spreadsheet; save it as CSV (UTF-8)")
    raise FileError(f"{path} is no folder of images or tables, and no .csv, .parquet or .npz file")


def _open_folder(place: Path, columns: Columns, kind: str | None) -> Source:
    tables = tables_in(place)
    if tables and kind != IMAGES:
        require_no_images(place, tables)
        return _open_tables([place], columns, kind)
    if columns.regression:
        raise LabelsError(f"the folders in {place} are classes; for regression give a table of paths and values")
    return image_folder(place)


def _open_tables(paths: Sequence[str | Path], columns: Columns, kind: str | None) -> Source:
    """Files, each a client."""
    files = files_of(paths)
    only = Path(paths[0])
    name = (only.name or only.resolve().name) if len(paths) == 1 else _in_short([path.name for path in files.values()])
    return joined(files, lambda client, asked: open_source(str(files[client]), asked, kind), columns, name)


def _in_short(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def source_of(data: Any, columns: Columns | None = None, kind: str | None = None) -> Source:
    """The samples of a path, a frame (pandas, polars, pyarrow), a data set of Hugging Face or of torch, splits of such by name,
    (X, y), a list of texts or images; or of several files, or of any of these by the names of their clients."""
    columns = columns or Columns()
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        return open_source(str(data), columns, kind)
    if is_splits(data):
        return _splits(data, type(data).__name__, columns, kind)
    if isinstance(data, Mapping) and data and all(_is_client(each) for each in data.values()):
        clients = {str(name): each for name, each in data.items()}
        return joined(clients, lambda client, asked: client_source(client, clients[client], asked, kind), columns, "clients")
    if is_pairs(data) or is_beside(data) or is_frame(data) or hasattr(data, "items"):
        return _whole(data, type(data).__name__, columns, kind)
    if not isinstance(data, Iterable):
        raise ColumnsError(
            f"cannot read samples from {type(data).__name__}; give a path, a frame, a mapping of columns, (X, y), or a data "
            "set of torch or Hugging Face"
        )
    items = list(data)
    if items and all(is_table_file(item) for item in items):
        return _open_tables(items, columns, kind)
    found = kind or (TEXTS if items and isinstance(items[0], str) else IMAGES)
    if found == COLUMNS:
        raise ColumnsError("a list is of texts, of images or of files; give a table as a mapping of columns, or a frame")
    return Source("a list", found, items)


def is_table(data: Any) -> bool:
    """Whether it is a table by itself, as a client may be given: a path, a frame, or a mapping of columns."""
    return isinstance(data, str | Path | Mapping) or is_frame(data)


def _is_client(data: Any) -> bool:
    return is_table(data) or is_pairs(data) or is_beside(data)


def client_source(name: str, data: Any, columns: Columns, kind: str | None = None) -> Source:
    """One client's samples, called by the client's name."""
    whose = f"client {name!r}"
    if is_splits(data):
        return _splits(data, whose, columns, kind)
    if isinstance(data, Mapping) or is_frame(data) or is_pairs(data) or is_beside(data):
        return _whole(data, whose, columns, kind)
    place = Path(data)
    if not is_table_file(place):
        raise FileError(f"client {name!r}: {place} is no table; give one of {', '.join(TABLES)}, a frame, or a Dataset")
    return table_source(read_table(place), columns, f"client {name!r} ({place.name})", place.parent, kind)


def _whole(data: Any, name: str, columns: Columns, kind: str | None) -> Source:
    """A frame, a mapping of columns, a data set, or samples beside their labels."""
    if is_beside(data):
        return beside_source(data, name, kind, columns)
    if is_pairs(data):
        return pairs_source(data, name, kind, columns)
    data = data.with_format(None) if hasattr(data, "with_format") else data
    source = table_source(columns_of(data, name), columns, name, None, kind)
    features = getattr(data, "features", None)
    return source if features is None else _with_class_names(source, features, columns)


def _splits(data: Mapping[str, Any], name: str, columns: Columns, kind: str | None) -> Source:
    """Data sets that are parts of one, for training and for testing."""
    used = used_splits(data, name)
    parts = {split: _whole(part, f"{name}[{split!r}]", columns, kind) for split, (part, _) in used.items()}
    source = joined(parts, lambda split, _: replace(parts[split], client=None, train=None), replace(columns, client=None), name)
    clients = [part.client for part in parts.values() if part.client is not None]
    train = np.repeat([training for _, training in used.values()], [part.n for part in parts.values()])
    return replace(source, client=np.concatenate(clients) if len(clients) == len(parts) else None, train=train)


def _with_class_names(source: Source, features: Any, columns: Columns) -> Source:
    """A data set of Hugging Face numbers its classes and names them apart: here they go by name."""
    named = [(name, feature.names) for name, feature in features.items() if type(feature).__name__ == "ClassLabel"]
    wanted = [names for name, names in named if columns.label in (None, name)]
    if source.labels is None or len(wanted) != 1 or source.labels.dtype.kind not in "iu":
        return source
    labels = np.asarray(wanted[0])[source.labels]
    return replace(source, labels=labels)


def _images_of(path: Path, regression: bool) -> Source:
    found = read_arrays(path, ("images", "labels", "classes", "client", "train"))
    if "images" not in found:
        raise FileError(f"{path.name} holds no `images` for a backbone; features need none")
    labels = found.get("labels")
    if labels is not None and "classes" in found:
        names = found["classes"].astype(str)
        if labels.dtype.kind not in "iu" or labels.min(initial=0) < 0 or labels.max(initial=0) >= len(names):
            raise LabelsError(f"{path.name}: labels must be numbers that `classes` names")
        labels = names[labels]
    return Source(path.name, IMAGES, list(found["images"]), labels, found.get("client"), found.get("train"), regression)
