"""`gramfold methods`: the available methods."""

import json
from dataclasses import fields
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from gramfold.methods import METHODS, find_method
from gramfold.methods.protocol import IN_CODE, OF_RUN
from gramfold.report.text import setting


def methods(
    name: Annotated[str | None, typer.Argument(help="One method, for its parameters and its paper.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """List the methods, or tell more of one: its parameters and its paper."""
    described = [_describe(each) for each in (METHODS if name is None else [name])]
    if as_json:
        typer.echo(json.dumps(described, indent=2))
        return
    table = Table.grid(padding=(0, 2))
    if name is None:
        for entry in described:
            table.add_row(f"[cyan]{entry['name']}[/]", entry["summary"])
    else:
        kind, entry = find_method(name), described[0]
        table.add_row("[cyan]method[/]", f"{entry['name']}: {entry['summary']}")
        table.add_row("[cyan]paper[/]", entry["paper"])
        table.add_row("[cyan]works on[/]", " or ".join(sorted(kind.input_kinds)))
        table.add_row("[cyan]probabilities[/]", "yes" if kind.probabilistic else "no")
        for key, value in entry["parameters"].items():
            table.add_row(f"[cyan]{key}[/]", setting(value))
    console = Console()
    console.print(table)
    console.print()
    if name is None:
        console.print("Parameters and paper of one: gramfold methods NAME", highlight=False)
    else:
        console.print("'chosen': selected from training data alone. Set one with --set, such as", highlight=False)
        console.print("  gramfold run --set apfl.lam=0.5", highlight=False)


def _describe(name: str) -> dict[str, Any]:
    kind = find_method(name)
    defaults = {field.name: field.default for field in fields(kind) if field.metadata not in (IN_CODE, OF_RUN)}
    return {"name": kind.name, "summary": kind.summary, "paper": kind.paper, "parameters": defaults}
