"""The result table for a terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gramfold.report import papers
from gramfold.report.columns import columns
from gramfold.report.runs import Named, run_cells, runs_columns
from gramfold.report.text import MISSING

if TYPE_CHECKING:
    from rich.table import Table

ON_THE_PAGE = ("weighted %", "balanced %")
WIDE = ("shared model", "down / client", "balanced", "log loss")


def result_table(result: Mapping[str, Any]) -> "Table":
    """A rich table, one row per method, without what a terminal has no room for."""
    data, partition = result["data"], result["partition"]
    title = f"{data['name']}: {partition['clients']} clients, {partition['kind']}, seed {result['seed']}"
    from rich.table import Table  # takes long to import, and only a terminal needs it

    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("method", style="cyan", no_wrap=True)
    shown = [column for column in columns(result["methods"]) if column.title not in ON_THE_PAGE]
    for column in shown:
        table.add_column(column.title, justify="right", no_wrap=True)
    best = max((method.get("mean_accuracy") or 0.0 for method in result["methods"]), default=0.0)
    for method in result["methods"]:
        style = "bold" if method.get("mean_accuracy") == best else None
        table.add_row(method["name"], *(column.cell(method) for column in shown), style=style)
    return table


def comparison_table(comparison: Mapping[str, Any], title: str) -> "Table":
    """A rich table of a comparison over seeds, without what a terminal has no room for."""
    header, rows = papers.cells(comparison)
    kept = [i for i, name in enumerate(header) if not name.startswith(WIDE)]
    return _table(title, [header[i] for i in kept], [[row[i] for i in kept] for row in rows])


def runs_table(runs: Sequence[Named]) -> "Table":
    """A rich table of several runs, one row per run and method."""
    return _table(f"{len(runs)} runs", [column.title for column in runs_columns(runs)], run_cells(runs))


def bench_table(table: Mapping[str, Any]) -> "Table":
    """A rich table of a bench: mean and standard error, and published figures in brackets."""
    made = _table(table["title"], table["columns"], [[str(row[0]), *map(bench_cell, row[1:])] for row in table["rows"]])
    made.columns[0].justify = "left"
    return made


def bench_cell(cell: Any) -> str:
    """
    >>> bench_cell({"mean": 83.12, "error": 0.21, "published": 80.72}), bench_cell(7.0), bench_cell(None) == MISSING
    ('83.1 ±0.2 (80.72)', '7.0', True)
    """
    if not isinstance(cell, Mapping):
        return MISSING if cell is None else cell if isinstance(cell, str) else f"{cell:.1f}"
    error = "" if cell.get("error") is None else f" \N{PLUS-MINUS SIGN}{cell['error']:.1f}"
    printed = cell.get("published")
    published = "" if printed is None else f" ({printed:.2f})" if isinstance(printed, float) else f" ({printed})"
    return f"{bench_cell(cell['mean'])}{error}{published}"


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    from rich.table import Table  # takes long to import, and only a terminal needs it

    table = Table(title=title, title_justify="left", header_style="bold")
    for name in header:
        table.add_column(name, justify="left" if name in ("run", "data", "cut", "method") else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table
