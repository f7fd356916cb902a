"""`gramfold methods`: the available methods."""

import json
from dataclasses import fields
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from gramfold.methods import METHODS
from gramfold.report.text import setting


def methods(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False) -> None:
    """List the methods, with their parameters and papers."""
    described = [_describe(name) for name in METHODS]
    if as_json:
        typer.echo(json.dumps(described, indent=2))
        return
    table = Table(header_style="bold", show_lines=True)
    for title in ("method", "what it is", "parameters", "paper"):
        table.add_column(title, style="cyan" if title == "method" else None, no_wrap=title in ("method", "parameters"))
    for entry in described:
        defaults = "\n".join(f"{key}={setting(value)}" for key, value in entry["parameters"].items())
        table.add_row(entry["name"], entry["summary"], defaults, entry["paper"])
    Console().print(table)
    Console().print("'chosen': selected from training data alone. Set one with: gramfold run --set apfl.lam=0.5")


def _describe(name: str) -> dict[str, Any]:
    kind = METHODS[name]
    defaults = {field.name: field.default for field in fields(kind)}
    return {"name": name, "summary": kind.summary, "paper": kind.paper, "parameters": defaults}
