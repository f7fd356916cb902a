"""`gramfold bench`: reruns a paper's experiments, cell by cell, and writes its tables beside the published figures."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from gramfold import wire
from gramfold.bench import BENCHES, open_bench, run_bench
from gramfold.bench.machine import comparison
from gramfold.bench.running import CONTENT, PAGE, Progress
from gramfold.errors import GramfoldError
from gramfold.numerics import arrays
from gramfold.report.table import bench_table
from gramfold.report.text import duration


def bench(
    name: Annotated[str, typer.Argument(help=f"Which: {', '.join(BENCHES)}.")],
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATA]...", help="The data, an .npz file; or NAME=FILE for benches that take several."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the figures; what it has already is not measured again.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, from 0 on.", min=1)] = 3,
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda.")] = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke run of seconds, one seed, on embedded data if none is given.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only cells with such keys, * for anything. May be repeated.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the bench: NAME=VALUE. May be repeated.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Cells at a time, each in a process of its own.", min=1)] = 1,
    minutes: Annotated[
        float | None,
        typer.Option(help="Begin no cell after so many minutes; 0 only writes the tables anew.", min=0, show_default=False),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="A bench.json of before: say what became faster or slower.", exists=True, dir_okay=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the content as JSON on standard output.")] = False,
) -> None:
    """Rerun a paper's experiments and show its tables, published figures beside measured ones. A run that was stopped goes on."""
    chosen = open_bench(name)
    arrays.check_device(device)
    folder = out or Path(f"gramfold-bench-{name}")
    options = chosen.options(_files(data or []), range(1 if quick else seeds), device, quick, **_settings(settings or []))
    with _shown() as progress:
        content = run_bench(chosen, options, folder, only=only or (), jobs=jobs, minutes=minutes, progress=progress)
    if as_json:
        sys.stdout.write(json.dumps(content, indent=1, allow_nan=False) + "\n")
        return
    console = Console() if sys.stdout.isatty() else Console(width=150)
    for table in content["tables"]:
        console.print(bench_table(table, console.width))
        console.print(table["note"] + "\n", markup=False, highlight=False)
    if compare is not None:
        for line in comparison(wire.read_json(wire.read(compare)), content):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"Report: {folder / PAGE}    Figures: {folder / CONTENT}", highlight=False, soft_wrap=True)


def _files(given: list[str]) -> dict[str, str]:
    """
    >>> _files(["a.npz", "proxy=b.npz"])
    {'': 'a.npz', 'proxy': 'b.npz'}
    """
    files: dict[str, str] = {}
    for text in given:
        name, equals, path = text.rpartition("=")
        if name in files:
            raise GramfoldError(f"the data is given twice{f' for {name}' if name else ''}; once is enough")
        files[name if equals else ""] = path
    return files


def _settings(given: list[str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise GramfoldError(f"cannot read --set {text!r}; write NAME=VALUE, such as rounds=100")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


@contextmanager
def _shown() -> Iterator[Progress]:
    """A bar on a terminal, a line for each cell otherwise; on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, key, seconds: console.print(
            f"[{done}/{total}] {key}: {duration(seconds)}", markup=False, highlight=False, soft_wrap=True
        )
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, key, seconds: bar.update(task, completed=done, total=total, description=key)
