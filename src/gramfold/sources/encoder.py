"""Rows of a table as rows of numbers, by statistics that clients fold.

    number     (x - mean) / spread, zero where it is missing; one column more that says so, if any client misses one
    category   a column for each word that some client has often enough, and one for all other words, if some client has enough
               of those; zeros where it is missing
    date       a number: days since 1970

An encoder holds what it computes with and no more: neither how often a word occurs, nor anything of a column it does not use.
It is in every head and in the task of every run.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold.errors import MALFORMED, ColumnsError, FileError
from gramfold.origin import TABLE, Origin
from gramfold.sources.cells import Cells, Table, is_date, is_missing, number_of
from gramfold.sources.statistics import LARGEST, ColumnStatistics, TableStatistics, check_words

OTHER = "other"
MOST_CATEGORIES = 1000
"""Categories of one column; more are names or free text."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers."""

    name: str
    mean: float
    spread: float
    gaps: bool
    """Whether any client misses one."""
    dates: bool = False
    """Whether they are dates, as days since 1970."""

    @property
    def titles(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.gaps else [self.name]

    def __call__(self, cells: Cells) -> np.ndarray:
        numbers = cells.numbers
        if numbers is None or (cells.dates != self.dates and not np.isnan(numbers).all()):
            raise ColumnsError(self._other(cells))
        known = np.abs(numbers) < LARGEST
        scaled = np.where(known, (np.where(known, numbers, self.mean) - self.mean) / self.spread, 0.0)
        return np.column_stack([scaled, ~known]) if self.gaps else scaled[:, None]

    def _other(self, cells: Cells) -> str:
        """What is said of cells that are of another kind."""
        wrong = [row for row, value in enumerate(cells.values.tolist()) if not is_missing(value) and not self._takes(value)]
        where, remedy = f"in sample {wrong[0]}", "correct that cell"
        if len(wrong) > 1:
            where = f"in {len(wrong)} of {len(cells)} rows, the first is sample {wrong[0]}"
            remedy = "write it as it was there, or leave the column out: it is missing then"
        kind = "date" if self.dates else "number"
        return f"column {self.name!r} holds no {kind} {where}, and {kind}s where its encoder was made; {remedy}"

    def _takes(self, value: Any) -> bool:
        return number_of(value) is not None and is_date(value) == self.dates

    def unknown(self, cells: Cells) -> int:
        return 0

    def check(self) -> None:
        if not (type(self.gaps) is type(self.dates) is bool) or not (abs(self.mean) < LARGEST and 0 < self.spread < LARGEST):
            raise ValueError("no mean, no spread, or no word on gaps")


@dataclass(frozen=True)
class Categories:
    """A column of words."""

    name: str
    words: tuple[str, ...]
    other: bool
    """Whether rarer words have a column, which one may be that is called so already."""

    def __post_init__(self) -> None:
        if len(self.words) > MOST_CATEGORIES:
            raise ColumnsError(
                f"column {self.name!r} has {len(self.words)} categories; leave it out, or name it as text for a backbone"
            )

    @property
    def _titled(self) -> list[str]:
        return [*self.words, *([OTHER] if self.other and OTHER not in self.words else [])]

    @property
    def titles(self) -> list[str]:
        return [f"{self.name} = {word}" for word in self._titled]

    def __call__(self, cells: Cells) -> np.ndarray:
        places, missing = self.places(cells)
        if self.other:
            places = np.where((places < 0) & ~missing, self._titled.index(OTHER), places)
        return np.asarray(places[:, None] == np.arange(len(self._titled)), dtype=np.float64)

    def unknown(self, cells: Cells) -> int:
        places, missing = self.places(cells)
        return int(((places < 0) & ~missing).sum())

    def places(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """The place of each row's word among these, -1 where it is none of them; and which rows have none at all."""
        codes, found = cells.words
        mine = {word: place for place, word in enumerate(self.words)}
        return np.array([*(mine.get(word, -1) for word in found), -1])[codes], codes < 0

    def check(self) -> None:
        check_words(self.words, self.other)


class TableEncoder:
    """Rows of a table as rows of numbers."""

    def __init__(self, parts: Mapping[str, Numbers | Categories]) -> None:
        self.parts = dict(sorted(parts.items()))
        self.names = list(self.parts)
        """The columns it takes."""
        self.columns = [title for part in self.parts.values() for title in part.titles]
        """What each number is."""
        if not self.columns:
            raise ColumnsError("the table has no column with anything in it that an encoder takes")

    @property
    def places(self) -> dict[str, list[int]]:
        """Where the numbers of every column that it takes are."""
        found, first = {}, 0
        for name, part in self.parts.items():
            found[name] = list(range(first, first + len(part.titles)))
            first += len(part.titles)
        return found

    @classmethod
    def of(cls, statistics: TableStatistics) -> "TableEncoder":
        """The encoder of all rows that these are statistics of."""
        used = {name: column for name, column in statistics.by_column.items() if column.unused is None}
        return cls({name: _part(name, column) for name, column in used.items()})

    def __repr__(self) -> str:
        return f"TableEncoder({len(self.parts)} columns -> {len(self.columns)} numbers)"

    def __call__(self, table: Table) -> np.ndarray:
        """n x numbers, float64. A column that the table lacks is missing in all rows; further ones are not looked at."""
        return self.encode(self.read(table))

    def encode(self, cells: Mapping[str, Cells]) -> np.ndarray:
        return np.concatenate([part(cells[name]) for name, part in self.parts.items()], axis=1)

    def unknown(self, cells: Mapping[str, Cells]) -> dict[str, int]:
        """How many rows have a word that this encoder does not know, by column."""
        counts = {name: part.unknown(cells[name]) for name, part in self.parts.items()}
        return {name: count for name, count in counts.items() if count}

    def read(self, table: Table) -> dict[str, Cells]:
        """The columns that it takes, of a table that has some of them."""
        present = [name for name in self.names if name in table]
        if not present:
            listed = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
            raise ColumnsError(f"the table has none of the columns that its encoder takes: {listed}")
        nothing = np.full(len(table[present[0]]), np.nan)
        return {name: Cells(np.asarray(table[name]) if name in table else nothing) for name in self.names}

    @property
    def origin(self) -> Origin:
        described = {"columns": [[name, _described(part)] for name, part in self.parts.items()]}
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]
        return Origin(TABLE, "columns", digest, described)

    @classmethod
    def reopen(cls, origin: Origin) -> "TableEncoder":
        """The encoder that a head's numbers came from."""
        if origin.kind != TABLE:
            raise ColumnsError(f"these features come from {origin}, not from a table")
        try:
            parts = {str(name): _read_part(str(name), dict(fields)) for name, fields in origin.options["columns"]}
        except MALFORMED as error:
            raise ColumnsError(f"cannot read a table's encoder: {error}") from None
        return cls(parts)


def _part(name: str, column: ColumnStatistics) -> Numbers | Categories:
    if column.words is not None:
        return Categories(name, column.words, column.other)
    spread = math.sqrt(column.deviations / max(column.present, 1))
    varies = spread > 1e-12 * abs(column.mean)  # but for rounding
    return Numbers(name, column.mean, spread if varies else 1.0, column.missing > 0, column.dates)


def _described(part: Numbers | Categories) -> dict[str, Any]:
    if isinstance(part, Numbers):
        return {"mean": part.mean, "spread": part.spread, "gaps": part.gaps, **({"dates": True} if part.dates else {})}
    return {"words": list(part.words), "other": part.other}


def _read_part(name: str, fields: dict[str, Any]) -> Numbers | Categories:
    if "counts" in fields:
        raise FileError("this was made by an older gramfold, which kept every word of every table: delete it, and make it again")
    if "words" in fields:
        part: Numbers | Categories = Categories(name, **{**fields, "words": tuple(fields["words"])})
    else:
        part = Numbers(name, **fields)
    part.check()
    return part
