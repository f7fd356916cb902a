"""PACE with a learned metric against the same size without one, and what it makes of a budget of bytes.

    python -m benchmarks.learned FILE.npz [--seeds 3] [--sizes 4096,12288] [--budgets 5MB,20MB] [--device cuda] [--part NAME]

Six cells (50 and 100 clients, dirichlet 0.1, 0.5, 1.0). Pooled moments do not depend on the partition: each map is folded once.
Parts of the table may be run one by one: each writes its own file, benchmarks/results/learned_PART.json.
"""

import argparse
import json
import time
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.pace import CELLS, personalised
from benchmarks.timing import keep
from gramfold.evaluation import score_head
from gramfold.federation import load_npz
from gramfold.federation.datasets import Dataset

BEFORE = "bias+linear+fourier:{}"
"""The map as it was before: frequencies of scale one."""
WITHOUT = "bias+linear+fourier:{}:0.5"
LEARNED = "bias+linear+fourier:{}@learned"


def sizes(data: Dataset, dims: list[int], seeds: int, device: str, specs: list[str]) -> list[dict[str, Any]]:
    rows = []
    pooled = gf.Federation.from_dataset(data, clients=50, partition="iid")
    for dim in dims:
        for spec in (spec.format(dim) for spec in specs):
            method = gf.PACE(features=spec, regime="sketch")
            gf.run(gf.AFL(), pooled, device=device, keep_heads=False)  # the device is warm
            begun = time.perf_counter()
            result = gf.run(method, pooled, device=device, keep_heads=False)
            seconds = time.perf_counter() - begun
            test = gf.Federation.from_dataset(data, clients=1, partition="iid").clients[0].test()
            shared = score_head(result.global_head, test).accuracy
            for clients, alpha in CELLS:
                for seed in range(seeds):
                    federation = gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", random_state=seed)
                    accuracy, estimate, error = personalised(method, federation, result.run.broadcast, device)
                    rows.append({"map": spec, "dim": dim, "clients": clients, "alpha": alpha, "seed": seed, "pace": accuracy,
                                 "estimate": estimate, "calibration_error": error, "shared": shared,
                                 "seconds": seconds})  # fmt: skip
            last = [row for row in rows if row["map"] == spec]
            cell = [round(100 * float(np.mean([r["pace"] for r in last if (r["clients"], r["alpha"]) == c])), 2) for c in CELLS]
            off = max(abs(r["estimate"] - r["pace"]) for r in last)
            print(spec, cell, f"shared {100 * shared:.2f}, estimates off by at most {100 * off:.2f}, ECE at most "
                  f"{max(r['calibration_error'] for r in last):.3f}, {seconds:.1f} s", flush=True)  # fmt: skip
    return rows


def frontier(data: Dataset, given: list[str], seeds: int, device: str, kinds: list[str]) -> list[dict[str, Any]]:
    """What PACE makes of a budget, and what it made of as many bytes before: the largest map of scale one that fits, without a
    metric and without rounding. The sum is folded once, from 100 clients at dirichlet 1.0, and serves every partition; rounding
    would differ by as little as it changes."""
    rows = []
    cells = [(100, alpha, seed) for alpha in (0.1, 1.0) for seed in range(seeds)]
    federations = {
        cell: gf.Federation.from_dataset(data, cell[0], f"dirichlet:{cell[1]}", random_state=cell[2]) for cell in cells
    }
    folded = federations[100, 1.0, 0]
    for budget in given:
        for kind in kinds:
            try:
                method = _within(budget, kind, folded)
            except gf.GramfoldError as error:  # fewer bytes than its inputs take
                print(budget, kind, error, flush=True)
                continue
            result = gf.run(method, folded, device=device, keep_heads=False)
            sent = [client.uplink_bytes + client.downlink_bytes for client in result.clients.values()]
            for (clients, alpha, seed), federation in federations.items():
                accuracy, estimate, error_ = personalised(method, federation, result.run.broadcast, device)
                rows.append({"budget": budget, "which": kind, "clients": clients, "alpha": alpha, "seed": seed,
                             "features": method.features, "precision": method.precision or "float64",
                             "rounding": result.chosen.get("rounding", 0.0), "bytes": float(np.mean(sent)),
                             "most_bytes": max(sent), "pace": accuracy, "estimate": estimate, "calibration_error": error_,
                             "shared": result.global_accuracy})  # fmt: skip
                print(json.dumps(rows[-1]), flush=True)
    return rows


def _within(budget: str, kind: str, federation: gf.Federation) -> gf.PACE:
    """PACE in that many bytes, on a server of 24 GiB."""
    memory = 24 * 2**30
    if kind == "now":
        return gf.PACE(budget=budget, memory=memory).settled(federation.task)
    plain = gf.PACE(budget=budget, memory=memory, learn=False, precision="float64").settled(federation.task)
    return gf.PACE(features=str(plain.features).removesuffix(":0.5"), regime="sketch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--budgets", default="")
    parser.add_argument("--which", default="now,before", help="with budgets: PACE now, and as it was")
    parser.add_argument("--maps", default="learned", help="of before, without, learned")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--part", default="sizes")
    given = parser.parse_args()
    data = load_npz(given.file)
    rows = []
    if given.sizes:
        specs = [{"before": BEFORE, "without": WITHOUT, "learned": LEARNED}[name] for name in given.maps.split(",")]
        rows += sizes(data, [int(dim) for dim in given.sizes.split(",")], given.seeds, given.device, specs)
    if given.budgets:
        rows += frontier(data, given.budgets.split(","), given.seeds, given.device, given.which.split(","))
    keep(f"learned_{given.part}", rows)


if __name__ == "__main__":
    main()
