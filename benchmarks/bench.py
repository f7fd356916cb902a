"""A bench: cells that know nothing of each other, each measured in a process of its own core and kept as soon as it is done.

A script says what its cells are, how one is measured, and what pages read of all rows:

    BENCH = Bench("sensors", cells, measure)

`python -m benchmarks sensors` measures those cells that are missing, or that are of older code than their methods now have.
"""

import json
import math
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import kept
from benchmarks.provenance import code_of, made_here

Row = dict[str, Any]
LATE = 15.0
"""Seconds after the end by which a cell that is still running is given up."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Given:
    """What is said on the command line, for all benches alike. `data`: a folder as ../shared/data."""

    data: Path | None = None
    seeds: int | None = None
    device: str = "cpu"
    rounds: int | None = None
    folder: Path = kept.KEPT

    def file(self, name: str) -> Path | None:
        """A file of the folder, where it is there."""
        path = self.data / name if self.data is not None else None
        return path if path is not None and path.exists() else None


class Cell(NamedTuple):
    """`key`: what `measure` gets; `methods`: those whose code its figures are of; `needs`: the cell that comes first."""

    key: tuple[Any, ...]
    methods: tuple[str, ...] = ()
    seconds: float = 10.0
    needs: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return named(self.key)

    @property
    def code(self) -> dict[str, str]:
        return {method: code_of(method) for method in self.methods}


def named(key: Sequence[Any]) -> str:
    return "/".join(map(str, key))


class Bench(NamedTuple):
    """`cells`: the most valuable first. `figures`: what pages read, of all rows."""

    name: str
    cells: Callable[[Given], Iterable[Cell]]
    measure: Callable[..., list[Row]]
    figures: Callable[[list[Row]], Any] = list

    def stale(self, given: Given, again: bool = False) -> list[Cell]:
        """Cells that are missing or of older code, or all."""
        done = kept.read(self.name, given.folder)
        return [one for one in self.cells(given) if again or one.name not in done or done[one.name]["code"] != one.code]


def open_bench(name: str) -> Bench:
    found: Bench = import_module(f"benchmarks.{name}").BENCH
    return found


class Task(NamedTuple):
    bench: Bench
    cell: Cell


def run(benches: Sequence[Bench], given: Given, jobs: int, minutes: float = math.inf, only: str = "", again: bool = False) -> int:
    """Measure what is missing or stale, in the order of the benches; how many cells failed. `only`: cells with one of these texts
    in their names, apart by semicolons."""
    until, failed, ended = time.monotonic() + 60 * minutes, 0, 0
    todo = [
        Task(bench, cell)
        for bench in benches
        for cell in bench.stale(given, again)
        if any(map(cell.name.__contains__, only.split(";")))
    ]
    missing = {(task.bench.name, task.cell.name) for task in todo}
    count, made = len(todo), made_here()
    pool, flying = _pool(jobs), dict[Future[Any], Task]()
    while True:
        while len(flying) < jobs and (task := _next(todo, missing, until)) is not None:
            flying[pool.submit(_measured, task.bench.name, given, task.cell.key)] = task
        if not flying:
            break
        left = None if until == math.inf else max(until + LATE - time.monotonic(), 0)
        done, _ = wait(flying, timeout=left, return_when=FIRST_COMPLETED)
        if not done:
            print(f"{len(flying)} cells were cut short", flush=True)
            break
        broken = False
        for future in done:
            task = flying.pop(future)
            try:
                rows, seconds, problem = future.result()
            except BrokenProcessPool:
                rows, seconds, problem, broken = [], 0.0, "its process was ended", True
            ended += 1
            print(f"{ended} of {count}: {task.bench.name} {task.cell.name}: {problem or f'{seconds:.1f} s'}", flush=True)
            if problem:
                failed += 1
                continue
            missing.discard((task.bench.name, task.cell.name))
            line = {"cell": task.cell.name, "code": task.cell.code, **_of(made), "seconds": round(seconds, 2), "rows": rows}
            kept.append(task.bench.name, [line], given.folder)
        if broken:
            pool = _pool(jobs)
    pool.shutdown(wait=not flying, cancel_futures=True)
    for child in multiprocessing.active_children():
        child.terminate()
    for bench in benches:
        _tidy(bench, given)
    return failed


def _next(todo: list[Task], missing: set[tuple[str, str]], until: float) -> Task | None:
    """The first that may begin: what it needs is there, and it would end in time."""
    for place, task in enumerate(todo):
        waits = task.cell.needs and (task.bench.name, named(task.cell.needs)) in missing
        if not waits and time.monotonic() + task.cell.seconds <= until:
            return todo.pop(place)
    return None


def _tidy(bench: Bench, given: Given) -> None:
    """One line a cell, in the bench's order."""
    lines = kept.read(bench.name, given.folder)
    if lines:
        order = {cell.name: place for place, cell in enumerate(bench.cells(given))}
        kept.rewrite(bench.name, sorted(lines.values(), key=lambda line: order.get(line["cell"], len(order))), given.folder)


def _of(made: dict[str, Any]) -> dict[str, Any]:
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return {"commit": made["commit"], "machine": f"{made['cores']} cores, {made['device']}", "versions": versions}


# --- in a process of its own ---


def _pool(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    cores: Any = context.Queue()
    if jobs > 1:
        os.environ.update(dict.fromkeys(THREADS, "1"))
        available = sorted(os.sched_getaffinity(0))
        for place in range(jobs):
            cores.put(available[place % len(available)])
    return ProcessPoolExecutor(jobs, context, _begin, (cores if jobs > 1 else None,))


def _begin(cores: Any) -> None:
    """A core for each process: clients' threads are as many as there are cores."""
    if cores is not None:
        os.sched_setaffinity(0, {cores.get()})


def _measured(name: str, given: Given, key: tuple[Any, ...]) -> tuple[list[Row], float, str]:
    begun = time.perf_counter()
    try:
        rows = json.loads(json.dumps(open_bench(name).measure(given, *key), default=float))
    except Exception:
        return [], 0.0, " | ".join(line.strip() for line in traceback.format_exc(limit=-2).splitlines()[1:])
    return rows, time.perf_counter() - begun, ""


def seeds(given: Given, usual: int) -> Iterator[int]:
    return iter(range(usual if given.seeds is None else min(given.seeds, usual)))
