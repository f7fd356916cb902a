"""What commands share that take raw data: their options, and the way from a path to numbers."""

import functools
import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from gramfold.errors import FileError, GramfoldError, OptionError
from gramfold.extraction import FAIL, SKIP, Progress, default_cache, load_data
from gramfold.federation import Dataset, Federation, load_dataset
from gramfold.imports import names_code, object_at
from gramfold.report.text import duration
from gramfold.sources import RELEASE_WORDS, Columns, Source, is_raw, source_of
from gramfold.sources.base import COLUMNS

Backbone = Annotated[
    str | None,
    typer.Option(
        help="What makes numbers of images or texts: dinov2s, minilm, efficientnet-lite0, hf:NAME_OR_FOLDER, "
        "onnx:FILE or onnx:FILE#TENSOR, or a network or function of your own, FILE.py:NAME.",
        show_default=False,
    ),
]
Pooling = Annotated[str | None, typer.Option(help="Of a backbone's tokens: cls, mean or both.", show_default=False)]
CacheFolder = Annotated[
    Path | None, typer.Option(help="Where features are kept; by default GRAMFOLD_CACHE, or the user's cache.", show_default=False)
]
Unreadable = Annotated[str, typer.Option(help=f"Images that cannot be read: {FAIL}, or {SKIP} them with a warning.")]
PathColumn = Annotated[str | None, typer.Option(help="A table's column of image files.", show_default=False)]
TextColumn_ = Annotated[str | None, typer.Option("--text-column", help="A table's column of texts.", show_default=False)]
ROLES = ("label_column", "client_column", "path_column", "text_column", "split_column", "block_column")


@dataclass(frozen=True)
class Reading:
    """How labelled data becomes numbers: the options of every command that reads some."""

    backbone: Backbone = None
    pooling: Pooling = None
    device: Annotated[str, typer.Option(help="cpu, or a torch device such as cuda.")] = "cpu"
    regression: Annotated[
        bool, typer.Option("--regression", help="Labels are continuous values, not classes: predict numbers.")
    ] = False
    targets: Annotated[
        str | None,
        typer.Option(
            help="What labels are: classes, values (as --regression), labels (any number of them), ordered or counts; by default "
            "what they look like.",
            show_default=False,
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(help="All classes or labels, separated by commas; ordered ones the least first.", show_default=False),
    ] = None
    cache: CacheFolder = None
    unreadable: Unreadable = FAIL
    label_column: Annotated[
        str | None,
        typer.Option(
            help="A table's column of labels; several of 0 and 1, separated by commas, a label each; or a comparison that makes "
            'two classes of one, in quotes: "num > 0".',
            show_default=False,
        ),
    ] = None
    client_column: Annotated[
        str | None, typer.Option(help="A table's column that says whose each row is.", show_default=False)
    ] = None
    path_column: PathColumn = None
    text_column: TextColumn_ = None
    split_column: Annotated[str | None, typer.Option(help="A table's column that says train or test.", show_default=False)] = None
    block_column: Annotated[
        str | None,
        typer.Option(help="A table's column that says which rows belong together: the recording, the visit.", show_default=False),
    ] = None
    columns: Annotated[
        str | None, typer.Option(help="The columns of numbers and categories to use, separated by commas.", show_default=False)
    ] = None
    release_words: Annotated[
        int, typer.Option(help="How many training rows of one client must have a word of a table for it to be a category.", min=1)
    ] = RELEASE_WORDS

    def source(self, data: Sequence[str]) -> Source:
        """The same samples before they are numbers."""
        named = {name: getattr(self, name) for name in ROLES}
        kind = COLUMNS if self.path_column is None and self.text_column is None else None
        which = Columns.of(
            _listed(self.columns), regression=self.regression, targets=self.targets, names=_listed(self.labels), **named
        )
        given: Any = data[0] if len(data) == 1 else list(data)
        return source_of(made_at(given) if names_code(given) else given, which, kind)

    def load(self, data: str | Sequence[str]) -> Dataset:
        """The data set at a path, at several (each a client), or an embedded one; raw samples go through the backbone, or a
        table's encoder."""
        given: Any = data[0] if not isinstance(data, str) and len(data) == 1 else data
        if isinstance(given, str) and given.endswith(".py"):
            raise OptionError(f"name what is in {given}: {given}:NAME, a data set or a function that makes one")
        if names_code(given):
            given = made_at(given)
        elif isinstance(given, str) and self.backbone is None and not is_raw(given):
            return load_dataset(given, self.regression, self.targets, _listed(self.labels) or None)
        elif not isinstance(given, str):
            odd = next((path for path in given if not is_raw(path)), None)
            if odd is not None:
                raise FileError(f"{odd} is no table; of several files each is a client, and a .csv or .parquet")
        which: dict[str, Any] = {name: getattr(self, name) for name in ROLES}
        which |= {"columns": _listed(self.columns), "regression": self.regression, "targets": self.targets}
        which |= {"labels": _listed(self.labels) or None, "release_words": self.release_words}
        if self.backbone is None:
            return load_data(given, **which)
        from gramfold.backbones import open_backbone

        opened = open_backbone(self.backbone, self.pooling, self.device)
        options: dict[str, Any] = {"cache": self.cache or default_cache(), "unreadable": self.unreadable}
        with show_extraction(opened.kind) as progress:
            return load_data(given, opened, progress=progress, **options, **which)


def made_at(place: str) -> Any:
    """The data that FILE.py:NAME stands for; a function or a class is called for it."""
    found = object_at(place, "data")
    if inspect.isroutine(found) or isinstance(found, type):
        try:
            found = found()
        except GramfoldError:
            raise
        except Exception as error:  # the user's own code
            raise OptionError(f"data {place} failed: {type(error).__name__}: {error}") from None
    if isinstance(found, Federation):
        raise OptionError(f"data {place} is a Federation, which is cut already; give the data that it is cut from, or use gf.run")
    return found


def _listed(names: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (names or "").split(",") if name.strip())


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `reading` is on the command line the options of `Reading`."""
    hints = get_type_hints(Reading, include_extras=True)
    ours = [
        inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=hints[option.name])
        for option in fields(Reading)
    ]
    others = [part for part in inspect.signature(command).parameters.values() if part.name != "reading"]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        command(reading=Reading(**{part.name: given.pop(part.name) for part in ours}), **given)

    parameters = [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in others] + ours
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {part.name: part.annotation for part in parameters}
    return call


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
    if not seen[2]:
        return  # nothing was to be extracted
    spent = duration(time.perf_counter() - begun)
    console.print(f"{seen[0]} {what}, {seen[1]} computed in {spent}: {rate()}", markup=False, highlight=False, soft_wrap=True)
