"""PACE with a learned metric against the same size without one, and what it makes of a budget of bytes.

    python -m benchmarks learned --data FOLDER --device cuda

Six cuts (50 and 100 clients, dirichlet 0.1, 0.5, 1.0), three seeds. Pooled moments do not depend on the partition: each map is
folded once, and makes one cell with all cuts; so does every budget.
"""

import time
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.pace import CELLS, CIFAR, personalised
from gramfold.evaluation import score_head
from gramfold.federation import load_npz
from gramfold.federation.datasets import Dataset

WITHOUT = "bias+linear+fourier:{}:0.5"
LEARNED = "bias+linear+fourier:{}@learned"


PARTS = {"default": (WITHOUT.format(4096), LEARNED.format(4096)), "large": (LEARNED.format(24576),)}
BUDGETS = ("1MB", "2MB", "5MB", "10MB", "20MB", "50MB", "100MB", "300MB", "1GB")
KINDS = ("now", "before")


@lru_cache(1)
def _data(given: Given) -> Dataset:
    return load_npz(given.file(CIFAR))


def cells(given: Given) -> Iterator[Cell]:
    if given.file(CIFAR):
        yield from (Cell((part, spec), ("pace",), 120) for part, specs in PARTS.items() for spec in specs)
        yield from (Cell(("frontier", budget, kind), ("pace",), 90) for budget in BUDGETS for kind in KINDS)


def measure(given: Given, part: str, what: str, kind: str = "") -> list[Row]:
    rows = of_budget(given, what, kind) if kind else of_size(given, what)
    return [{"part": part, **row} for row in rows]


def of_size(given: Given, spec: str) -> Iterator[Row]:
    data = _data(given)
    pooled = gf.Federation.from_dataset(data, clients=50, partition="iid")
    gf.run(gf.AFL(), pooled, device=given.device, keep_heads=False)  # the device is warm
    begun = time.perf_counter()
    method = gf.PACE(features=spec, regime="sketch")
    result = gf.run(method, pooled, device=given.device, keep_heads=False)
    seconds = time.perf_counter() - begun
    test = gf.Federation.from_dataset(data, clients=1, partition="iid").clients[0].test()
    shared = score_head(result.global_head, test).accuracy
    dim = int(spec.split("fourier:")[1].replace("@", ":").split(":")[0])
    for clients, alpha in CELLS:
        for seed in seeds(given, 3):
            federation = gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", random_state=seed)
            accuracy, estimate, error = personalised(method, federation, result.run.broadcast, given.device)
            yield {"map": spec, "dim": dim, "clients": clients, "alpha": alpha, "seed": seed, "pace": accuracy,
                   "estimate": estimate, "calibration_error": error, "shared": shared, "seconds": seconds}  # fmt: skip


def of_budget(given: Given, budget: str, kind: str) -> Iterator[Row]:
    """What PACE makes of a budget, and what it made of as many bytes before: the largest map of scale one that fits, without a
    metric and without rounding. The sum is folded once, from 100 clients at dirichlet 1.0, and serves every partition; rounding
    would differ by as little as it changes. Nothing, where its inputs take more."""
    data = _data(given)
    folded = gf.Federation.from_dataset(data, 100, "dirichlet:1.0", random_state=0)
    try:
        method = _within(budget, kind, folded)
    except gf.GramfoldError:
        return
    result = gf.run(method, folded, device=given.device, keep_heads=False)
    sent = [client.uplink_bytes + client.downlink_bytes for client in result.clients.values()]
    for alpha in (0.1, 1.0):
        for seed in seeds(given, 3):
            federation = gf.Federation.from_dataset(data, 100, f"dirichlet:{alpha}", random_state=seed)
            accuracy, estimate, error = personalised(method, federation, result.run.broadcast, given.device)
            yield {"budget": budget, "which": kind, "clients": 100, "alpha": alpha, "seed": seed, "features": method.features,
                   "precision": method.precision or "float64", "rounding": result.chosen.get("rounding", 0.0),
                   "bytes": float(np.mean(sent)), "most_bytes": max(sent), "pace": accuracy, "estimate": estimate,
                   "calibration_error": error, "shared": result.global_accuracy}  # fmt: skip


def _within(budget: str, kind: str, federation: gf.Federation) -> gf.PACE:
    """PACE in that many bytes, on a server of 24 GiB."""
    memory = 24 * 2**30
    if kind == "now":
        return gf.PACE(budget=budget, memory=memory).settled(federation.task)
    plain = gf.PACE(budget=budget, memory=memory, learn=False, precision="float64").settled(federation.task)
    return gf.PACE(features=str(plain.features).removesuffix(":0.5"), regime="sketch")


def figures(rows: list[Row]) -> dict[str, list[Row]]:
    return {part: [row for row in rows if row["part"] == part] for part in (*PARTS, "frontier")}


BENCH = Bench("learned", cells, measure, figures)
