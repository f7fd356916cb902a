"""A table's encoder, from the statistics that each owner folds of its own training rows."""

import warnings
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from gramfold.errors import ColumnsError
from gramfold.origin import Origin
from gramfold.sources.base import COLUMNS, Source
from gramfold.sources.cells import Cells, Table, is_date, is_missing, number_of
from gramfold.sources.encoder import TableEncoder
from gramfold.sources.statistics import RELEASE_WORDS, TableStatistics


class CodedTable:
    """A table whose cells are read once, for an encoder of whichever training rows a cut of it leaves."""

    def __init__(self, source: Source, release_words: int = RELEASE_WORDS) -> None:
        self.source, self.release_words = source, release_words
        self.cells = {name: Cells(values) for name, values in source.items.items()}

    def training(self) -> list[np.ndarray]:
        """The training rows of each client."""
        source = self.source
        owners = np.zeros(source.n, dtype=np.int64) if source.client is None else np.unique(source.client, return_inverse=True)[1]
        owners = owners if source.train is None or not source.train.any() else np.where(source.train, owners, -1)
        return [np.flatnonzero(owners == owner) for owner in np.unique(owners[owners >= 0])]

    def statistics(self, training: Sequence[np.ndarray]) -> TableStatistics:
        """What owners of these rows say of them, each for its own, and then their sum."""
        parts = [self._of({name: cells.take(rows) for name, cells in self.cells.items()}) for rows in training]
        for name in self.cells:
            self._require_one_kind(name, parts, training)
        return reduce(add, parts)

    def _of(self, cells: dict[str, Cells]) -> TableStatistics:
        return TableStatistics.of_cells(cells, self.release_words, self.source.wanted)

    def _require_one_kind(self, name: str, parts: Sequence[TableStatistics], training: Sequence[np.ndarray]) -> None:
        """Raise, with an example, where a column holds words or dates at one client and something else at another."""
        there = {i: part.by_column[name].kind for i, part in enumerate(parts) if part.by_column[name].present}
        odd = next((i for kind in ("words", "dates") for i in there if there[i] == kind), None)
        other = next((i for i, kind in there.items() if odd is not None and kind != there[odd]), None)
        if odd is None or other is None:
            return
        values = self.cells[name].values
        example = next(int(row) for row in training[odd] if not is_missing(value := values.item(row)) and not _is_plain(value))
        raise ColumnsError(
            f"column {name!r} holds a {there[odd][:-1]} in {self.source.called(example)}, and only {there[other]} "
            f"in {self._owner(training[other])}; write it the same way everywhere, or leave it out with --columns "
            "(in Python columns=)"
        )

    def _owner(self, rows: np.ndarray) -> str:
        client = self.source.client
        return self.source.name if client is None else f"client {str(client[rows[0]])!r}"

    def __call__(self, training: Sequence[np.ndarray]) -> tuple[np.ndarray, Origin]:
        encoder = TableEncoder.of(self.statistics(training))
        return encoder.encode(self.cells), encoder.origin


def _is_plain(value: Any) -> bool:
    """Whether a cell is a number and no date."""
    return number_of(value) is not None and not is_date(value)


def folded_encoder(
    table: Table, owners: np.ndarray | None = None, release_words: int = RELEASE_WORDS, whose: str = "the table"
) -> TableEncoder:
    """The encoder of a table's rows, each owner's statistics folded for itself; None: all are one's own."""
    coded = CodedTable(Source(whose, COLUMNS, table, client=owners), release_words)
    statistics = coded.statistics(coded.training())
    say_unused(statistics)
    return TableEncoder.of(statistics)


def say_unused(statistics: TableStatistics) -> None:
    """Warn of the columns that no encoder takes."""
    for name, why in statistics.unused().items():
        forced = "; if it holds numbers that were measured, name it among --columns (in Python columns=)"
        forced = forced if statistics.by_column[name].singular else ""
        warnings.warn(f"column {name!r} {why}: it is not used{forced}", stacklevel=3)
