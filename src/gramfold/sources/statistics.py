"""What a client says about its table: sums of its numbers, and the words that enough of its training rows have.

A word that fewer rows have than `release_words` singles somebody out, and stays where it is: all of those together are the one
category "other", if that has enough rows itself. A column in which (nearly) every row has its own value says whose a row is:
names, free text, phone numbers, dates as text, running numbers. Nothing is said of it but in how many rows it is; where these
are half of all rows or more, it is not used at all.

Sums, unions and a vote by rows: `+` gives the same in any order, and the union of what clients released of their own accord.
The floor is each client's, so it does not matter which clients somebody else would pool.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramfold.errors import MALFORMED, ColumnsError, GramfoldError
from gramfold.sources.cells import Cells, Table

RELEASE_WORDS = 5
"""How many training rows of a client must have a word that may leave it, by default."""
MOST, LARGEST = 2**53, 1e100
"""Bounds of what another client may claim: samples, and numbers in them."""
LONGEST = 100
"""Characters of a word; more are free text, however often they occur."""
ENOUGH = 10
"""Rows that tell whether every one has its own value."""
CHANCE = 1e-6
"""How likely it must be that measured whole numbers are all different, or they were given out one by one."""


@dataclass(frozen=True)
class ColumnStatistics:
    """One column over some rows: a sum of them is that over all rows."""

    present: int = 0
    """Rows with a number, or a word."""
    missing: int = 0
    singular: int = 0
    """Rows of clients where (nearly) every row has its own value, of which nothing else is said."""
    mean: float = 0.0
    deviations: float = 0.0
    """The squares of what is left of the numbers without their mean, summed."""
    words: tuple[str, ...] | None = field(default=None, repr=False)
    """The categories that a client has often enough, sorted; None for a column of numbers."""
    other: bool = False
    """Whether a client has enough rows of rarer ones."""
    dates: bool = False
    """Whether its numbers are dates."""

    @property
    def rows(self) -> int:
        return self.present + self.missing + self.singular

    def __add__(self, more: "ColumnStatistics") -> "ColumnStatistics":
        if self.present and more.present and self.kind != more.kind:
            one, other = sorted((self.kind, more.kind))
            raise ColumnsError(f"it holds {one} at one client and {other} at another")
        present, apart = self.present + more.present, more.mean - self.mean
        share = more.present / max(present, 1)
        words = tuple(sorted({*(self.words or ()), *(more.words or ())}))
        return ColumnStatistics(
            present,
            self.missing + more.missing,
            self.singular + more.singular,
            self.mean + apart * share,
            self.deviations + more.deviations + apart**2 * self.present * share,
            None if self.words is None and more.words is None else words,
            self.other or more.other,
            self.dates or more.dates,
        )

    @property
    def kind(self) -> str:
        return "words" if self.words is not None else "dates" if self.dates else "numbers"

    @property
    def unused(self) -> str | None:
        """Why no encoder takes this column; None if one does."""
        if not self.present and not self.singular:
            return "has nothing in it"
        if self.singular >= self.present:
            return "has a value of its own in (nearly) every row, and says whose a row is"
        if self.words == ():
            return "has no word in enough training rows of a client"
        return None

    def check(self) -> None:
        """Raise unless these can be a column's, for those that come from elsewhere."""
        whole = (self.present, self.missing, self.singular)
        if not all(type(number) is int and 0 <= number < MOST for number in whole):
            raise ValueError("how often something occurs must be a whole number")
        if not (abs(self.mean) < LARGEST and 0 <= self.deviations < LARGEST**2 * MOST):
            raise ValueError(f"a mean or spread beyond {LARGEST:g}")
        if type(self.dates) is not bool or (self.dates and self.words is not None):
            raise ValueError("whether numbers are dates must be true or false")
        check_words(self.words, self.other)

    @classmethod
    def of(cls, cells: Cells, release_words: int = RELEASE_WORDS, *, wanted: bool = False) -> "ColumnStatistics":
        """The statistics of a client's training rows. A running number is a number where its column is `wanted` by name."""
        numbers = cells.numbers
        if numbers is not None:
            found = numbers[np.abs(numbers) < LARGEST]
            missing = len(numbers) - len(found)
            if not wanted and is_running(found):
                return cls(missing=missing, singular=len(found))
            mean = float(found.mean()) if len(found) else 0.0
            return cls(len(found), missing, mean=mean, deviations=float(((found - mean) ** 2).sum()), dates=cells.dates)
        counts = cells.counts()
        present = sum(counts.values())
        missing = len(cells) - present
        if is_singular(counts):
            return cls(missing=missing, singular=present)
        frequent = {word: count for word, count in counts.items() if count >= release_words and len(word) <= LONGEST}
        return cls(present, missing, words=tuple(frequent), other=present - sum(frequent.values()) >= release_words)


def check_words(words: Any, other: Any) -> None:
    """Raise unless these can be a column's categories, and whether there are rarer ones."""
    if type(other) is not bool or (words is None and other):
        raise ValueError("whether there are rarer words must be true or false")
    if words is not None and not all(isinstance(word, str) and len(word) <= LONGEST for word in words):
        raise ValueError(f"categories must be text of at most {LONGEST} characters")
    if words is not None and (not isinstance(words, tuple) or list(words) != sorted(set(words))):
        raise ValueError("categories must be sorted, each of them once")


def is_singular(counts: Mapping[str, int]) -> bool:
    """Whether there are more than half as many words as rows, as there are names, free texts, phone numbers and dates."""
    present = sum(counts.values())
    return present >= ENOUGH and 2 * len(counts) > present


def is_running(found: np.ndarray) -> bool:
    """Whether numbers were given out one by one: whole, all different, and rising from row to row, or denser than chance allows.

    n whole numbers out of r are all different with a chance of r! / (r - n)! / r^n.
    """
    n = len(found)
    if n < ENOUGH or (found != np.rint(found)).any():
        return False
    steps = np.diff(found)
    if (steps > 0).all() or (steps < 0).all():
        return True
    r = float(found.max() - found.min()) + 1
    if not n <= r < n * n or len(np.unique(found)) < n:
        return False
    return math.lgamma(r + 1) - math.lgamma(r - n + 1) - n * math.log(r) < math.log(CHANCE)


@dataclass(frozen=True)
class TableStatistics:
    """What a client says about its columns. `+` folds those of several, aligned by name: what one lacks is missing there.

    >>> north = TableStatistics.of({"age": np.array([50.0, np.nan] * 5), "sex": np.array(["f", "m"] * 5)})
    >>> south = TableStatistics.of({"age": np.array([60.0, 70.0] * 5), "sex": np.array(["m", "f"] * 5)})
    >>> (north + south).by_column["age"].mean
    60.0
    """

    by_column: Mapping[str, ColumnStatistics] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"TableStatistics({len(self.by_column)} columns of {self.rows} rows)"

    @property
    def rows(self) -> int:
        return max((column.rows for column in self.by_column.values()), default=0)

    @classmethod
    def of(cls, table: Table, release_words: int = RELEASE_WORDS, wanted: Sequence[str] = ()) -> "TableStatistics":
        """Of a client's training rows; `wanted` names columns that are used even if they look like running numbers."""
        return cls.of_cells({name: Cells(values) for name, values in table.items()}, release_words, wanted)

    @classmethod
    def of_cells(
        cls, table: Mapping[str, Cells], release_words: int = RELEASE_WORDS, wanted: Sequence[str] = ()
    ) -> "TableStatistics":
        if release_words < 1:
            raise ColumnsError(f"release_words is how many rows must have a word, at least 1; got {release_words}")
        return cls({name: ColumnStatistics.of(cells, release_words, wanted=name in wanted) for name, cells in table.items()})

    def __add__(self, more: "TableStatistics") -> "TableStatistics":
        nothing, nothing_more = ColumnStatistics(missing=self.rows), ColumnStatistics(missing=more.rows)
        folded = {}
        for name in dict.fromkeys((*self.by_column, *more.by_column)):
            try:
                folded[name] = self.by_column.get(name, nothing) + more.by_column.get(name, nothing_more)
            except GramfoldError as error:
                raise type(error)(f"column {name!r} does not fold: {error}; make it the same everywhere") from None
        return TableStatistics(folded)

    def unused(self) -> dict[str, str]:
        """The columns that no encoder takes, and why."""
        return {name: why for name, column in self.by_column.items() if (why := column.unused)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a message."""
        return {"columns": json.loads(json.dumps([[name, vars(column)] for name, column in self.by_column.items()]))}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "TableStatistics":
        try:
            made = {}
            for name, fields in given["columns"]:
                words = fields.get("words")
                made[str(name)] = ColumnStatistics(**{**fields, "words": None if words is None else tuple(words)})
                made[str(name)].check()
        except MALFORMED as error:
            raise ColumnsError(f"cannot read a table's statistics: {error}") from None
        return cls(made)
