"""Tables: CSV and Parquet files, pandas and polars frames, Hugging Face data sets, as named columns."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.extras import require
from gramfold.sources.base import COLUMNS, IMAGES, TEXTS, Columns, Source, split_of
from gramfold.sources.cells import Table, as_numbers

USUAL = {
    "label": ("label", "labels", "class", "target", "y"),
    "client": ("client", "site", "hospital", "shop", "user"),
    "path": ("path", "image", "img", "file", "filename"),
    "text": ("text", "sentence", "utterance"),
    "split": ("split", "train"),
}
"""The names that columns usually have, by what they are."""
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"\s*([+-]?\d+),(\d+)\s*")


def read_table(path: Path) -> Table:
    """The columns of a CSV or Parquet file. Values of a CSV are text; what is a number, its encoder finds out.

    A CSV's values are apart by commas, tabs or semicolons, whichever its first line has most of; where it is semicolons, a comma
    is the decimal sign, as spreadsheets write it in half the world.
    """
    if not path.is_file():
        raise GramfoldError(f"no such table: {path}")
    if path.suffix.lower() in (".parquet", ".pq"):
        parquet = require("pyarrow.parquet", "tables", "reading Parquet")
        try:
            return columns_of(parquet.read_table(path))
        except Exception as error:  # pyarrow's errors share no base with others
            raise GramfoldError(f"{path} is not a readable Parquet file: {error}") from None
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            between = max(",;\t", key=file.readline().count)
            file.seek(0)
            rows = list(csv.reader(file, delimiter=between))
    except UnicodeDecodeError:
        raise GramfoldError(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from None
    except (OSError, ValueError, csv.Error) as error:
        raise GramfoldError(f"{path} is not a readable CSV file: {error}") from None
    rows = [row for row in rows if row]
    if not rows:
        raise GramfoldError(f"{path} is empty; its first line must name the columns")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header):
        raise GramfoldError(f"{path}: two columns have the same name; rename one")
    wrong = next((i for i, row in enumerate(rows, 1) if len(row) != len(header)), None)
    if wrong is not None:
        raise GramfoldError(f"{path}: row {wrong} has {len(rows[wrong - 1])} values, the header names {len(header)} columns")
    if between == ";":
        rows[1:] = [[DECIMAL_COMMA.sub(r"\1.\2", value) for value in row] for row in rows[1:]]
    return {name: np.array([row[i] for row in rows[1:]], dtype=object) for i, name in enumerate(header)}


def columns_of(frame: Any) -> Table:
    """The columns of a frame (pandas, polars, pyarrow), of a data set of Hugging Face, or of a mapping."""
    if hasattr(frame, "column_names"):  # pyarrow, and `datasets`
        features = getattr(frame, "features", {})
        pictures = {name for name, feature in features.items() if type(feature).__name__ == "Image"}  # decoded when needed
        return {name: frame[name] if name in pictures else _column(frame[name]) for name in frame.column_names}
    if hasattr(frame, "columns"):
        return {str(name): _column(frame[name]) for name in frame.columns}
    return {str(name): _column(values) for name, values in frame.items()}


def _column(values: Any) -> np.ndarray:
    """A column as an array; of Python objects unless it holds numbers. Dates are days since 1970, spans of time days too."""
    found = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(found, np.ndarray) and found.dtype.kind in "fiub":
        return found
    if isinstance(found, np.ndarray) and found.dtype.kind in "mM":
        return np.asarray((found if found.dtype.kind == "m" else found - np.datetime64(0, "D")) / np.timedelta64(1, "D"))
    listed = [value.as_py() if hasattr(value, "as_py") else value for value in found]
    column = np.empty(len(listed), dtype=object)
    for i, value in enumerate(listed):  # one by one: values may be arrays themselves
        column[i] = value
    return column


def table_source(table: Table, columns: Columns, name: str, folder: Path | None = None, kind: str | None = None) -> Source:
    """A table's samples. Paths are taken from `folder`, where they are not absolute. `kind`: what a backbone will take."""
    wanted_of = USUAL if columns.labelled else ("path", "text")
    found = {what: _named(table, what, getattr(columns, what), name) if what in wanted_of else None for what in USUAL}
    if kind is None:
        kind = IMAGES if found["path"] else TEXTS if found["text"] else COLUMNS
    roles = [column for what, column in found.items() if column is not None and what in ("label", "client", "split")]
    if len(set(roles)) < len(roles):
        raise GramfoldError(f"{name}: a column is named twice, as label, client or split; each has its own")
    labels, client = (_words(table, found[what]) for what in ("label", "client"))
    if found["label"] is not None and columns.regression:
        labels = as_numbers(table[found["label"]])
        if labels is None:
            raise GramfoldError(f"{name}: column {found['label']!r} holds more than numbers; regression takes numbers")
    train = None if found["split"] is None else split_of(table[found["split"]].tolist(), name)
    if kind == COLUMNS:
        given = columns.only or [column for column in table if column not in found.values()]
        missing = [column for column in given if column not in table]
        if missing:
            raise GramfoldError(f"{name} has no column {missing[0]!r}; it has: {_listed(table)}")
        if found["label"] in given:
            raise GramfoldError(
                f"{name}: column {found['label']!r} holds the labels; a model that is given them has nothing to learn"
            )
        if not given:
            raise GramfoldError(f"{name} has no columns but those that say what a sample is; it has: {_listed(table)}")
        chosen = {column: table[column] for column in given}
        return Source(name, kind, chosen, labels, client, train, columns.regression, columns.only)
    wanted = found["path"] if kind == IMAGES else found["text"]
    if wanted is None:
        what = "path" if kind == IMAGES else "text"
        raise GramfoldError(f"{name} has no column of {kind}; name it with --{what}-column; it has: {_listed(table)}")
    items: Any = table[wanted]
    if isinstance(items, np.ndarray):
        items = items.tolist()
        missing_at = next(
            (i for i, value in enumerate(items) if value is None or (isinstance(value, float) and value != value)), None
        )
        if missing_at is not None:
            raise GramfoldError(f"{name}: sample {missing_at} has nothing in column {wanted!r}; leave it out")
        if kind == IMAGES:
            items = [(folder or Path()) / value if isinstance(value, str) else value for value in items]
    return Source(name, kind, items, labels, client, train, columns.regression)


def _named(table: Table, what: str, given: str | None, name: str) -> str | None:
    if given is not None:
        if given not in table:
            raise GramfoldError(f"{name} has no column {given!r}; it has: {_listed(table)}")
        return given
    lower = {column.lower(): column for column in table}
    return next((lower[usual] for usual in USUAL[what] if usual in lower), None)


def _words(table: Table, column: str | None) -> np.ndarray | None:
    """A column of labels or clients; text that is all numbers becomes numbers."""
    if column is None:
        return None
    values = table[column]
    if values.dtype != object:
        return values
    listed = [None if value == "" else value for value in values.tolist()]
    if all((isinstance(value, str) and value.strip().lstrip("-").isdigit()) or type(value) is int for value in listed):
        return np.array(listed).astype(np.int64)
    if all(isinstance(value, str) and NUMBER.fullmatch(value.strip()) for value in listed):
        return np.array(listed).astype(np.float64)
    return np.array(listed, dtype=object)


def _listed(table: Table) -> str:
    names = list(table)
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
