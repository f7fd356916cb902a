"""Very many small clients: how fast they are worked through, in how much memory, and what a head takes on disk.

Each size runs in a process of its own, so that its peak of memory is its own. Clients are drawn as they are asked for, a block at
a time: 20 samples of 64 numbers, classes in shares of the client's own.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gramfold import __version__
from gramfold.bench.apart import apart, peak_bytes, printed
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Table
from gramfold.bench.machine import commit, limits, share
from gramfold.engines.streamed import run_streamed
from gramfold.engines.workers import cpu_count
from gramfold.federation import Federation
from gramfold.methods import PACE
from gramfold.results.shards import Streamed, load_streamed

BLOCK = 1024
"""Clients that are drawn together."""
READS = 300
MOST = 1_000_000


class Scale(Bench):
    name: ClassVar[str] = "scale"
    paper: ClassVar[str] = ""
    summary: ClassVar[str] = "clients a second, peak memory and bytes a head at 10,000 clients and more"
    settings: ClassVar[Mapping[str, Any]] = {
        "clients": [10_000, 100_000], "full": False, "samples": 20, "inputs": 64, "features": 256, "classes": 10,
        "processes": None, "growth": True,
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {"clients": [300], "features": 40, "growth": False}

    def cells(self, options: Options) -> Sequence[Cell]:
        usual = {key: options[key] for key in ("samples", "inputs", "features", "classes", "processes")}
        sizes = [*options["clients"], *([MOST] if options["full"] else [])]
        cells = [Cell(f"{size} clients", partial(measured, {**usual, "clients": size})) for size in sizes]
        for what, values in GROWTH.items() if options["growth"] else ():
            cells += [
                Cell(f"{what}/{value}", partial(measured, {**usual, "clients": min(sizes[0], FEWER), what: value}))
                for value in values
            ]
        return cells

    def tables(self, found: Found, options: Options) -> Sequence[Table]:
        sizes = [key for key in found if key.endswith(" clients")]
        rows = [[key, *(found[key][name] for name in COLUMNS)] for key in sizes]
        about = "{samples} samples of {inputs} numbers each, {features} features, {classes} classes".format(**options.settings)
        tables = [_table("Clients", ["", *COLUMNS.values()], rows, f"{about}. Seconds are of everything, reading too.")]
        for what in GROWTH:
            rows = [
                [key.partition("/")[2], *(found[key][name] for name in PARTS)] for key in found if key.startswith(f"{what}/")
            ]  # fmt: skip
            if rows:
                many = next(figures["clients"] for key, figures in found.items() if key.startswith(f"{what}/"))
                tables.append(_table(f"By {what}", [what, *PARTS.values()], rows, f"{many} clients, otherwise {about}."))
        return tables


FEWER = 4_000
GROWTH = {"samples": [5, 20, 80, 320], "features": [64, 256, 1024], "classes": [2, 10, 40]}
"""What is varied, one at a time, at the first size or at FEWER clients."""
COLUMNS = {
    "clients_per_second": "clients a second", "seconds": "seconds", "cpu_seconds": "processor's seconds",
    "clients_per_cpu_second": "clients a processor's second", "peak_megabytes": "peak memory, MB",
    "bytes_per_head": "bytes a head", "limit_share": "share of the limit",
    "read_milliseconds": "ms to read one", "slow_read_milliseconds": "ms, 99 of 100",
}  # fmt: skip
PARTS = {
    "cpu_milliseconds_per_client": "processor's ms a client", "clients_per_second": "clients a second",
    "bytes_per_head": "bytes a head", "peak_megabytes": "peak memory, MB",
}  # fmt: skip


def _table(title: str, columns: list[str], rows: list[list[Any]], note: str) -> Table:
    return {"title": title, "columns": columns, "rows": rows, "note": note}


def customers(clients: int, samples: int, inputs: int, classes: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Clients with class shares and a shift of their own; the same ones every time."""
    centres = 0.35 * np.random.default_rng(0).standard_normal((classes, inputs), dtype=np.float32)
    for block in range(0, clients, BLOCK):
        rng, many = np.random.default_rng([1, block]), min(BLOCK, clients - block)
        shares = rng.dirichlet(np.full(classes, 0.5), many).cumsum(1)
        y = (rng.random((many, samples))[..., None] > shares[:, None]).sum(2).clip(max=classes - 1)
        X = rng.standard_normal((many, samples, inputs), dtype=np.float32) + centres[y]
        X += 0.15 * rng.standard_normal((many, 1, inputs), dtype=np.float32)
        yield from ((f"client-{block + k}", X[k], y[k]) for k in range(many))


def measured(about: Mapping[str, Any]) -> Figures:
    """The figures of one size, in a process of its own."""
    return apart(__name__, about, f"{about['clients']} clients")


def main(about: str) -> None:
    """Print the figures of one size."""
    with tempfile.TemporaryDirectory(prefix="gramfold-scale-") as folder:
        printed(partial(_figures, Path(folder) / "heads"), about)


def _figures(
    folder: Path, clients: int, samples: int, inputs: int, features: int, classes: int, processes: int | None
) -> dict[str, Any]:
    map = f"bias+relu:{features - 1}"
    method = PACE(features=map, refinement=map, groups=False)
    busy, begun = os.times(), time.perf_counter()
    federation = Federation.from_stream(partial(customers, clients, samples, inputs, classes), test_size=0.0)
    looked = time.perf_counter() - begun
    run = run_streamed(method, federation, folder, processes=processes, progress=False)
    seconds = time.perf_counter() - begun
    cpu = sum(os.times()[:4]) - sum(busy[:4])
    count = processes or cpu_count()
    reads, peak = _reads(load_streamed(folder), clients), _peak(count)
    limit = limits(quick=clients < 1000)
    # the fold, and every sample's way through the shared triangle
    least = share(limit, seconds, 2.0 * clients * samples * features**2)
    return {
        "clients": clients, "samples": samples, "inputs": inputs, "features": features, "classes": classes,
        "processes": count, "seconds": seconds, "look_seconds": looked, "fold_seconds": run.seconds["fold"],
        "personalize_seconds": run.seconds["personalize"], "clients_per_second": clients / seconds, "cpu_seconds": cpu,
        "clients_per_cpu_second": clients / cpu, "cpu_milliseconds_per_client": 1000 * cpu / clients,
        "load": os.getloadavg()[0], "peak_megabytes": peak / 1e6, "limit_share": least, "bytes_per_head": run.bytes_per_head,
        "read_milliseconds": float(np.median(reads)), "slow_read_milliseconds": float(np.quantile(reads, 0.99)),
        "version": __version__, "commit": commit(), "limits": limit,
    }  # fmt: skip


def _reads(run: Streamed, clients: int) -> list[float]:
    """Milliseconds of reading heads at random, each its first time; the first one of a run opens its files."""
    places = np.random.default_rng(0).choice(clients, min(READS, clients), replace=False)
    found = []
    for place in places.tolist():
        begun = time.perf_counter()
        run.head(f"client-{place}")
        found.append(1000 * (time.perf_counter() - begun))
    return found


def _peak(processes: int) -> float:
    """The most memory of this process, and of so many as the largest beside it: at most what they had at one time."""
    import resource

    return peak_bytes() + processes * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024.0


BENCH = Scale()
