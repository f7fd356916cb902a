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
from gramfold.errors import MALFORMED, FileError, ResultError
from gramfold.report import render_page
from gramfold.results.result import Result
from gramfold.results.saved import make_folder
from gramfold.version import __version__

FORMAT = 2
"""The version of result.json; new keys, which older readers ignore, do not raise it. 1 may be without a checksum."""
RESULT, REPORT, EVENTS = "result.json", "report.html", "events.jsonl"


def page(results: Sequence[Result], *, seed: int, engine: str, device: str = "cpu", **more: Any) -> dict[str, Any]:
    """The content of result.json; `more` describes the data (`data`, `partition`)."""
    about = {"gramfold": __version__, "format": FORMAT, "seed": seed, "engine": engine, "device": device}
    return {**about, **more, "methods": [result.to_dict() for result in results]}


def seeds_page(pages: Sequence[Mapping[str, Any]], comparison: Mapping[str, Any]) -> dict[str, Any]:
    """The content of result.json for a run over several seeds: each one's page, and how the methods compare over them."""
    about = {key: value for key, value in pages[0].items() if key != "methods"}
    return {**about, "seeds": list(pages), "comparison": dict(comparison)}


def write_page(folder: Path, content: Mapping[str, Any], public: bool = True) -> None:
    """Write result.json and report.html. Figures that sites have told a server are for its operator alone: not `public`."""
    make_folder(folder)
    wire.write_sealed(folder / RESULT, content, public=public)
    wire.write_atomically(folder / REPORT, render_page(content).encode(), public=public)


def read_page(source: Path) -> dict[str, Any]:
    """The content that `write_page` wrote, from result.json or its folder."""
    path = source / RESULT if source.is_dir() else source
    try:
        content = json.loads(wire.read(path))
        written = content.get("format", 1)
    except MALFORMED:
        raise ResultError(f"{path} is not a result of gramfold run") from None
    try:
        content = content if written == 1 and wire.CHECKSUM not in content else wire.opened(content)
    except ValueError:
        raise FileError(f"{path} is not as it was written: its checksum is missing or does not fit") from None
    if not isinstance(written, int) or written > FORMAT:
        raise FileError(f"{path} was written by a newer gramfold (format {written}, this reads {FORMAT}); upgrade")
    found: dict[str, Any] = content
    return found


def load_result(folder: str | PathLike[str], allow_code: bool = False) -> Result:
    """The result that `Result.save` wrote: to evaluate, join, update and forget after a restart. `allow_code`: whether the class
    of a method that is not gramfold's own may be imported because the file names it."""
    return Result.load(folder, allow_code)
