"""Tables made of cells: each a method on a partition, run in a process of its own, kept as JSON, and skipped once it is there.

Small models leave a GPU waiting for Python: several cells at a time use it better, at the price of seconds that are no longer
those of a free machine.
"""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gramfold as gf

LATE = 25.0
"""Seconds after the end by which a cell that is still running is stopped."""


def run_cells(
    module: str,
    cells: Sequence[str],
    arguments: Sequence[str],
    out: Path,
    jobs: int,
    until: float = math.inf,
    seconds: Mapping[str, float] | None = None,
) -> list[Any]:
    """Run `python -m module arguments --cell CELL` for every cell that has no result yet; the results of all that have one.
    `until`: on the monotonic clock; a cell that takes so many `seconds` does not begin where it would not end by then."""
    out.mkdir(parents=True, exist_ok=True)
    threads = str(max(1, len(os.sched_getaffinity(0)) // jobs))
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}

    def run(cell: str) -> None:
        if cell_path(out, cell).exists() or time.monotonic() + (seconds or {}).get(cell, 0.0) > until:
            return
        begun, left = time.perf_counter(), None if until == math.inf else until + LATE - time.monotonic()
        asked = [sys.executable, "-m", module, *arguments, "--cell", cell]
        try:
            ended = "failed" if subprocess.run(asked, env=environment, check=False, timeout=left).returncode else "done"
        except subprocess.TimeoutExpired:
            ended = "stopped"
        print(f"{cell}: {ended}, {time.perf_counter() - begun:.0f} s", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, cells))
    return [json.loads(path.read_text()) for path in (cell_path(out, cell) for cell in cells) if path.exists()]


def cell_path(out: Path, cell: str) -> Path:
    return out / f"{cell.replace('/', '_').replace(':', '').replace(' ', '-')}.json"


def run_cell(cell: str, method: Any, federation: gf.Federation, out: Path, device: str) -> None:
    """Run one cell, going on from its checkpoint if there is one, and keep its figures."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    result = gf.run(
        method, federation, device=device, keep_heads=False, evaluate_every=max(1, method.rounds // 10),
        checkpoint=out / "checkpoints" / cell_path(out, cell).stem,
    )  # fmt: skip
    taken = {"wall_seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - begun_cpu}
    figures = {"cell": cell, "client_count": len(federation), **taken, **result.to_dict()}
    path = cell_path(out, cell)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(figures))
    part.replace(path)


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """One row per result."""
    rows = ["| method | accuracy % | worst 10 % | shared model % | rounds | up / client | down / client | seconds | chosen |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]  # fmt: skip
    for result in results:
        clients = result["client_count"]
        trained = sum(seconds for phase, seconds in result["seconds"].items() if phase not in ("evaluate", "tuning"))
        chosen = ", ".join(f"{key} {value:.3g}" for key, value in result["chosen"].items() if key != "validation_accuracy")
        cells = [
            result["cell"].partition("/")[2], _percent(result["mean_accuracy"]), _percent(result["worst_decile_accuracy"]),
            _percent(result["global_accuracy"]), str(result["rounds"]), f"{result['uplink_bytes'] / clients / 1e6:.2f} MB",
            f"{result['downlink_bytes'] / clients / 1e6:.2f} MB", f"{trained:.1f}", chosen,
        ]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"
