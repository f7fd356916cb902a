"""The fold on a Dask cluster of one and of two worker processes, a thread each.

    python -m benchmarks.dask_fold [--turns 5] [--clients 48] [--rows 500] [--features 1500]

AFL over clients that are read where they are worked on: what is timed is the round of uploads, from the first task to the one
sum. Both clusters are up all the time and take turns; the best turn of each counts. Beside the seconds stand the processor's
seconds of the workers, which a busy machine disturbs less, and how much faster two workers are than one at plain products of
matrices at the same time: what this machine has to give. Under three minutes on two quiet cores.
"""

import argparse
import json
import time
from functools import partial
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.marks import SCALE, fill
from benchmarks.provenance import age
from benchmarks.timing import RESULTS, write

INPUTS, CLASSES, SIDE = 64, 10, 1024


def read(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A client's samples, as from a file of its own."""
    rng = np.random.default_rng(seed)
    codes = np.arange(rows) % CLASSES
    return np.random.default_rng(0).standard_normal((CLASSES, INPUTS))[codes] + rng.standard_normal((rows, INPUTS)), codes


def product(times: int) -> float:
    """Seconds of so many products on one worker."""
    matrix = np.random.default_rng(0).standard_normal((SIDE, SIDE))
    begun = time.perf_counter()
    for _ in range(times):
        matrix @ matrix
    return time.perf_counter() - begun


def processor_seconds() -> float:
    return time.process_time()


def turn(method: gf.AFL, federation: gf.Federation, client: Any) -> dict[str, float]:
    before = sum(client.run(processor_seconds).values())
    result = gf.run(method, federation, engine="dask", cluster=client, keep_heads=False)
    spent = sum(client.run(processor_seconds).values()) - before
    return {"fold_seconds": result.seconds["local"], "processor_seconds": spent}


def products(client: Any, times: int = 12) -> float:
    """Products a second of all workers at the same time."""
    client.run(product, 1)
    begun = time.perf_counter()
    workers = len(client.run(product, times))
    return workers * times / (time.perf_counter() - begun)


def difference(method: gf.AFL, federation: gf.Federation, client: Any) -> float:
    """Of the shared head's weights from those of one process, relative to the largest."""
    weights = [
        gf.run(method, federation, keep_heads=False, **where).global_head.streams[0].weights
        for where in ({}, {"engine": "dask", "cluster": client})
    ]
    return float(np.abs(weights[1] - weights[0]).max() / np.abs(weights[0]).max())


def measured(turns: int, clients: int, rows: int, features: int) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    federation = gf.Federation.from_clients(
        {str(k): partial(read, k, rows) for k in range(clients)}, labels=range(CLASSES), test_size=0.05
    )
    method = gf.AFL(features=f"bias+fourier:{features}", penalty=1.0)
    clusters = {n: LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") for n in (1, 2)}
    connected = {n: Client(cluster, set_as_default=False) for n, cluster in clusters.items()}
    try:
        for client in connected.values():
            turn(method, federation, client)  # imports, and memory of the workers
        seen: dict[int, list[dict[str, float]]] = {1: [], 2: []}
        rate: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(turns):
            for n, client in connected.items():
                seen[n].append(turn(method, federation, client))
                rate[n].append(products(client))
        apart = difference(method, federation, connected[2])
    finally:
        for n in connected:
            connected[n].close()
            clusters[n].close()
    best = {n: min(each["fold_seconds"] for each in seen[n]) for n in seen}
    spent = {n: min(each["processor_seconds"] for each in seen[n]) for n in seen}
    return {
        "clients": clients, "rows": rows, "features": features + 1, "turns": turns,
        "fold_seconds": best, "processor_seconds": spent, "all_turns": seen,
        "speed_up": best[1] / best[2], "machine_speed_up": max(rate[2]) / max(rate[1]),
        "work_of_two": spent[2] / spent[1], "difference": apart,
    }  # fmt: skip


def page(found: dict[str, Any]) -> None:
    """Write the figures into the page."""
    fold, spent = ({int(n): seconds for n, seconds in found[key].items()} for key in ("fold_seconds", "processor_seconds"))
    lines = [
        f"The fold of {found['clients']} clients of {found['rows']} rows and {found['features']} features "
        f"(`python -m benchmarks.dask_fold`), on {found['cores']} cores:", "",
        "| workers of a thread each | seconds | processor's seconds | times as fast | plain products, times as fast |",
        "| ---: | ---: | ---: | ---: | ---: |",
        f"| 1 | {fold[1]:.2f} | {spent[1]:.2f} | 1 | 1 |",
        f"| 2 | {fold[2]:.2f} | {spent[2]:.2f} | {found['speed_up']:.2f} | {found['machine_speed_up']:.2f} |",
        "", age("dask_fold"),
    ]  # fmt: skip
    fill(SCALE, "dask_fold", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("turns", 5), ("clients", 48), ("rows", 500), ("features", 1500)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    found = measured(**vars(parser.parse_args()))
    write("dask_fold", found)
    page(json.loads((RESULTS / "dask_fold.json").read_text()))


if __name__ == "__main__":
    main()
