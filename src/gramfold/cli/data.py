"""What commands share that take raw data: their options, and the way from a path to numbers."""

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from gramfold.extraction import FAIL, SKIP, Progress, default_cache, load_data
from gramfold.federation import Dataset, load_dataset
from gramfold.report.text import duration
from gramfold.sources import Columns, is_raw

Backbone = Annotated[
    str | None,
    typer.Option(
        help="What makes numbers of images or texts: dinov2s, minilm, efficientnet-lite0, hf:NAME_OR_FOLDER, "
        "onnx:FILE[#TENSOR], python:MODULE:FUNCTION.",
        show_default=False,
    ),
]
Pooling = Annotated[str | None, typer.Option(help="Of a backbone's tokens: cls, mean or both.", show_default=False)]
CacheFolder = Annotated[
    Path | None, typer.Option(help="Where features are kept; by default GRAMFOLD_CACHE, or the user's cache.", show_default=False)
]
Unreadable = Annotated[str, typer.Option(help=f"Images that cannot be read: {FAIL}, or {SKIP} them with a warning.")]
LabelColumn = Annotated[str | None, typer.Option(help="A table's column of labels.", show_default=False)]
ClientColumn = Annotated[str | None, typer.Option(help="A table's column that says whose each row is.", show_default=False)]
PathColumn = Annotated[str | None, typer.Option(help="A table's column of image files.", show_default=False)]
TextColumn_ = Annotated[str | None, typer.Option("--text-column", help="A table's column of texts.", show_default=False)]
SplitColumn = Annotated[str | None, typer.Option(help="A table's column that says train or test.", show_default=False)]
OnlyColumns = Annotated[
    str | None,
    typer.Option("--columns", help="The columns of numbers and categories to use, separated by commas.", show_default=False),
]


def columns_from(
    label: str | None, client: str | None, path: str | None, text: str | None, split: str | None, only: str | None
) -> Columns:
    return Columns(label, client, path, text, split, tuple(name.strip() for name in (only or "").split(",") if name.strip()))


def load_named(
    data: str, backbone: str | None, pooling: str | None, device: str, columns: Columns, cache: Path | None, unreadable: str
) -> Dataset:
    """The data set at a path, or an embedded one; raw samples go through the backbone, or a table's encoder."""
    if backbone is None and not is_raw(data):
        return load_dataset(data)
    if backbone is None:
        return load_data(data, columns=columns)
    from gramfold.backbones import open_backbone

    opened = open_backbone(backbone, pooling, device)
    with show_extraction(opened.kind) as progress:
        return load_data(data, opened, columns=columns, cache=cache or default_cache(), unreadable=unreadable, progress=progress)


@contextmanager
def show_extraction(what: str) -> Iterator[Progress]:
    """How far an extraction has come, and how many samples a second: a bar on a terminal, one line at the end otherwise."""
    console, begun, seen = Console(stderr=True), time.perf_counter(), [0, 0, 0]

    def rate() -> str:
        spent = time.perf_counter() - begun
        return f"{seen[1] / spent:.1f} {what} a second" if seen[1] else "from the cache"

    def note(done: int, computed: int, total: int) -> None:
        seen[:] = done, computed, total

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest: print(f"warning: {message}", file=sys.stderr)
        if console.is_terminal:
            shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            with Bar(*shown, console=console, transient=True) as bar:
                task = bar.add_task(what, total=None)

                def show(done: int, computed: int, total: int) -> None:
                    note(done, computed, total)
                    bar.update(task, completed=done, total=total, description=rate())

                yield show
        else:
            yield note
    spent = duration(time.perf_counter() - begun)
    console.print(f"{seen[0]} {what}, {seen[1]} computed in {spent}: {rate()}", markup=False, highlight=False, soft_wrap=True)
