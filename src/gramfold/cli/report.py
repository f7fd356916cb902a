"""`gramfold report`: rewrites the page from the JSON of a run or a bench, or writes one page for several runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gramfold import wire
from gramfold.cli.benches import from_clone
from gramfold.errors import MALFORMED, OptionError
from gramfold.report import render_page, render_runs
from gramfold.report.runs import Named
from gramfold.results.folder import REPORT, RESULT, read_page

RUNS, BENCH = "comparison.html", "bench.json"


def report(
    results: Annotated[
        list[Path], typer.Argument(help="A result.json, or the folder of a run; several are compared. Or a bench's.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"Where to write the page; next to the result if not given, or {RUNS} for several."),
    ] = None,
) -> None:
    """Write report.html from a result.json or a bench.json; from several results, a page that has them side by side."""
    found = [(result, read_page(_file(result))) for result in results]
    for result, content in found:
        if "bench" in content and len(found) > 1:
            raise OptionError(f"{result} is a bench's: its page stands alone; give one at a time")
        render = from_clone("gramfold.report.bench").render_bench if "bench" in content else render_page
        page = _rendered(str(result), render, content)
    target = out
    if len(found) > 1:
        page = _rendered("one of these", render_runs, _named(found))
        target = out or Path(RUNS)
    result = results[0]
    target = target or (result / REPORT if result.is_dir() else result.with_name(REPORT))
    wire.write_atomically(target, page.encode(), public=True)
    typer.echo(f"wrote {target}")


def _rendered(what: str, render: Callable[[Any], str], content: Any) -> str:
    """The page; whatever a file from elsewhere makes it stumble over, it is no result."""
    try:
        page = render(content)
        page.encode()
    except MALFORMED:
        raise OptionError(f"{what} is not a result of gramfold run or gramfold bench") from None
    return page


def _file(given: Path) -> Path:
    """The file of a run or of a bench in a folder."""
    return given / BENCH if (given / BENCH).is_file() and not (given / RESULT).exists() else given


def _named(found: list[tuple[Path, dict[str, object]]]) -> list[Named]:
    """Runs by their folders' names, or by whole paths where these are not enough to tell them apart."""
    folders = [path.parent if path.name == RESULT else path for path, _ in found]
    short = [folder.absolute().name for folder in folders]
    names = short if len(set(short)) == len(short) else [str(path) for path, _ in found]
    return [(name, content) for name, (_, content) in zip(names, found, strict=True)]
