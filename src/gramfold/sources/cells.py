"""A table's cells: what is missing, what is a number, what is a word."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np

Table = Mapping[str, np.ndarray]
TRUTH = {"true": 1.0, "false": 0.0}
"""As spreadsheets write what frames have as truth values, which are numbers."""
MISSING = ("", "na", "n/a", "nan", "null", "none", "?")


class Cells:
    """A column that is read once, whichever of its rows are asked for."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def _read(self) -> tuple[np.ndarray | None, bool]:
        return _numbers(self.values)

    @property
    def numbers(self) -> np.ndarray | None:
        """float64, NaN where a value is missing; None where a value is no number, or some are dates and others are not."""
        return self._read[0]

    @property
    def dates(self) -> bool:
        """Whether the numbers are dates, as days since 1970."""
        return self._read[1]

    @cached_property
    def words(self) -> tuple[np.ndarray, list[str]]:
        """The place of each value among the column's words, -1 where it is missing; and the words, sorted."""
        listed = as_words(self.values)
        known = sorted({word for word in listed if word is not None})
        places = {word: place for place, word in enumerate(known)}
        return np.array([-1 if word is None else places[word] for word in listed], dtype=np.int64), known

    def take(self, rows: np.ndarray) -> "Cells":
        made = Cells(self.values[rows])
        if self.numbers is not None:
            made.__dict__["_read"] = self.numbers[rows], self.dates
        else:
            made.__dict__["words"] = self.words[0][rows], self.words[1]
        return made

    def counts(self) -> dict[str, int]:
        """How often each word occurs."""
        places, known = self.words
        found = np.bincount(places[places >= 0], minlength=len(known))
        return {word: count for word, count in zip(known, found.tolist(), strict=True) if count}


def as_numbers(values: np.ndarray) -> np.ndarray | None:
    """A column as float64, NaN where a value is missing; None where one is no number, or some are dates and others are not."""
    return _numbers(values)[0]


def _numbers(values: np.ndarray) -> tuple[np.ndarray | None, bool]:
    """A column as numbers, and whether they are dates."""
    if values.dtype.kind in "fiub":
        return np.asarray(values, dtype=np.float64), False
    try:
        return values.astype(np.float64), False
    except (OverflowError, TypeError, ValueError):  # it has gaps, dates or words
        numbers, plain, dates = np.empty(len(values)), False, False
    for row, value in enumerate(values.tolist()):
        number = _plain_number(value)
        if number is None:
            number, dates = _days(value), True
        elif number == number:
            plain = True
        if number is None or (plain and dates):
            return None, False
        numbers[row] = number
    return numbers, dates


def as_words(values: np.ndarray) -> list[str | None]:
    """A column as text, None where a value is missing; 3.0 and 3 are one category."""
    return [None if is_missing(value) else _word(value) for value in values.tolist()]


def number_of(value: Any) -> float | None:
    """A cell as a number, NaN where it is missing, days since 1970 where it is a date; None where it is none."""
    number = _plain_number(value)
    return _days(value) if number is None else number


def is_date(value: Any) -> bool:
    return _plain_number(value) is None and _days(value) is not None


def _plain_number(value: Any) -> float | None:
    """NaN where it is missing; None for dates and words. A span of time is so many days."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        if is_missing(value):
            return math.nan
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    return TRUTH.get(value.strip().lower()) if isinstance(value, str) else None


def _days(value: Any) -> float | None:
    """A date, with or without a time, as days since 1970; None for anything else."""
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


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)
