"""All checks of clients' tables, one after the other."""

from collections.abc import Mapping, Sequence

import numpy as np

from gramfold.checking.codes import codes, kinds
from gramfold.checking.duplicates import duplicates
from gramfold.checking.finding import Finding, Report, together
from gramfold.checking.gaps import CODES, gaps
from gramfold.checking.identity import identity
from gramfold.checking.leaks import groups_of_numbers, groups_of_words, leak
from gramfold.checking.table import ClientTable, Column, tables_of
from gramfold.checking.targets import targets
from gramfold.checking.units import Sums, units
from gramfold.numerics import inputs
from gramfold.sources.base import Source
from gramfold.sources.cells import Cells
from gramfold.sources.statistics import RELEASE_WORDS

UNUSABLE = ("id", "date")
"""What ends the checks of a column: its numbers are no measurements."""
TWO = 2
"""Different numbers that are a yes and a no, and have no unit."""


def check_source(source: Source, release_words: int = RELEASE_WORDS) -> Report:
    """What is wrong with a table, or with several files that are a client each."""
    return check_tables(tables_of(source), source.regression, release_words)


def check_tables(tables: Sequence[ClientTable], regression: bool = False, release_words: int = RELEASE_WORDS) -> Report:
    """What is wrong with clients' tables: each by itself, each beside the others, and all together."""
    found: list[Finding] = []
    for name in dict.fromkeys(name for table in tables for name in table.cells):
        columns = {table.name: table.columns[name] for table in tables if name in table.cells}
        about = identity(name, columns)
        if any(finding.kind in UNUSABLE for finding in about):
            found += about + [finding for finding in kinds(name, columns, release_words) if about[-1].kind == "date"]
            continue
        measured = _measured(name, columns)
        coded = {finding.client for finding in measured if finding.kind == "gaps"}
        found += [finding for finding in about if finding.kind != "constant" or finding.client not in coded]
        found += codes(name, columns, release_words) + measured
        if (leaking := _leak(name, tables, regression)) is not None:
            found.append(leaking)
    labels = {table.name: table.labels[table.rows] for table in tables if table.labels is not None and len(table.rows)}
    if labels and not regression:
        found += targets(labels)
    names = [table.name for table in tables]
    return Report.of(together(found, names) + duplicates(tables), names)


def _measured(name: str, columns: Mapping[str, Column]) -> list[Finding]:
    """Gaps among numbers, and their units without these."""
    known = {client: column for client, column in columns.items() if column.present and column.kind == "numbers"}
    numbers = {client: column.numbers for client, column in known.items() if column.numbers is not None}
    if all(len(np.unique(values)) <= TWO for values in numbers.values()):
        return []
    usual = _usual({client: Sums.of(values) for client, values in numbers.items()})
    measured = np.unique(np.concatenate(list(numbers.values())))
    measured = measured[~np.isin(measured, CODES)]
    found, left = [], {}
    for client, values in numbers.items():
        coded, left[client] = gaps(name, client, values, usual, measured)
        found += coded
    return found + units(name, {client: Sums.of(values) for client, values in left.items()})


def _usual(sums: Mapping[str, Sums]) -> Sums | None:
    """What the client in the middle has, of those whose numbers vary."""
    varying = sorted((each for each in sums.values() if each.spread > 0), key=lambda each: each.mean)
    return varying[len(varying) // 2] if varying else None


def _leak(name: str, tables: Sequence[ClientTable], regression: bool) -> Finding | None:
    labelled = [table for table in tables if table.labels is not None]
    if not labelled:
        return None
    columns = [
        table.cells[name].take(table.rows) if name in table.cells else Cells(np.full(len(table.rows), np.nan))
        for table in labelled
    ]
    pooled = np.concatenate([table.labels[table.rows] for table in labelled if table.labels is not None])
    values = pooled[:, 0] if regression else inputs.encode(pooled)[0]
    numbers = [column.numbers for column in columns if column.numbers is not None]
    if len(numbers) == len(columns):
        return leak(name, groups_of_numbers(np.concatenate(numbers)), values, regression)
    places: dict[str, int] = {}
    codes = [
        np.array([places.setdefault(words[code], len(places)) if code >= 0 else -1 for code in rows], dtype=np.int64)
        for rows, words in (column.words for column in columns)
    ]  # fmt: skip
    return leak(name, groups_of_words(np.concatenate(codes)), values, regression)
