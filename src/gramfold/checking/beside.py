"""Checks where nobody sees all tables: a site's own beside the agreed encoder, and what sites say of theirs beside each other."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramfold.checking.checked import check_tables
from gramfold.checking.finding import SERIOUS, Finding, Report
from gramfold.checking.gaps import CODES, gaps
from gramfold.checking.table import ClientTable, Column
from gramfold.checking.units import Sums, beside, units
from gramfold.origin import Origin
from gramfold.sources.cells import Cells
from gramfold.sources.encoder import Categories, Numbers, TableEncoder
from gramfold.sources.encoding import raw_table
from gramfold.sources.statistics import RELEASE_WORDS, TableStatistics

STRANGE = 0.5
"""The part of a site's rows with words that the encoder does not know."""


def check_site(table: ClientTable, encoder: TableEncoder, regression: bool, release_words: int = RELEASE_WORDS) -> Report:
    """What is wrong with a site's own table, by itself and beside the encoder that all sites made."""
    alone = [found for found in check_tables([table], regression, release_words).findings if found.kind != "gaps"]
    found: list[Finding] = []
    for name, part in encoder.parts.items():
        if name not in table.columns:
            what = "is not in this table, and in the others'"
            found.append(
                Finding("missing", SERIOUS, what, "it is missing in every row; is it called otherwise here?", table.name, name)
            )
        elif isinstance(part, Numbers):
            found += _of_numbers(name, table.name, table.columns[name], part)
        else:
            found += _of_words(name, table.name, table.columns[name], part)
    return Report.of([*alone, *found], [table.name])


def check_rows(origin: Origin, rows: Any, called: str = "these rows") -> list[Finding]:
    """What is serious about the numbers of new rows of a table, beside those that the encoder of a head's origin was made of:
    another unit, and gaps that are written as numbers."""
    table, found = raw_table(rows, called), list[Finding]()
    for name, part in TableEncoder.reopen(origin).parts.items():
        if name in table and isinstance(part, Numbers) and not part.dates:
            found += _of_numbers(name, called, Column(Cells(np.asarray(table[name]))), part)
    return [finding for finding in found if finding.level == SERIOUS]


def _of_numbers(name: str, site: str, column: Column, part: Numbers) -> list[Finding]:
    numbers, usual = column.numbers, Sums(0, part.mean, part.spread)
    theirs = "dates" if part.dates else "numbers"
    if numbers is None or (column.present and column.kind != theirs):
        what = f"holds {column.kind}, where the others have {theirs}"
        return [Finding("codes", SERIOUS, what, "write it as they do", site, name)]
    found, left = gaps(name, site, numbers, usual, np.unique(numbers[~np.isin(numbers, CODES)]))
    unit = beside(name, site, Sums.of(left), usual)
    return found if unit is None else [*found, unit]


def _of_words(name: str, site: str, column: Column, part: Categories) -> list[Finding]:
    places, missing = part.places(column.cells)
    there = int((~missing).sum())
    unknown = int(((places < 0) & ~missing).sum())
    if not there or unknown <= STRANGE * there:
        return []
    known = ", ".join(repr(word) for word in part.words[:4])
    what = f"{unknown} of {there} rows {'has' if unknown == 1 else 'have'} words that the encoder does not know; it knows {known}"
    return [Finding("codes", SERIOUS, what, "write them as the others do", site, name)]


def check_statistics(sites: Mapping[str, TableStatistics]) -> list[Finding]:
    """What a server sees in the sums that sites send: units, and columns whose numbers are all one far from the others'."""
    found: list[Finding] = []
    for name in dict.fromkeys(name for table in sites.values() for name in table.by_column):
        columns = {site: table.by_column[name] for site, table in sites.items() if name in table.by_column}
        sums = {
            site: Sums(column.present, column.mean, (column.deviations / column.present) ** 0.5)
            for site, column in columns.items() if column.present and column.words is None
        }  # fmt: skip
        varying = sorted((each for each in sums.values() if each.spread > 0), key=lambda each: each.mean)
        for site, each in sums.items():
            if not each.spread and varying:
                means = np.array([other.mean for other in varying])
                found += gaps(name, site, np.full(min(each.n, 1000), each.mean), varying[len(varying) // 2], np.unique(means))[0]
        found += units(name, sums)
    return found
