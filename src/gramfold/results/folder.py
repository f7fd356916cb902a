"""A run's folder, as people and machines read it; `saved` has what it takes to take the run up again.

result.json        the figures
report.html        the same as a page
events.jsonl       how far a run over a network has come
"""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.errors import MALFORMED, GramfoldError
from gramfold.report import render_page
from gramfold.results.result import Result
from gramfold.results.saved import make_folder
from gramfold.version import __version__

FORMAT = 1
"""The version of result.json; new keys, which older readers ignore, do not raise it."""
RESULT, REPORT, EVENTS = "result.json", "report.html", "events.jsonl"


def page(results: Sequence[Result], *, seed: int, engine: str, device: str = "cpu", **more: Any) -> dict[str, Any]:
    """The content of result.json; `more` describes the data (`data`, `partition`)."""
    about = {"gramfold": __version__, "format": FORMAT, "seed": seed, "engine": engine, "device": device}
    return {**about, **more, "methods": [result.to_dict() for result in results]}


def seeds_page(pages: Sequence[Mapping[str, Any]], comparison: Mapping[str, Any]) -> dict[str, Any]:
    """The content of result.json for a run over several seeds: each one's page, and how the methods compare over them."""
    about = {key: value for key, value in pages[0].items() if key != "methods"}
    return {**about, "seeds": list(pages), "comparison": dict(comparison)}


def write_page(folder: Path, content: Mapping[str, Any]) -> None:
    """Write result.json and report.html."""
    make_folder(folder)
    wire.write_sealed(folder / RESULT, content, public=True)
    wire.write_atomically(folder / REPORT, render_page(content).encode(), public=True)


def read_page(source: Path) -> dict[str, Any]:
    """The content that `write_page` wrote, from result.json or its folder."""
    path = source / RESULT if source.is_dir() else source
    try:
        content = json.loads(wire.read(path))
        written = content.get("format", FORMAT)
    except MALFORMED:
        raise GramfoldError(f"{path} is not a result of gramfold run") from None
    try:
        content = wire.opened(content) if "checksum" in content else content  # older ones have none
    except ValueError:
        raise GramfoldError(f"{path} is not as it was written: its checksum does not fit") from None
    if not isinstance(written, int) or written > FORMAT:
        raise GramfoldError(f"{path} was written by a newer gramfold (format {written}, this reads {FORMAT}); upgrade")
    found: dict[str, Any] = content
    return found


def load_result(folder: str | PathLike[str]) -> Result:
    """The result that `Result.save` wrote: to evaluate, join, update and forget after a restart."""
    return Result.load(folder)
