"""The result table for a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from gramfold.report.columns import columns


def result_table(result: Mapping[str, Any]) -> Table:
    """A rich table, one row per method."""
    data, partition = result["data"], result["partition"]
    title = f"{data['name']}: {partition['clients']} clients, {partition['kind']}, seed {result['seed']}"
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("method", style="cyan", no_wrap=True)
    shown = columns(result["methods"])
    for column in shown:
        table.add_column(column.title, justify="right", no_wrap=True)
    best = max((method.get("mean_accuracy") or 0.0 for method in result["methods"]), default=0.0)
    for method in result["methods"]:
        style = "bold" if method.get("mean_accuracy") == best else None
        table.add_row(method["name"], *(column.cell(method) for column in shown), style=style)
    return table
