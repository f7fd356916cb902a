"""Which sites' tables fit together. One encoder is made of all their statistics: no site's may spoil it for the others."""

import math
from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any

from gramfold.checking import check_statistics
from gramfold.errors import RemoteError
from gramfold.remote.majority import inflating, minority
from gramfold.sources import TableStatistics
from gramfold.sources.encoder import MOST_CATEGORIES
from gramfold.sources.statistics import ColumnStatistics

MOST_COLUMNS = 10_000
MOST_TEXT = 2**20
"""Characters in the names of a site's columns and categories, which all sites are sent."""
FAR = 1e6
"""How much larger than most sites' a site's numbers may be: more would cost the others' the digits they differ in."""
ENOUGH = 3
"""Sites with numbers in a column, for most of them to say how large these are."""


def check(table: Mapping[str, Any], samples: int) -> None:
    """Raise unless these can be the statistics of a site with so many training samples."""
    columns = TableStatistics.from_dict(table).by_column
    sizes = [len(column.words or ()) for column in columns.values()]
    if len(sizes) > MOST_COLUMNS or max(sizes, default=0) > MOST_CATEGORIES:
        raise RemoteError(f"a table of more than {MOST_COLUMNS} columns, or {MOST_CATEGORIES} categories in one")
    if sum(len(word) for name, column in columns.items() for word in (name, *(column.words or ()))) > MOST_TEXT:
        raise RemoteError(f"names of columns and categories of more than {MOST_TEXT} characters")
    rows = {column.rows for column in columns.values()}
    if len(rows) > 1 or max(rows, default=0) > samples:
        raise RemoteError("statistics of more samples than it has, or of more in one column than in another")


def remarks(tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What looks wrong in the sums of tables that fit together, such as another unit: a line each."""
    return [str(found) for found in check_statistics({name: TableStatistics.from_dict(table) for name, table in tables.items()})]


def odd_ones_out(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The sites whose tables do not fit the others', and why."""
    columns = {name: TableStatistics.from_dict(table).by_column for name, table in tables.items()}
    odd = _with_other_columns(columns)
    for title in sorted({title for name, mine in columns.items() if name not in odd for title in mine}):
        odd |= _odd_in(title, {name: mine[title] for name, mine in columns.items() if name not in odd and title in mine})
    return odd


def _with_other_columns(columns: Mapping[str, Mapping[str, ColumnStatistics]]) -> dict[str, str]:
    """The sites that have more columns to themselves than in common with others. Columns go by name, and what a site lacks is
    missing there: nobody else's make the encoder more than twice as large as one's own. Of two sites neither is odd."""
    if len(columns) < ENOUGH:
        return {}
    held = Counter(title for mine in columns.values() for title in mine)
    own = {name: sum(held[title] == 1 for title in mine) for name, mine in columns.items()}
    return {
        name: f"{own[name]} of its {len(mine)} columns are at no other site: name those to use in `columns`"
        for name, mine in columns.items()
        if 2 * own[name] > len(mine)
    }


def _odd_in(title: str, sites: Mapping[str, ColumnStatistics]) -> dict[str, str]:
    """The same for one column; a site that has nothing in it has no say."""
    there = {name: column for name, column in sites.items() if column.present}
    odd = minority(f"column {title!r}", {name: "words" if it.words is not None else "numbers" for name, it in there.items()})
    sizes = {name: _size(column) for name, column in there.items() if name not in odd and column.words is None}
    usual = [size for size in sizes.values() if size]
    if len(usual) >= ENOUGH:
        odd |= {
            name: f"its numbers in column {title!r} are more than {FAR:g} times larger than most sites'; is it another unit?"
            for name, size in sizes.items()
            if size > FAR * median(usual)
        }
    words = {name: column.words for name, column in there.items() if name not in odd and column.words is not None}
    for name, own in inflating(words, MOST_CATEGORIES).items():
        odd[name] = f"with its words column {title!r} has more than {MOST_CATEGORIES} categories, {own} of them its own"
    return odd


def _size(column: ColumnStatistics) -> float:
    return abs(column.mean) + math.sqrt(column.deviations / column.present)
