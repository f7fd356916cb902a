"""The result table for a terminal."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gramfold.report import papers
from gramfold.report.columns import columns
from gramfold.report.text import MISSING

if TYPE_CHECKING:
    from rich.table import Table

ON_THE_PAGE = ("weighted %", "balanced %")
ROOM = 150
"""Characters of a line where nobody says how many there are."""
SPARED = (
    "balanced", "Brier", "down / client", "ECE", "rounds", "up / client", "shared model", "LOO estimate", "worst 10 %", "s.e.",
    "AP", "95 % CI, ", "time", "R2", "95 % CI of log", "p", "accuracy", "AUC", "log loss", "95 % CI of", "diff.", "95 % CI",
)  # fmt: skip
"""How columns begin that a narrow terminal goes without, the first of them first; the page has them all."""


def result_table(result: Mapping[str, Any], room: int = ROOM) -> "Table":
    """A rich table, one row per method, without what a terminal of so many characters has no room for."""
    data, partition, methods = result["data"], result["partition"], result["methods"]
    title = f"{data['name']}: {partition['clients']} clients, {partition['kind']}, seed {result['seed']}"
    shown = [column for column in columns(methods) if column.title not in ON_THE_PAGE]
    rows = [[method["name"], *(column.cell(method) for column in shown)] for method in methods]
    table = _table(title, *_fitting(["method", *(column.title for column in shown)], rows, room), room)
    table.columns[0].style = "cyan"
    ranks = [rank(method) for method in methods] if (rank := next((c.best for c in shown if c.best), None)) else []
    known = [one for one in ranks if one is not None]
    for row, one in zip(table.rows, ranks, strict=False):
        row.style = "bold" if known and one == max(known) else None
    return table


def comparison_table(comparison: Mapping[str, Any], title: str, room: int = ROOM) -> "Table":
    """A rich table of a comparison over seeds, without what a terminal has no room for."""
    header, rows = papers.cells(comparison)
    return _table(title, *_fitting(header, rows, room), room)


def bench_table(table: Mapping[str, Any], room: int = ROOM) -> "Table":
    """A rich table of a bench: mean and standard error, and published figures in brackets."""
    made = _table(table["title"], table["columns"], [[str(row[0]), *map(bench_cell, row[1:])] for row in table["rows"]], room)
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


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> "Table":
    """Cells are never cut as long as they have room; titles of columns go on a second line where they have not."""
    from rich.table import Table  # takes long to import, and only a terminal needs it

    table = Table(title=title, title_justify="left", header_style="bold")
    for name, width in zip(header, _widths(header, rows, room), strict=True):
        table.add_column(name, justify="left" if name == "method" else "right", width=width)
    for row in rows:
        table.add_row(*row)
    return table


def _fitting(header: list[str], rows: list[list[str]], room: int) -> tuple[list[str], list[list[str]]]:
    """Without columns that there is no room for."""
    for spared in SPARED:
        if _taken(_narrowest(header, rows)) > room:
            kept = [i for i, name in enumerate(header) if i < 2 or not name.startswith(spared)]  # method and main measure stay
            header, rows = [header[i] for i in kept], [[row[i] for i in kept] for row in rows]
    return header, rows


def _narrowest(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The widths of columns that cut no cell, and no word of a title."""
    words = [max(map(len, name.split()), default=0) for name in header]
    return [max([word, *(len(row[i]) for row in rows)]) for i, word in enumerate(words)]


def _taken(widths: Sequence[int]) -> int:
    """Characters of a line, with what stands between columns."""
    return sum(widths) + 3 * len(widths) + 1


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Those of columns, whose titles are on one line as long as there is room.

    >>> _widths(["method", "shared model", "up / client"], [["pace", "98.9", "1.9 MB"]], 34), _widths(["up / client"], [], 80)
    ([6, 12, 6], [11])
    """
    widths = _narrowest(header, rows)
    spare = room - _taken(widths)
    for i, name in enumerate(header):
        if 0 < (more := len(name) - widths[i]) <= spare:
            widths[i], spare = len(name), spare - more
    return widths
