"""`gramfold report`: rewrites the page from a result.json."""

from pathlib import Path
from typing import Annotated

import typer

from gramfold import wire
from gramfold.engines.folder import REPORT, read_page
from gramfold.errors import GramfoldError
from gramfold.report import render_page


def report(
    result: Annotated[Path, typer.Argument(help="A result.json, or the folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the page; next to the result if not given.")] = None,
) -> None:
    """Write report.html from a result.json."""
    content = read_page(result)
    target = out or (result / REPORT if result.is_dir() else result.with_name(REPORT))
    try:
        page = render_page(content)
    except (ValueError, KeyError, TypeError):
        raise GramfoldError(f"{result} is not a result of gramfold run") from None
    wire.write_atomically(target, page.encode())
    typer.echo(f"wrote {target}")
