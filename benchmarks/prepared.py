"""Data sets of packages as arrays, for machines that do not have the packages.

    python -m benchmarks.prepared FOLDER [--data FOLDER]

`FOLDER/prepared` then holds what natural, untouched, site_tables, more_tables and texts read, and `--data FOLDER` finds it.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import Given

Arrays = Sequence[Any]
READERS = ("natural", "untouched", "site_tables", "more_tables", "texts")
"""Benches with a function `sources(given)`: what they read, by name."""


def arrays(given: Given, bench: str, name: str, read: Callable[[], Arrays]) -> Arrays:
    """What `read` gives, or gave on another machine."""
    path = given.file(_file(bench, name))
    if path is None:
        return read()
    with np.load(path) as found:
        return [found[f"part_{place}"] for place in range(len(found.files))]


def _file(bench: str, name: str) -> str:
    return f"prepared/{bench}-{re.sub('[^a-zA-Z0-9]+', '-', name)}.npz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default=",".join(READERS))
    asked = parser.parse_args()
    for bench in asked.only.split(","):
        for name, read in import_module(f"benchmarks.{bench}").sources(Given(asked.data)).items():
            path = asked.folder / _file(bench, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            parts = {f"part_{place}": np.asarray(part) for place, part in enumerate(read()) if part is not None}
            np.savez_compressed(path, **parts)
            print(f"{path} {path.stat().st_size / 1e6:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
