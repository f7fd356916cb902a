"""`gramfold check`: what is wrong with data, before anything is fitted."""

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gramfold.checking import SERIOUS, Report, check_source
from gramfold.cli.data import Reading, reads_data
from gramfold.errors import OptionError
from gramfold.federation import Federation
from gramfold.sources import is_raw
from gramfold.sources.base import COLUMNS

FOUND = 1
"""The exit code where something serious was found; an error is 2, as everywhere."""


@reads_data
def check(
    reading: Reading,
    data: Annotated[
        list[str],
        typer.Argument(
            help="CSV or Parquet tables (one, a folder, a pattern, a list: each a client), or an .npz file of features."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON on standard output.")] = False,
) -> None:
    """Say what is wrong with data before anything is fitted: units, codes, gaps written as numbers, IDs, leaks, duplicates.

    Exit code 1 if anything serious is found.
    """
    report = _report(reading, data)
    if as_json:
        sys.stdout.write(json.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n")
    else:
        show(report, Console() if sys.stdout.isatty() else Console(width=150))
    if report.serious:
        raise typer.Exit(FOUND)


def _report(reading: Reading, data: list[str]) -> Report:
    if all(is_raw(path) for path in data):
        source = reading.source(data)
        if source.kind != COLUMNS:
            raise OptionError(f"{source.name} holds {source.kind}; only tables and features (.npz) are checked")
        return check_source(source, reading.release_words)
    dataset = reading.load(data)
    if dataset.client is None:
        return Federation.from_dataset(dataset, 1, "iid").check()
    return Federation.from_dataset(dataset, min_size=1).check()


def show(report: Report, console: Console) -> None:
    """The findings as a table."""
    if report.findings:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for title in ("", "client", "column", "what", "what to do"):
            table.add_column(title, overflow="fold")
        for found in report.findings:
            level = f"[red]{found.level}[/]" if found.level == SERIOUS else f"[yellow]{found.level}[/]"
            table.add_row(level, *(_plain(text or "all") for text in (found.client, found.column, found.claim, found.do)))
        console.print(table)
        console.print()
    console.print(report.summary, highlight=False)


def _plain(text: str) -> str:
    """A name or a sentence that quotes one, as it is: no markup, nothing a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text).replace("[", r"\[")
