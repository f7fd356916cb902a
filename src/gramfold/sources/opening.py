"""Data by a path on the command line, or whatever object a program has."""

from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.federation.npz import read_arrays
from gramfold.sources.base import COLUMNS, IMAGES, TEXTS, Columns, Source
from gramfold.sources.folder import image_folder
from gramfold.sources.table import columns_of, read_table, table_source

TABLES = (".csv", ".tsv", ".parquet", ".pq")


def is_raw(path: str) -> bool:
    """Whether a path names data that is not numbers yet: a folder, or a table."""
    return Path(path).is_dir() or Path(path).suffix.lower() in TABLES


def open_source(path: str, columns: Columns | None = None, kind: str | None = None) -> Source:
    """The samples in a folder of images, a table, or the `images` of an .npz file."""
    place, columns = Path(path), columns or Columns()
    if place.is_dir():
        if columns.regression:
            raise GramfoldError(f"the folders in {path} are classes; for regression give a table of paths and values")
        return image_folder(place)
    if place.suffix.lower() in TABLES:
        return table_source(read_table(place), columns, place.name, place.parent, kind)
    if place.suffix.lower() == ".npz":
        return _images_of(place, columns.regression)
    raise GramfoldError(f"{path} is no folder of images, and no .csv, .parquet or .npz file")


def source_of(data: Any, columns: Columns | None = None, kind: str | None = None) -> Source:
    """The samples of a path, a frame (pandas, polars, pyarrow), a data set of Hugging Face, or a list of texts or images."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        return open_source(str(data), columns, kind)
    if hasattr(data, "columns") or hasattr(data, "column_names") or hasattr(data, "items"):
        table = columns_of(data)
        features = getattr(data, "features", None)
        source = table_source(table, columns or Columns(), type(data).__name__, None, kind)
        return source if features is None else _with_class_names(source, features, columns or Columns())
    items = list(data)
    found = kind or (TEXTS if items and isinstance(items[0], str) else IMAGES)
    if found == COLUMNS:
        raise GramfoldError("a list is of texts or of images; give a table as a mapping of columns, or a frame")
    return Source("a list", found, items)


def _with_class_names(source: Source, features: Any, columns: Columns) -> Source:
    """A data set of Hugging Face numbers its classes and names them apart: here they go by name."""
    named = [(name, feature.names) for name, feature in features.items() if type(feature).__name__ == "ClassLabel"]
    wanted = [names for name, names in named if columns.label in (None, name)]
    if source.labels is None or len(wanted) != 1 or source.labels.dtype.kind not in "iu":
        return source
    labels = np.asarray(wanted[0])[source.labels]
    return Source(source.name, source.kind, source.items, labels, source.client, source.train)


def _images_of(path: Path, regression: bool) -> Source:
    found = read_arrays(path, ("images", "labels", "classes", "client", "train"))
    if "images" not in found:
        raise GramfoldError(f"{path.name} holds no `images` for a backbone; features need none")
    labels = found.get("labels")
    if labels is not None and "classes" in found:
        names = found["classes"].astype(str)
        if labels.dtype.kind not in "iu" or labels.min(initial=0) < 0 or labels.max(initial=0) >= len(names):
            raise GramfoldError(f"{path.name}: labels must be numbers that `classes` names")
        labels = names[labels]
    return Source(path.name, IMAGES, list(found["images"]), labels, found.get("client"), found.get("train"), regression)
