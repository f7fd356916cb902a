"""Clients' tables as they are, before any encoder: cells, labels, and which rows are for training."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramfold.sources.base import Source
from gramfold.sources.cells import Cells, is_date, is_missing, number_of
from gramfold.sources.statistics import LARGEST

MOSTLY = 0.8
"""The part of a column's cells that are numbers where the others are slips."""


@dataclass(frozen=True)
class ClientTable:
    """One client's rows."""

    name: str
    cells: Mapping[str, Cells]
    labels: np.ndarray | None = None
    train: np.ndarray | None = None
    """Which rows are for training; None: nobody has said yet."""

    @property
    def n(self) -> int:
        return len(next(iter(self.cells.values())))

    @cached_property
    def rows(self) -> np.ndarray:
        """The training rows; all, where nobody has said."""
        return np.arange(self.n) if self.train is None else np.flatnonzero(self.train)

    @cached_property
    def columns(self) -> "Mapping[str, Column]":
        """The training rows by column."""
        return {name: Column(cells.take(self.rows)) for name, cells in self.cells.items()}


class Column:
    """A column of one client: numbers, words, or numbers with a few slips among them."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells

    @cached_property
    def slips(self) -> np.ndarray:
        """Rows whose cell is no number, where nearly all others are; a date among numbers is none."""
        if self.cells.numbers is not None:
            return np.empty(0, dtype=np.int64)
        listed = [(row, _plain(value)) for row, value in enumerate(self.cells.values.tolist()) if not is_missing(value)]
        wrong = [row for row, number in listed if number is None]
        return np.array(wrong if len(wrong) <= (1 - MOSTLY) * len(listed) else [], dtype=np.int64)

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """The numbers that are there, without slips and gaps; None for words."""
        numbers = self.cells.numbers
        if numbers is None and len(self.slips):
            numbers = np.array([np.nan if (number := _plain(value)) is None else number for value in self.cells.values.tolist()])
        return None if numbers is None else numbers[np.abs(numbers) < LARGEST]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often each word occurs; none of a column of numbers."""
        return self.cells.counts() if self.numbers is None else {}

    @property
    def kind(self) -> str:
        return "words" if self.numbers is None else "dates" if self.cells.dates else "numbers"

    @property
    def present(self) -> int:
        return len(self.numbers) if self.numbers is not None else sum(self.counts.values())


def tables_of(source: Source) -> list[ClientTable]:
    """The clients of a source that is a table."""
    cells = {name: Cells(values) for name, values in source.items.items()}
    owners = np.full(source.n, "") if source.client is None else source.client
    marked = source.train is not None and 0 < source.train.sum() < source.n
    return [client_table(cells, source, str(name), np.flatnonzero(owners == name), marked) for name in np.unique(owners)]


def client_table(cells: Mapping[str, Cells], source: Source, name: str, rows: np.ndarray, marked: bool) -> ClientTable:
    labels = None if source.labels is None else source.labels[rows]
    train = source.train[rows] if marked and source.train is not None else None
    return ClientTable(name or source.name, {title: whole.take(rows) for title, whole in cells.items()}, labels, train)


def _plain(value: Any) -> float | None:
    return None if is_date(value) else number_of(value)
