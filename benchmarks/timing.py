"""What the benchmarks share: best-of-n timing, the machine's own limit, and a result file."""

import json
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.provenance import RESULTS, stamp


def best_of(repeats: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs."""
    return min(timed(work) for _ in range(repeats))


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_interleaved(repeats: int, works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The fastest run of each, taken in turns so that a busy neighbour disturbs all alike.

    A turn is two runs of which the better counts: the first after another contender's pays for allocating memory again.
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            best[name] = min(best[name], best_of(2, work))
    return best


def gemm_rate(size: int = 2048) -> float:
    """Measured float64 FLOP/s of a large matrix product on all cores: the machine's limit."""
    a = np.random.default_rng(0).standard_normal((size, size))
    return 2 * size**3 / best_of(5, lambda: a @ a)


def resident_bytes() -> int:
    """Memory this process holds now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """The most memory this process has held so far (VmHWM: unlike ru_maxrss it does not inherit the parent's)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def write(name: str, figures: dict[str, Any]) -> None:
    """Print the figures and keep them as JSON."""
    figures = {"cores": len(os.sched_getaffinity(0)), "machine": platform.machine(), **figures}
    keep(name, figures)
    print(json.dumps(figures, indent=1))


def load(name: str) -> Any:
    """The figures of a result file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def keep(name: str, figures: Any) -> None:
    """Keep figures as JSON, with a stamp that says what they are of."""
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    stamp(name)
