"""`gramfold report`: rewrites the page from a result.json, or writes one page for several."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold import wire
from gramfold.engines.folder import REPORT, RESULT, read_page
from gramfold.errors import GramfoldError
from gramfold.report import render_page, render_runs
from gramfold.report.runs import Named

RUNS = "comparison.html"


def report(
    results: Annotated[list[Path], typer.Argument(help="A result.json, or the folder of a run; several are compared.")],
    out: Annotated[
        Path | None, typer.Option(help=f"Where to write the page; next to the result if not given, or {RUNS} for several.")
    ] = None,
) -> None:
    """Write report.html from a result.json; from several, a page that has them side by side."""
    found = [(result, read_page(result)) for result in results]
    for result, content in found:
        try:
            page = render_page(content)
        except (ValueError, KeyError, TypeError):
            raise GramfoldError(f"{result} is not a result of gramfold run") from None
    target = out
    if len(found) > 1:
        page = render_runs(_named(found))
        target = out or Path(RUNS)
    result = results[0]
    target = target or (result / REPORT if result.is_dir() else result.with_name(REPORT))
    wire.write_atomically(target, page.encode(), public=True)
    typer.echo(f"wrote {target}")


def _named(found: list[tuple[Path, dict[str, object]]]) -> list[Named]:
    """Runs by their folders' names, or by whole paths where these are not enough to tell them apart."""
    folders = [path.parent if path.name == RESULT else path for path, _ in found]
    short = [folder.absolute().name for folder in folders]
    names = short if len(set(short)) == len(short) else [str(path) for path, _ in found]
    return [(name, content) for name, (_, content) in zip(names, found, strict=True)]
