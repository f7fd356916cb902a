"""CSV and Parquet files, and frames (pandas, polars, pyarrow, Hugging Face), as named columns."""

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import ColumnsError, FileError
from gramfold.imports import require
from gramfold.sources.cells import Table, is_missing

PARQUET = (".parquet", ".pq")
TABLES = (".csv", ".tsv", *PARQUET)
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
DECIMAL_COMMA = re.compile(r"\s*([+-]?\d+),(\d+)\s*")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
INDEX = re.compile(r"(Unnamed: \d+|__index_level_\d+__|)")
"""What the rows' numbers are called where a frame was saved with its index."""


def read_table(path: Path) -> Table:
    """The columns of a CSV or Parquet file. Values of a CSV are text; what is a number, its encoder finds out.

    A CSV's values are apart by commas, semicolons, tabs or bars, whichever its first line has most of; where it is not commas, a
    comma is the decimal sign, as spreadsheets write it in half the world.
    """
    if not path.is_file():
        raise FileError(f"no such table: {path}")
    if path.suffix.lower() in PARQUET:
        parquet = require("pyarrow.parquet", "tables", f"reading {path.name}")
        try:
            found = parquet.read_table(path)
        except Exception as error:  # pyarrow's errors share no base with others
            raise FileError(f"{path} is not a readable Parquet file: {error}") from None
        return columns_of(found, path.name)
    header, rows, between = _csv_rows(path)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header) if not _is_index(name, rows, i, path.name)}
    if between != ",":
        columns = {name: [DECIMAL_COMMA.sub(r"\1.\2", value) for value in values] for name, values in columns.items()}
    else:
        columns = {name: _with_points(values, name, path) for name, values in columns.items()}
    return {name: np.array(values, dtype=object) for name, values in columns.items()}


def _csv_rows(path: Path) -> tuple[list[str], list[list[str]], str]:
    """The header, the rows below it, and what is between values."""
    lines = _text(path).splitlines(keepends=True)
    between = max(",;\t|", key=lines[0].count) if lines else ","
    try:
        rows = [row for row in csv.reader(lines, delimiter=between) if row]
    except (ValueError, csv.Error) as error:
        raise FileError(f"{path} is not a readable CSV file: {error}") from None
    if not rows:
        raise ColumnsError(f"{path} is empty; its first line must name the columns")
    header = [name.strip() for name in rows[0]]
    _require_distinct([name for name in header if name], str(path))
    wrong = next((i for i, row in enumerate(rows, 1) if len(row) != len(header)), None)
    if wrong is not None:
        raise ColumnsError(
            f"{path}: row {wrong} has {_values(len(rows[wrong - 1]))}, the header names {len(header)} columns; quote values "
            f"that hold {between!r}"
        )
    return header, rows[1:], between


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}; ask for the right to, or copy it") from None
    if content.startswith(UTF_16):
        raise FileError(f"{path} is UTF-16, not UTF-8 text; save it as CSV in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        guess = content[error.start : error.start + 1].decode("latin-1")
        raise FileError(
            f"{path} is not UTF-8 text; save it as CSV in UTF-8 (line {line} has a byte that would be {guess!r} in latin-1)"
        ) from None


def _require_distinct(names: Sequence[str], whose: str) -> None:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ColumnsError(f"{whose}: two columns have the same name, {twice!r}; rename one")


def _is_index(name: str, rows: Sequence[Sequence[str]], i: int, whose: str) -> bool:
    """Whether a column is no measurement but what numbers the rows, or the nothing behind a line's last comma."""
    if not INDEX.fullmatch(name):
        return False
    if any(row[i].strip() for row in rows):
        _say_index(i, whose)
    return True


def _say_index(i: int, whose: str) -> None:
    warnings.warn(f"{whose}: column {i + 1} has no name (the rows' numbers, saved along?), and is not used", stacklevel=4)


def _with_points(values: list[str], name: str, path: Path) -> list[str]:
    """Numbers with a decimal comma, in quotes where commas part values, with a point instead."""
    if not any("," in value for value in values):
        return values
    commas = [place for place, value in enumerate(values) if DECIMAL_COMMA.fullmatch(value) or THOUSANDS.fullmatch(value.strip())]
    if not commas:
        return values
    for value in values:
        if not (is_missing(value) or DECIMAL_COMMA.fullmatch(value) or NUMBER.fullmatch(value.strip()) or _thousands(value)):
            return values  # a column of words, some of which have commas
    first = next((place for place in commas if _thousands(values[place])), None)
    if first is not None:
        raise ColumnsError(
            f"{path}: sample {first} has {values[first].strip()!r} in column {name!r}, where the comma may part thousands or "
            "decimals; write numbers with a point, and nothing between thousands"
        )
    return [DECIMAL_COMMA.sub(r"\1.\2", value) for value in values]


def _thousands(value: str) -> bool:
    return THOUSANDS.fullmatch(value.strip()) is not None


def _values(n: int) -> str:
    return f"{n} value" if n == 1 else f"{n} values"


def is_frame(data: Any) -> bool:
    """Whether it is a frame of pandas, polars or pyarrow, or a data set of Hugging Face."""
    return hasattr(data, "column_names") or (hasattr(data, "columns") and hasattr(data, "shape"))


def is_complete(frame: Any) -> bool:
    """Whether a frame's columns hold numbers and nothing else."""
    columns = [np.asarray(frame[name]) for name in getattr(frame, "column_names", frame.columns)]
    return all(part.dtype.kind in "iub" or (part.dtype.kind == "f" and bool(np.isfinite(part).all())) for part in columns)


def columns_of(frame: Any, whose: str = "") -> Table:
    """The columns of a frame (pandas, polars, pyarrow), of a data set of Hugging Face, or of a mapping."""
    whose = whose or type(frame).__name__
    if hasattr(frame, "column_names"):  # pyarrow, and `datasets`
        features = getattr(frame, "features", {})
        pictures = {name for name, feature in features.items() if type(feature).__name__ == "Image"}  # decoded when needed
        _require_distinct(frame.column_names, whose)
        names = _measured(frame.column_names, whose)
        return {name: frame[name] if name in pictures else _column(frame[name]) for name in names}
    if hasattr(frame, "columns"):
        titles = [str(name) for name in frame.columns]
        _require_distinct(titles, whose)
        wanted = set(_measured(titles, whose))
        return {str(name): _column(frame[name]) for name in frame.columns if str(name) in wanted}
    table = {str(name): _column(values) for name, values in frame.items()}
    lengths = {name: len(values) for name, values in table.items()}
    odd = next((name for name, n in lengths.items() if n != next(iter(lengths.values()))), None)
    if odd is not None:
        first = next(iter(lengths))
        raise ColumnsError(
            f"{whose}: column {odd!r} has {_values(lengths[odd])}, column {first!r} {lengths[first]}; give one each"
        )
    return table


def _measured(names: Iterable[str], whose: str) -> list[str]:
    """Names without those of an index that was saved along."""
    kept = []
    for i, name in enumerate(names):
        if INDEX.fullmatch(name):
            _say_index(i, whose)
        else:
            kept.append(name)
    return kept


def _column(values: Any) -> np.ndarray:
    """A column as an array; of Python objects unless it holds numbers. Spans of time are days."""
    found = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(found, np.ndarray) and found.dtype.kind in "fiub":
        return found
    if isinstance(found, np.ndarray) and found.dtype.kind == "m":
        return np.asarray(found / np.timedelta64(1, "D"))
    if isinstance(found, np.ndarray) and found.dtype.kind == "M":
        return found.astype("datetime64[us]").astype(object)  # nanoseconds would become whole numbers
    listed = [value.as_py() if hasattr(value, "as_py") else value for value in found]
    column = np.empty(len(listed), dtype=object)
    for i, value in enumerate(listed):  # one by one: values may be arrays themselves
        column[i] = value
    return column
