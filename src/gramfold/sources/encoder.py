"""Tables with missing values and categories as numbers, by statistics that are sums and unions over clients.

    number     (x - mean) / spread, zero where it is missing; one column more that says so, if any client misses one
    category   a column for each category that any client has often enough, all zero for rare, unknown and missing ones
    date       a number: days since 1970

Mean and spread come from n, the mean and the sum of squared deviations of each column; categories from counts. Each client
sends those for its own rows, and `+` folds them: the encoder is the same as from all rows in one place.
"""

import hashlib
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from gramfold.errors import MALFORMED, GramfoldError
from gramfold.origin import TABLE, Origin

Table = Mapping[str, np.ndarray]
NUMBER, CATEGORY = "number", "category"
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
RARE = 2
"""A category with fewer samples than this, over all clients, gets no column: it would single somebody out."""
MOST, LARGEST = 2**53, 1e100
"""Bounds of what another client may claim: samples, and numbers in them."""
MOST_CATEGORIES = 1000
"""Categories of one column; more are names or free text."""


@dataclass(frozen=True)
class ColumnStatistics:
    """One column over some rows: a sum of them is that over all rows."""

    present: int = 0
    missing: int = 0
    mean: float = 0.0
    deviations: float = 0.0
    """The squares of what is left of the numbers without their mean, summed."""
    counts: Mapping[str, int] | None = None
    """How often each category occurs; None for a column of numbers."""

    def __add__(self, other: "ColumnStatistics") -> "ColumnStatistics":
        if not self.present or not other.present:  # a column that somebody lacks altogether has no kind there
            kept = self if self.present else other
            return replace(kept, missing=self.missing + other.missing)
        if (self.counts is None) != (other.counts is None):
            raise GramfoldError("it holds numbers at one client and words at another")
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = {key: self.counts.get(key, 0) + other.counts.get(key, 0) for key in sorted({*self.counts, *other.counts})}
        present, apart = self.present + other.present, other.mean - self.mean
        mean = self.mean + apart * other.present / present
        deviations = self.deviations + other.deviations + apart**2 * self.present * other.present / present
        return ColumnStatistics(present, self.missing + other.missing, mean, deviations, counts)

    def check(self) -> None:
        """Raise unless these can be a column's, for those that come from elsewhere."""
        counts = {} if self.counts is None else dict(self.counts)
        whole = (self.present, self.missing, *counts.values())
        if not all(type(number) is int and 0 <= number < MOST for number in whole) or not all(
            isinstance(key, str) for key in counts
        ):
            raise ValueError("how often something occurs must be a whole number")
        if not (abs(self.mean) < LARGEST and 0 <= self.deviations < LARGEST**2 * MOST):
            raise ValueError(f"a mean or spread beyond {LARGEST:g}")
        if self.counts is not None and sum(counts.values()) != self.present:
            raise ValueError("categories that do not add up")

    @classmethod
    def of(cls, values: np.ndarray) -> "ColumnStatistics":
        numbers = as_numbers(values)
        if numbers is not None:
            found = numbers[np.isfinite(numbers)]
            mean = float(found.mean()) if len(found) else 0.0
            return cls(len(found), len(numbers) - len(found), mean, float(((found - mean) ** 2).sum()))
        words = as_words(values)
        names, counts = np.unique([word for word in words if word is not None], return_counts=True)
        return cls(int(counts.sum()), words.count(None), counts=dict(zip(names.tolist(), counts.tolist(), strict=True)))


@dataclass(frozen=True)
class TableStatistics:
    """What a client says about its columns. `+` folds those of several.

    >>> north = TableStatistics.of({"age": np.array([50.0, np.nan]), "sex": np.array(["f", "m"])})
    >>> south = TableStatistics.of({"age": np.array([60.0, 70.0]), "sex": np.array(["m", "f"])})
    >>> (north + south).encoder().columns
    ['age', 'age is missing', 'sex = f', 'sex = m']
    """

    by_column: Mapping[str, ColumnStatistics] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> "TableStatistics":
        return cls({name: ColumnStatistics.of(values) for name, values in table.items()})

    def __add__(self, other: "TableStatistics") -> "TableStatistics":
        if not self.by_column or not other.by_column:
            return other if other.by_column else self
        differing = set(self.by_column) ^ set(other.by_column)
        if differing:
            raise GramfoldError(f"not all clients have a column {min(differing)!r}; give all tables the same columns")
        folded = {}
        for name, mine in self.by_column.items():
            try:
                folded[name] = mine + other.by_column[name]
            except GramfoldError as error:
                raise GramfoldError(f"column {name!r} does not fold: {error}; make it the same everywhere") from None
        return TableStatistics(folded)

    def encoder(self) -> "TableEncoder":
        """The encoder of all these rows; a column of which it can use nothing is said."""
        for name, column in self.by_column.items():
            if column.present and column.counts is not None and max(column.counts.values()) < RARE:
                warnings.warn(f"column {name!r} holds words of which none occurs twice, and is not used", stacklevel=2)
        return TableEncoder(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file or a message."""
        listed = [[name, {**vars(column), "counts": column.counts}] for name, column in self.by_column.items()]
        return {"columns": json.loads(json.dumps(listed))}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> "TableStatistics":
        try:
            made = {str(name): ColumnStatistics(**fields) for name, fields in given["columns"]}
            for column in made.values():
                column.check()
        except MALFORMED as error:
            raise GramfoldError(f"cannot read a table's statistics: {error}") from None
        return cls(made)


class TableEncoder:
    """Rows of a table as rows of numbers."""

    def __init__(self, statistics: TableStatistics) -> None:
        self.statistics = statistics
        self._parts = [_part(name, column) for name, column in sorted(statistics.by_column.items())]
        self.columns = [title for part in self._parts for title in part.titles]
        """What each number is."""
        if not self.columns:
            raise GramfoldError("the table has no column with anything in it")

    def __repr__(self) -> str:
        return f"TableEncoder({len(self._parts)} columns -> {len(self.columns)} numbers)"

    def __call__(self, table: Table) -> np.ndarray:
        """n x numbers, float64."""
        missing = [part.name for part in self._parts if part.name not in table]
        if missing:
            raise GramfoldError(f"the table has no column {missing[0]!r}, which its encoder needs; it has: {', '.join(table)}")
        return np.concatenate([part(table[part.name]) for part in self._parts], axis=1)

    @property
    def origin(self) -> Origin:
        described = self.statistics.to_dict()
        described["columns"].sort()
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]
        return Origin(TABLE, "columns", digest, described)

    @classmethod
    def reopen(cls, origin: Origin) -> "TableEncoder":
        """The encoder that a head's numbers came from."""
        if origin.kind != TABLE:
            raise GramfoldError(f"these features come from {origin}, not from a table")
        return cls(TableStatistics.from_dict(origin.options))


@dataclass(frozen=True)
class _Numbers:
    name: str
    mean: float
    spread: float
    indicator: bool

    @property
    def titles(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.indicator else [self.name]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        numbers = as_numbers(values)
        if numbers is None:
            wrong = next(word for word in as_words(values) if word is not None and _number(word) is None)
            raise GramfoldError(f"column {self.name!r} holds {wrong!r}, and numbers in the data that its encoder was made from")
        known = np.isfinite(numbers)
        scaled = np.where(known, (np.where(known, numbers, self.mean) - self.mean) / self.spread, 0.0)
        return np.column_stack([scaled, ~known]) if self.indicator else scaled[:, None]


@dataclass(frozen=True)
class _Categories:
    name: str
    known: Sequence[str]

    @property
    def titles(self) -> list[str]:
        return [f"{self.name} = {word}" for word in self.known]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        places = {word: place for place, word in enumerate(self.known)}
        encoded = np.zeros((len(values), len(self.known)))
        for row, word in enumerate(as_words(values)):
            if word in places:
                encoded[row, places[word]] = 1.0
        return encoded


def _part(name: str, column: ColumnStatistics) -> _Numbers | _Categories:
    if column.counts is not None:
        known = sorted(word for word, count in column.counts.items() if count >= RARE)
        if len(known) > MOST_CATEGORIES:
            raise GramfoldError(f"column {name!r} has {len(known)} categories; leave it out, or name it as text for a backbone")
        return _Categories(name, known)
    spread = math.sqrt(column.deviations / max(column.present, 1))
    varies = spread > 1e-12 * abs(column.mean)  # but for rounding
    return _Numbers(name, column.mean, spread if varies else 1.0, column.missing > 0)


def as_numbers(values: np.ndarray) -> np.ndarray | None:
    """A column as float64, NaN where a value is missing; None where a value is no number."""
    if values.dtype.kind in "fiub":
        return np.asarray(values, dtype=np.float64)
    numbers = [_number(value) for value in values.tolist()]
    return None if None in numbers else np.array(numbers, dtype=np.float64)


def _number(value: Any) -> float | None:
    if is_missing(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return _days(value)


def _days(value: Any) -> float | None:
    """A date, with or without a time, as days since 1970, or a span of time in days; None for anything else."""
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() / 86400


def as_words(values: np.ndarray) -> list[str | None]:
    """A column as text, None where a value is missing; 3.0 and 3 are one category."""
    return [None if is_missing(value) else _word(value) for value in values.tolist()]


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)
