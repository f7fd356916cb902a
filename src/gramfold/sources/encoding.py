"""Raw rows of a table as the numbers that a head takes. Wherever a head is asked, it is here that they become those."""

import difflib
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import ColumnsError, GramfoldError, SamplesError
from gramfold.origin import Origin, known_rows
from gramfold.sources.cells import Table
from gramfold.sources.encoder import TableEncoder
from gramfold.sources.reading import TABLES, columns_of, is_frame, read_table
from gramfold.sources.sites import is_table_file


def is_raw_table(data: Any) -> bool:
    """Whether it is rows of a table as people have them: a path, a frame, a mapping of columns, one row, or a list of rows."""
    if isinstance(data, str | Path | Mapping) or is_frame(data) or _is_series(data):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and all(isinstance(row, Mapping) for row in data)


def raw_table(data: Any, whose: str = "the table") -> Table:
    """Its columns."""
    if isinstance(data, str | Path):
        if not is_table_file(data):
            raise ColumnsError(f"{data} is no table; give one of {', '.join(TABLES)}, a frame, a mapping of columns, or rows")
        return read_table(Path(data))
    if _is_series(data):
        data = data.to_dict()
    if isinstance(data, Mapping) and data and not any(_is_column(values) for values in data.values()):
        data = [data]  # a single row
    if isinstance(data, Mapping) or is_frame(data):
        return columns_of(data, whose)
    titles = dict.fromkeys(str(title) for row in data for title in row)
    rows = [{str(title): value for title, value in row.items()} for row in data]
    return {title: _cells([row.get(title) for row in rows], title, whose) for title in titles}


def encoded(origin: Origin, data: Any, whose: str = "the table") -> np.ndarray:
    """The rows as the encoder of that origin makes them; what is remarkable about them is said in one warning."""
    rows, remark = encoded_with_remark(origin, data, whose)
    if remark:
        warnings.warn(remark, stacklevel=5)
    return rows


def encoded_with_remark(origin: Origin, data: Any, whose: str = "the table") -> tuple[np.ndarray, str]:
    """The rows, and a line about columns that the encoder misses, which are missing in every row, and about words that it does
    not know; "" where there is nothing to say. Columns that it does not use are not looked at."""
    encoder, table = _encoder_of(origin), raw_table(data, whose)
    name = Path(data).name if isinstance(data, str | Path) else whose
    if not max(map(len, table.values()), default=0):
        raise SamplesError(f"{name} holds no samples")
    try:
        cells = encoder.read(table)
        rows, unknown = encoder.encode(cells), encoder.unknown(cells)
    except GramfoldError as error:
        raise type(error)(f"{name}: {error}") from None
    n = len(rows)
    said = [_lacking(encoder, table)]
    said += [
        f"in {count} of {n} rows column {title!r} has a word that this head does not know" for title, count in unknown.items()
    ]
    return known_rows(rows, origin), f"{name}: {'; '.join(filter(None, said))}" if any(said) else ""


def places_of(origin: Origin) -> dict[str, list[int]]:
    """The columns that the encoder of that origin takes, and where their numbers are."""
    return _encoder_of(origin).places


@lru_cache(maxsize=64)
def _encoder_of(origin: Origin) -> TableEncoder:
    return TableEncoder.reopen(origin)


def _lacking(encoder: TableEncoder, table: Table) -> str:
    """What is said of columns that are not there, with those that may be them under another name."""
    lacking = [title for title in encoder.names if title not in table]
    if not lacking:
        return ""
    others = {title.lower(): title for title in table if title not in encoder.names}
    named = []
    for title in lacking[:8]:
        near = difflib.get_close_matches(title.lower(), others, 1, 0.8)
        named.append(f"{title!r}" + (f" (is {others[near[0]]!r} it?)" if near else ""))
    if len(lacking) == 1:
        return f"it has no column {named[0]}, which is taken as missing"
    return f"it has no columns {', '.join(named)}{', ...' if len(lacking) > 8 else ''}, which are taken as missing"


def _is_series(data: Any) -> bool:
    """One row of a frame of pandas."""
    return hasattr(data, "index") and hasattr(data, "to_dict") and not is_frame(data)


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str | bytes)


def _cells(values: list[Any], title: str, whose: str) -> np.ndarray:
    odd = next((i for i, value in enumerate(values) if _is_column(value)), None)
    if odd is not None:
        raise ColumnsError(f"{whose}: sample {odd} has a {type(values[odd]).__name__} in column {title!r}; give one value")
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
