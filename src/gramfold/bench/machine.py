"""What a machine can do at most, and how a measurement stands to that and to an earlier one.

A second says little without the machine that it was measured on: beside every time stands the share of the machine's own limit
that the work would have had at least, from a product and a copy measured in the same run.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.bench.frame import Figures, Found
from gramfold.engines.workers import cpu_count

MOVED = 0.1
"""A time that moved by less of itself than this is as it was: so much the same code differs between two runs."""


WORK = "counted "
"""What begins the names of what was counted."""


def synchronize(device: str) -> None:
    """Wait until an accelerator is done with all it was given."""
    if device != "cpu":
        import torch

        getattr(torch, torch.device(device).type).synchronize()


def clock(work: Callable[[], Any], device: str = "cpu", times: int = 3) -> float:
    """The least seconds of several runs, after one that does not count."""
    work()
    return min(once(work, device) for _ in range(times))


def once(work: Callable[[], Any], device: str = "cpu") -> float:
    synchronize(device)
    begun = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - begun


def side_by_side(works: Mapping[str, Callable[[], Any]], device: str = "cpu", times: int = 3) -> dict[str, float]:
    """The least seconds of each, run in turn: what else the machine is busy with falls on all alike."""
    found = {name: float("inf") for name in works}
    for _ in range(times):
        for name, work in works.items():
            found[name] = min(found[name], once(work, device))
    return found


def limits(device: str = "cpu", quick: bool = False) -> dict[str, float]:
    """The rates, in float64, of a matrix product (operations a second) and of a copy (bytes read and written a second), with all
    cores, or on an accelerator."""
    size = 256 if quick else 2048 if device == "cpu" else 8192
    many = 2**20 if quick else 2**25 if device == "cpu" else 2**28
    if device == "cpu":
        square, long = np.random.default_rng(0).standard_normal((size, size)), np.ones(many)
        into, out = np.empty_like(square), np.empty_like(long)
        works: list[Callable[[], Any]] = [lambda: np.matmul(square, square, out=into), lambda: np.copyto(out, long)]
    else:
        import torch

        tensor = torch.randn(size, size, dtype=torch.float64, device=device)
        numbers = torch.zeros(many, dtype=torch.float64, device=device)
        works = [lambda: tensor @ tensor, lambda: numbers.clone()]
    product, copy = (clock(work, device) for work in works)
    return {"product_per_second": 2.0 * size**3 / product, "bytes_per_second": 16.0 * many / copy}


def share(limit: Figures, seconds: float, operations: float = 0.0, moved: float = 0.0) -> float:
    """The part of the time that the machine would have needed at the least: for so many operations, and so many bytes."""
    least = max(operations / float(limit["product_per_second"]), moved / float(limit["bytes_per_second"]))
    return least / seconds if seconds > 0 else 0.0


def commit() -> str:
    """The commit of the code that runs, with a + where files differ from it; "unknown" where it is no checkout."""
    if given := os.environ.get("GRAMFOLD_COMMIT"):
        return given
    where = Path(__file__).parent
    try:
        asked = (["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain", "--", "."])
        head, changed = (
            subprocess.run(ask, cwd=where, capture_output=True, text=True, check=True).stdout.strip() for ask in asked
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def described(device: str = "cpu", quick: bool = False) -> dict[str, Any]:
    """The cell that the others need: limits, cores and commit."""
    return {**limits(device, quick), "cores": cpu_count(), "commit": commit()}


def moved(old: Found, new: Found) -> list[tuple[str, str, float, float]]:
    """What became faster or slower: a cell's key, the name of its figure, then and now. Compared are figures whose name ends in
    `seconds`, `ratio` or `megabytes`, and what was counted, of cells that both have; those that are as they were are left out."""
    found = []
    for key in new:
        before = _flat(old.get(key, {}))
        for name, now in _flat(new[key]).items():
            then = before.get(name)
            timed = name.endswith(("seconds", "ratio", "megabytes")) and name != "wall_seconds"
            timed = timed or name.startswith(WORK)
            if not (timed and isinstance(now, int | float) and isinstance(then, int | float) and then > 0):
                continue
            if abs(now - then) > MOVED * then:
                found.append((key, name, float(then), float(now)))
    return sorted(found, key=lambda one: -abs(np.log(max(one[3], 1e-300) / one[2])))


def _flat(figures: Figures) -> dict[str, Any]:
    """With what was counted as figures of their own."""
    return {**figures, **{f"{WORK}{name}": count for name, count in figures.get("work", {}).items()}}


def comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> Sequence[str]:
    """Two runs' contents as lines: from which commit and machine, and what moved."""
    lines = [f"Compared with {_of(old)}; now {_of(new)}."]
    for key, name, then, now in moved(old.get("cells", {}), new["cells"]):
        lines.append(f"{key}, {name}: {then:.4g} -> {now:.4g} ({now / then:.2f}x)")
    return lines if len(lines) > 1 else [*lines, f"No figure moved by more than {MOVED:.0%}."]


def _of(content: Mapping[str, Any]) -> str:
    limit = content.get("cells", {}).get("machine", {})
    devices = ", ".join(content.get("machine", {}).get("devices", [])) or "unknown"
    return f"commit {limit.get('commit', 'unknown')} on {devices} ({limit.get('product_per_second', 0) / 1e9:.0f} GFLOP/s)"
