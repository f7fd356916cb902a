"""Tables as samples: which of their columns are labels, owners, paths, texts, or measurements."""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import ColumnsError, LabelsError
from gramfold.sources.base import COLUMNS, IMAGES, NUMBERS, TEXTS, Columns, Source, split_of
from gramfold.sources.cells import Table, as_numbers
from gramfold.sources.comparing import Comparison

USUAL = {
    "label": ("label", "labels", "class", "target", "y"),
    "client": ("client", "site", "hospital", "shop", "user"),
    "path": ("path", "image", "img", "file", "filename"),
    "text": ("text", "sentence", "utterance"),
    "split": ("split", "train"),
    "block": (),
}
"""The names that columns usually have, by what they are."""
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")


def table_source(table: Table, columns: Columns, name: str, folder: Path | None = None, kind: str | None = None) -> Source:
    """A table's samples. Paths are taken from `folder`, where they are not absolute. `kind`: what a backbone will take."""
    wanted_of = USUAL if columns.labelled else ("path", "text")
    compared = _comparison(table, columns)
    given_of = {what: getattr(columns, what) for what in USUAL} | ({} if compared is None else {"label": compared.column})
    found = {what: _named(table, what, given_of[what], name) if what in wanted_of else None for what in USUAL}
    if kind is None:
        kind = IMAGES if found["path"] else TEXTS if found["text"] else COLUMNS
    roles = [column for what, column in found.items() if column is not None and what in ("label", "client", "split", "block")]
    if len(set(roles)) < len(roles):
        raise ColumnsError(f"{name}: a column is named twice, as label, client, split or block; each has its own")
    labels, client = (_words(table, found[what]) for what in ("label", "client"))
    if compared is not None and columns.labelled:
        labels = compared(table[compared.column], name)
    elif found["label"] is not None and columns.regression:
        labels = as_numbers(table[found["label"]])
        if labels is None:
            raise LabelsError(f"{name}: column {found['label']!r} holds more than numbers; regression takes numbers")
    if labels is not None and found["label"] is not None:
        _require_no_gap(labels, found["label"], name)
    block = None if found["block"] is None else table[found["block"]]
    train = None if found["split"] is None else split_of(table[found["split"]].tolist(), name)
    rows = _vectors(table, columns.only or [column for column in table if column not in found.values()], name)
    if rows is not None and (kind == COLUMNS or columns.only):
        return Source(name, NUMBERS, rows, labels, client, train, columns.regression, block=block)
    if kind == COLUMNS:
        given = columns.only or [column for column in table if column not in found.values()]
        for column in () if columns.several else given:
            require_column(table, column, name)
        given = [column for column in given if column in table]
        if found["label"] in given:
            raise LabelsError(
                f"{name}: column {found['label']!r} holds the labels; a model that is given them has nothing to learn"
            )
        if not given and columns.only:
            raise ColumnsError(f"{name} has none of the columns to use ({', '.join(columns.only[:8])}); it has: {_listed(table)}")
        if not given:
            raise ColumnsError(f"{name} has no columns but those that say what a sample is; it has: {_listed(table)}")
        chosen = {column: table[column] for column in given}
        return Source(name, kind, chosen, labels, client, train, columns.regression, columns.only, block)
    wanted = found["path"] if kind == IMAGES else found["text"]
    if wanted is None:
        what = "path" if kind == IMAGES else "text"
        raise ColumnsError(f"{name} has no column of {kind}; name it with --{what}-column; it has: {_listed(table)}")
    items: Any = table[wanted]
    if isinstance(items, np.ndarray):
        items = items.tolist()
        missing_at = next(
            (i for i, value in enumerate(items) if value is None or (isinstance(value, float) and value != value)), None
        )
        if missing_at is not None:
            raise ColumnsError(f"{name}: sample {missing_at} has nothing in column {wanted!r}; leave it out")
        if kind == IMAGES:
            items = [(folder or Path()) / value if isinstance(value, str) else value for value in items]
    return Source(name, kind, items, labels, client, train, columns.regression, block=block)


def _vectors(table: Table, names: Sequence[str], whose: str) -> np.ndarray | None:
    """The one column to use where each of its cells holds a row of numbers, such as an embedding; None for any other."""
    cells = table.get(names[0]) if len(names) == 1 else None
    if cells is None or not len(cells) or not isinstance(cells[0], list | tuple | np.ndarray):
        return None
    sizes = [np.shape(cell) for cell in cells]
    odd = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if odd is not None:
        raise ColumnsError(f"{whose}: sample {odd} has shape {sizes[odd]} in column {names[0]!r}, sample 0 {sizes[0]}")
    return np.stack([np.asarray(cell) for cell in cells])


def _require_no_gap(labels: np.ndarray, column: str, whose: str) -> None:
    listed = labels.tolist() if labels.ndim == 1 else []
    gap = next((i for i, label in enumerate(listed) if label is None or label != label), None)
    if gap is not None:
        raise LabelsError(f"{whose}: sample {gap} has no label: nothing in column {column!r}; leave it out")


def _named(table: Table, what: str, given: str | None, name: str) -> str | None:
    if given is not None:
        require_column(table, given, name)
        return given
    lower = {column.lower(): column for column in table}
    return next((lower[usual] for usual in USUAL[what] if usual in lower), None)


def _comparison(table: Table, columns: Columns) -> Comparison | None:
    """What makes labels of a column, where they are not simply what it holds."""
    if columns.label is None or columns.label in table or not columns.labelled:
        return None
    found = Comparison.read(columns.label)
    if found is not None and columns.regression:
        raise LabelsError(f"{columns.label!r} makes two classes, and regression predicts values; leave one out")
    return found


def require_column(table: Table, column: str, whose: str) -> None:
    """Raise, with the nearest name that is there, unless the table has the column."""
    if column not in table:
        lower = {name.lower(): name for name in table}
        near = difflib.get_close_matches(column.lower(), lower, 1)
        hint = f" (did you mean {lower[near[0]]!r}?)" if near else ""
        raise ColumnsError(f"{whose} has no column {column!r}{hint}; it has: {_listed(table)}")


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
