"""A table's encoder, from the statistics that each owner folds of its own training rows."""

import warnings
from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.origin import Origin
from gramfold.sources.base import COLUMNS, Source
from gramfold.sources.cells import Cells, Table, number_of
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
        """Raise, with an example of either, where a column holds words at one client and numbers at another."""
        there = [i for i, part in enumerate(parts) if part.by_column[name].present]
        words = [i for i in there if parts[i].by_column[name].words is not None]
        if not words or len(words) == len(there):
            return
        values, rows = self.cells[name].values, training[words[0]]
        word = next(int(row) for row in rows if number_of(values.item(row)) is None)
        other = training[next(i for i in there if i not in words)]
        raise GramfoldError(
            f"column {name!r} holds a word in {self.source.called(word)}, and only numbers in {self._owner(other)}; write it the "
            f"same way everywhere, or leave it out with --columns (in Python columns=)"
        )

    def _owner(self, rows: np.ndarray) -> str:
        client = self.source.client
        return self.source.name if client is None else f"client {str(client[rows[0]])!r}"

    def __call__(self, training: Sequence[np.ndarray]) -> tuple[np.ndarray, Origin]:
        encoder = TableEncoder.of(self.statistics(training))
        return encoder.encode(self.cells), encoder.origin


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
        singular = statistics.by_column[name].singular
        singular = statistics.by_column[name].singular
        forced = "; name it among --columns (in Python columns=) if it is a measurement" if singular else ""
        warnings.warn(f"column {name!r} {why}: it is not used{forced}", stacklevel=3)
