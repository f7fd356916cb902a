"""Runs the cells of a bench, one after the other or several at a time, and keeps each as soon as it is finished."""

import fnmatch
import json
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib import metadata
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options
from gramfold.bench.registry import open_bench
from gramfold.engines.workers import cpu_count
from gramfold.errors import GramfoldError
from gramfold.report.bench import render_bench
from gramfold.results.saved import make_folder
from gramfold.wire.record import plain

CELLS, IDENTITY, CONTENT, PAGE = "cells", "options.json", "bench.json", "report.html"
Progress = Callable[[int, int, str, float], None]
"""Told after each cell: how many are done, of how many, its key and its seconds."""


def run_bench(
    bench: Bench,
    options: Options,
    folder: Path,
    *,
    only: Sequence[str] = (),
    jobs: int = 1,
    minutes: float | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure the cells that the folder does not hold yet, then write and return its content.

    `only`: keys, with * for anything. `minutes`: no cell is begun after that; the next call goes on. `jobs`: how many cells are
    measured at a time, each in a process: small models leave an accelerator waiting, at the price of seconds that are no longer
    those of a free machine.
    """
    _require_same(folder, bench, options)
    listed = bench.cells(options)
    cells = {cell.key: cell for cell in listed}
    assert len(cells) == len(listed), "two cells have one key"
    named = {key for key in cells if not only or any(fnmatch.fnmatchcase(key, pattern) for pattern in only)}
    if not named:
        raise GramfoldError(f"no cell's key is like {', '.join(only)}; there are {len(cells)}, such as {next(iter(cells))}")
    wanted = named.union(*(cells[key].needs for key in named))
    missing = [cell for key, cell in cells.items() if key in wanted and not _path(folder, key).exists()]
    ends = None if minutes is None else time.monotonic() + 60 * minutes
    try:
        if jobs == 1:
            _one_by_one(bench, options, folder, missing, ends, progress)
        else:
            _side_by_side(bench, options, folder, missing, ends, progress, jobs)
    finally:  # also where it was stopped: what there is can be looked at
        content = contents(bench, options, folder)
        if content["cells"]:
            wire.write_atomically(folder / CONTENT, _json(content), public=True)
            wire.write_atomically(folder / PAGE, render_bench(content).encode(), public=True)
    return content


def contents(bench: Bench, options: Options, folder: Path) -> dict[str, Any]:
    """All that was measured, and the tables and plots of it."""
    found = _read(folder, [cell.key for cell in bench.cells(options)])
    return {
        "bench": bench.name, "paper": bench.paper, "versions": versions(), "machine": machine(found),
        "seeds": list(options.seeds), "options": options.identity(), "cells": dict(found),
        "tables": list(bench.tables(found, options)), "plots": list(bench.plots(found, options)),
    }  # fmt: skip


def measure(bench: Bench, options: Options, folder: Path, key: str) -> float:
    """Measure one cell and keep its figures; the seconds it took."""
    cell = next(cell for cell in bench.cells(options) if cell.key == key)
    needed = _read(folder, cell.needs)
    begun = time.perf_counter()
    figures = dict(plain(dict(cell.measure(*(needed[one] for one in cell.needs)))))
    seconds = time.perf_counter() - begun
    kept = {"key": key, "figures": {**figures, "wall_seconds": seconds, "device": device_name(options.device)}}
    if not (folder / IDENTITY).exists():  # not before there is something to keep
        make_folder(folder / CELLS)
        wire.write_atomically(folder / IDENTITY, _json(_identity(bench, options)), public=True)
    wire.write_atomically(_path(folder, key), _json(kept), public=True)
    return seconds


def _measure_elsewhere(name: str, options: Options, folder: Path, key: str) -> float:
    """In a process of its own, which knows a bench by its name."""
    return measure(open_bench(name), options, folder, key)


def _one_by_one(
    bench: Bench, options: Options, folder: Path, cells: Sequence[Cell], ends: float | None, progress: Progress | None
) -> None:
    for done, cell in enumerate(cells, 1):
        if ends is not None and time.monotonic() >= ends:
            return
        seconds = measure(bench, options, folder, cell.key)
        if progress is not None:
            progress(done, len(cells), cell.key, seconds)


def _side_by_side(
    bench: Bench, options: Options, folder: Path, cells: Sequence[Cell], ends: float | None, progress: Progress | None, jobs: int
) -> None:
    """A cell begins when another ends, so that time that runs out leaves as few as possible begun. One that fails stops only
    those that need it, and is named at the end."""
    waiting, running, done, failed = list(cells), dict[Future[float], str](), 0, dict[str, BaseException]()
    threads = str(max(1, cpu_count() // jobs))
    os.environ |= {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        while waiting or running:
            if ends is not None and time.monotonic() >= ends:
                waiting.clear()
            waiting = [cell for cell in waiting if not failed.keys() & set(cell.needs)]
            for cell in [cell for cell in waiting if all(_path(folder, key).exists() for key in cell.needs)]:
                if len(running) < jobs:
                    waiting.remove(cell)
                    running[pool.submit(_measure_elsewhere, bench.name, options, folder, cell.key)] = cell.key
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                key, done = running.pop(future), done + 1
                if (error := future.exception()) is not None:
                    failed[key] = error
                elif progress is not None:
                    progress(done, len(cells), key, future.result())
    for key, error in failed.items():
        raise GramfoldError(f"{len(failed)} cells failed, such as {key}: {error}") from error


# --- the folder ---


def _identity(bench: Bench, options: Options) -> dict[str, Any]:
    return dict(plain({"bench": bench.name, **options.identity()}))


def _require_same(folder: Path, bench: Bench, options: Options) -> None:
    """Raise if the folder holds cells of another bench, other data or other settings."""
    path, mine = folder / IDENTITY, _identity(bench, options)
    if path.exists() and (theirs := wire.read_json(wire.read(path))) != mine:
        key = next(key for key in mine if theirs.get(key) != mine[key])
        raise GramfoldError(f"{folder} holds cells of another run ({key}: {theirs.get(key)}); choose another folder")


def _path(folder: Path, key: str) -> Path:
    return folder / CELLS / f"{wire.file_name(key)}.json"


def _read(folder: Path, keys: Sequence[str]) -> Found:
    found: dict[str, Figures] = {}
    for key in keys:
        if (path := _path(folder, key)).exists():
            found[key] = wire.read_json(wire.read(path))["figures"]
    return found


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1, allow_nan=False).encode()


# --- where it ran ---


def versions() -> dict[str, str]:
    """Of what the figures depend on; torch only where it is there."""
    found = {"python": platform.python_version()}
    for name in ("gramfold", "numpy", "scipy", "scikit-learn", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine(found: Found) -> dict[str, Any]:
    """This one, and the devices that cells were measured on, which may be another's."""
    devices = sorted({str(figures["device"]) for figures in found.values()})
    return {"system": platform.system(), "processor": platform.machine(), "cores": cpu_count(), "devices": devices}


def device_name(device: str) -> str:
    """
    >>> device_name("cpu")
    'cpu'
    """
    if not device.startswith("cuda"):
        return device
    import torch

    return str(torch.cuda.get_device_name(device))
