"""Duplicates: test samples that are training samples too, and make figures too good."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gramfold.checking.finding import NOTICE, SERIOUS, Finding
from gramfold.checking.table import ClientTable
from gramfold.sources.cells import Cells
from gramfold.sources.statistics import ColumnStatistics

SOME, MANY = 0.01, 0.05
"""The part of samples that is worth a word, and that is serious."""
MEASURED, DIFFERENT = 2, 10
"""Columns with so many different numbers at most clients, without which rows are equal by chance."""
CHANCE = 5.0
"""How many times more copies there must be than columns give that know nothing of each other."""


def duplicates(tables: Sequence[ClientTable]) -> list[Finding]:
    """Equal rows on both sides of the split; where nobody has split yet, equal rows at all."""
    hashes, chance = _hashes(tables)
    if hashes is None:
        return []
    if all(table.train is not None for table in tables):
        train = np.concatenate([table.train for table in tables if table.train is not None])
        again, n = int(np.isin(hashes[~train], hashes[train]).sum()), int((~train).sum())
        what = f"{again} of {n} test samples are equal to training samples, in every column"
    else:
        again, n = len(hashes) - len(np.unique(hashes)), len(hashes)
        what = f"{again} of {n} rows are copies of others: a split drawn at random puts them on both sides"
    if again < max(SOME * n, 2, CHANCE * chance * n):
        return []
    level = SERIOUS if again >= MANY * n else NOTICE
    return [Finding("duplicates", level, what, "take the copies out, or keep all of one person on one side")]


def _hashes(tables: Sequence[ClientTable]) -> tuple[np.ndarray | None, float]:
    """A number for each row that equal rows share (None where too little is measured to tell rows apart), and how likely a row
    has an equal one by chance."""
    rng, measured, alike = np.random.default_rng(0), 0, 1.0
    total = np.zeros(sum(table.n for table in tables), dtype=np.uint64)
    for name in dict.fromkeys(name for table in tables for name in table.cells):
        columns = [table.cells.get(name) or Cells(np.full(table.n, np.nan)) for table in tables]
        if any(ColumnStatistics.of(cells).singular for cells in columns):
            continue  # copies that were given IDs of their own are copies
        places = _places(columns)
        starts = np.cumsum([0, *(table.n for table in tables)])
        different = [len(np.unique(places[first:last])) for first, last in pairwise(starts)]
        measured += int(all(cells.numbers is not None for cells in columns) and np.median(different) > DIFFERENT)
        alike *= float(((np.bincount(places) / len(places)) ** 2).sum())
        total += rng.integers(1, 2**63, places.max() + 1, dtype=np.uint64)[places]
    return (total if measured >= MEASURED else None), min(alike * len(total), 1.0)


def _places(columns: Sequence[Cells]) -> np.ndarray:
    """The place of each value among all different ones of a column."""
    if all(cells.numbers is not None for cells in columns):
        whole = np.concatenate([cells.numbers for cells in columns if cells.numbers is not None])
        return np.asarray(np.unique(np.nan_to_num(whole, nan=-1.7e308), return_inverse=True)[1])
    flat = [words[code] if code >= 0 else "" for codes, words in (cells.words for cells in columns) for code in codes]
    seen = {word: place for place, word in enumerate(dict.fromkeys(flat))}
    return np.array([seen[word] for word in flat], dtype=np.int64)
