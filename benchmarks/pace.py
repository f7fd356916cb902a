"""PACE with no settings against APFL with the best settings on the test data, on the same feature maps.

    python -m benchmarks.pace FILE.npz [--maps linear] [--seeds 3]

Six cells (50 and 100 clients, dirichlet 0.1, 0.5, 1.0) per map and seed. APFL's lambda and gamma are picked per cell for the best
mean test accuracy, which is impossible in practice. Pooled moments do not depend on the partition, so each map is folded once.
"""

import argparse
import json
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.provenance import RESULTS, stamp
from gramfold.engines.inprocess import on_device
from gramfold.engines.workers import Workers, cpu_count
from gramfold.evaluation import Calibration, score_head
from gramfold.federation import Client, load_npz
from gramfold.methods import ClientData, Method
from gramfold.numerics.arrays import to_numpy
from gramfold.solve.leave_one_out import Kernel

MAPS = {"linear": "bias+linear", "linear + 4096 Fourier": "bias+linear+fourier:4096"}
CELLS = [(clients, alpha) for clients in (50, 100) for alpha in (0.1, 0.5, 1.0)]
GAMMAS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
LAMBDAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5)


def workers(device: str) -> Workers:
    return Workers(cpu_count() if device == "cpu" else 1)


def apfl_best_on_test(federation: gf.Federation, broadcast: Any, device: str) -> float:
    """The best mean test accuracy over the grid."""
    phi, psi, weights = broadcast.space.map, broadcast.refinement, broadcast.weights

    def work(grids: list[np.ndarray], client: Client) -> None:
        train, test = on_device(client.train(), device), on_device(client.test(), device)
        if not test.n:
            return
        rows = phi(train.inputs)
        residuals = broadcast.space.targets(train, rows) - rows @ weights
        refined = psi(train.inputs)
        kernel, base, between = Kernel.of(refined), phi(test.inputs) @ weights, psi(test.inputs) @ refined.T
        grid = np.empty((len(GAMMAS), len(LAMBDAS)))
        for i, gamma in enumerate(GAMMAS):
            fit = between @ kernel.apply(1 / (kernel.values + gamma), 1 / gamma, residuals)
            grid[i] = [float((to_numpy((base + lam * fit).argmax(1)) == to_numpy(test.targets)).mean()) for lam in LAMBDAS]
        grids.append(grid)

    parts = workers(device).each("apfl", federation.clients, work, list)
    return float(np.mean([grid for part in parts for grid in part], axis=0).max())


def personalised(method: Method, federation: gf.Federation, broadcast: Any, device: str) -> tuple[float, float, float]:
    """Mean test accuracy, mean left-out accuracy (for the class shares as they are: test images are cut in those), expected
    calibration error."""

    def work(done: list[tuple], client: Client) -> None:
        data = ClientData(client.name, on_device(client.train(), device), contributed=True)
        head = method.personalize(data, broadcast)
        scored = score_head(head, on_device(client.test(), device))
        if scored.n:
            done.append((scored.accuracy, head.chosen["leave_one_out_accuracy_same_shares"], scored.calibration))

    done = [entry for part in workers(device).each("pace", federation.clients, work, list) for entry in part]
    return (
        float(np.mean([entry[0] for entry in done])),
        float(np.mean([entry[1] for entry in done])),
        sum((entry[2] for entry in done), Calibration()).expected_error,
    )


def compare(path: str, maps: list[str], seeds: int, device: str) -> None:
    data = load_npz(path)
    rows = []
    for name in maps:
        pace, apfl = gf.PACE(features=MAPS[name]), gf.APFL(features=MAPS[name])
        pooled = gf.Federation.from_dataset(data, clients=50, partition="iid")
        of_pace, of_apfl = (gf.run(method, pooled, device=device, keep_heads=False).run.broadcast for method in (pace, apfl))
        for clients, alpha in CELLS:
            for seed in range(seeds):
                federation = gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", random_state=seed)
                accuracy, loo_estimate, error = personalised(pace, federation, of_pace, device)
                rival = apfl_best_on_test(federation, of_apfl, device)
                rows.append({"map": name, "clients": clients, "alpha": alpha, "seed": seed, "apfl_best_on_test": rival,
                             "pace": accuracy, "pace_loo_estimate": loo_estimate, "pace_calibration_error": error})  # fmt: skip
                print(json.dumps(rows[-1]), flush=True)
    file = RESULTS / "pace.json"
    others = [row for row in json.loads(file.read_text()) if row["map"] not in maps] if file.exists() else []
    file.write_text(json.dumps(sorted(rows + others, key=lambda row: list(MAPS).index(row["map"])), indent=1) + "\n")
    if not others:
        stamp("pace")
    _print_summary(rows)


def _print_summary(rows: list[dict]) -> None:
    for name in dict.fromkeys(row["map"] for row in rows):
        gains = []
        for clients, alpha in CELLS:
            cell = [row for row in rows if (row["map"], row["clients"], row["alpha"]) == (name, clients, alpha)]
            means = {key: float(np.mean([row[key] for row in cell])) for key in cell[0] if key not in ("map", "seed")}
            gains.append(100 * (means["pace"] - means["apfl_best_on_test"]))
            print(f"{name}, {clients} clients, {alpha}: APFL best on test {100 * means['apfl_best_on_test']:.2f}, PACE "
                  f"{100 * means['pace']:.2f} (+{gains[-1]:.2f}); LOO estimate {100 * means['pace_loo_estimate']:.2f}, "
                  f"ECE {means['pace_calibration_error']:.3f}")  # fmt: skip
        print(f"{name}: least gain {min(gains):.2f}, mean gain {np.mean(gains):.2f} points")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--maps", nargs="+", choices=MAPS, default=list(MAPS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    compare(given.path, given.maps, given.seeds, given.device)
