"""What benches have measured: a line of JSON for each cell, in results/cells/NAME.jsonl, with the code and the machine it is of.

A line is written as soon as its cell is done; of several lines of a cell the last counts.
"""

import json
import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
KEPT = RESULTS / "cells"
Line = dict[str, Any]


def read(name: str, folder: Path | None = None) -> dict[str, Line]:
    """The last line of every cell of a bench."""
    path = (folder or KEPT) / f"{name}.jsonl"
    if not path.exists():
        return {}
    found = {}
    for text in path.read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:  # of a process that was killed while it wrote
            continue
        found[line["cell"]] = line
    return found


def append(name: str, lines: Iterable[Line], folder: Path | None = None) -> None:
    path = (folder or KEPT) / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def rewrite(name: str, lines: Iterable[Line], folder: Path | None = None) -> None:
    path = (folder or KEPT) / f"{name}.jsonl"
    part = path.with_suffix(".part")
    part.write_text("".join(json.dumps(line) + "\n" for line in lines))
    part.replace(path)


def load(name: str) -> Any:
    """The figures of a result file, or of a bench's cells; FileNotFoundError where there are neither."""
    lines = read(name)
    if lines:
        bench = import_module(f"benchmarks.{name}").BENCH
        return bench.figures([row for line in lines.values() for row in line["rows"]])
    return json.loads((RESULTS / f"{name}.json").read_text())
