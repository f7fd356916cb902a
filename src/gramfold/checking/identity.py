"""Columns that are not what a model can use: IDs, names, free text, dates, constants, nothing at all, numbers with slips."""

import re
from collections.abc import Mapping

import numpy as np

from gramfold.checking.finding import NOTICE, SERIOUS, Finding
from gramfold.checking.table import Column
from gramfold.sources.cells import as_numbers, is_date, is_missing
from gramfold.sources.statistics import ColumnStatistics

DATE = re.compile(r"\s*(\d{1,4}[-./ ]\s?\d{1,2}[-./ ]\s?\d{1,4}|\d{1,2}\.? ?[^\W\d]{3,}\.? \d{2,4})(\s.*)?")
MOST = 0.9
"""The part of a column's cells that must look like dates."""
LOOKED_AT = 200


def identity(name: str, columns: Mapping[str, Column]) -> list[Finding]:
    """What is to be said of a column, of all clients at once where it is the same for all."""
    there = {client: column for client, column in columns.items() if column.present}
    if not there:
        return [Finding("missing", NOTICE, "has nothing in it", "leave it out", column=name)]
    found = [
        Finding("missing", NOTICE, "has nothing in it, where others have values", "it is missing there", client, name)
        for client, column in columns.items() if not column.present
    ]  # fmt: skip
    found += [
        Finding("mixed", SERIOUS, f"holds numbers, but for {len(column.slips)} cells (first in training row {column.slips[0]})",
                "correct those cells, or leave them empty; as it is, every number is a word", client, name)
        for client, column in there.items() if len(column.slips)
    ]  # fmt: skip
    dates = [client for client, column in there.items() if _is_date(column)]
    if 2 * len(dates) > len(there):
        return [*found, _date(name, there[dates[0]])]
    singular = [client for client, column in there.items() if ColumnStatistics.of(column.cells).singular]
    if sum(there[client].present for client in singular) * 2 >= sum(column.present for column in there.values()):
        what = "has a value of its own in (nearly) every row: an ID, a name, or free text"
        return [
            *found,
            Finding(
                "id",
                NOTICE,
                what,
                "it is not used; leave it out, or list it among the columns if it is a number that was measured",
                column=name,
            ),
        ]
    constant = [client for client, column in there.items() if _is_constant(column)]
    if len(constant) == len(there) and len({_value(column) for column in there.values()}) == 1:
        return [*found, Finding("constant", NOTICE, "has one value throughout", "leave it out", column=name)]
    return found + [
        Finding("constant", NOTICE, "has one value throughout, where others vary", "was it recorded there?", client, name)
        for client in constant if columns[client].present >= 10
    ]  # fmt: skip


def _is_constant(column: Column) -> bool:
    if column.present < len(column.cells):
        return False  # whether it is there at all is a second value
    return len(np.unique(column.numbers)) == 1 if column.numbers is not None else len(column.counts) == 1


def _value(column: Column) -> object:
    return float(column.numbers[0]) if column.numbers is not None else next(iter(column.counts))


def _is_date(column: Column) -> bool:
    cells = [value for value in column.cells.values[:LOOKED_AT].tolist() if not is_missing(value)]
    if not cells or column.cells.values.dtype.kind != "O":
        return False
    looks = [is_date(value) or (isinstance(value, str) and DATE.fullmatch(value) is not None) for value in cells]
    return sum(looks) >= MOST * len(cells)


def _date(name: str, column: Column) -> Finding:
    if as_numbers(column.cells.values) is not None:
        return Finding(
            "date",
            NOTICE,
            "holds dates, which are taken as days since 1970",
            "leave it out unless time itself predicts",
            column=name,
        )
    return Finding(
        "date", NOTICE, "looks like dates, which are taken as words", "write them as 1980-12-31, or leave it out", column=name
    )
