"""PACE with no settings against APFL with the best settings on the test data, on the same feature maps.

    python -m benchmarks pace --data FOLDER [--device cuda]

Six cells (50 and 100 clients, dirichlet 0.1, 0.5, 1.0) per map, three seeds. APFL's lambda and gamma are picked per cell for the
best mean test accuracy, which is impossible in practice. Pooled moments do not depend on the partition, so each map is folded
once.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from gramfold.engines.inprocess import on_device
from gramfold.engines.workers import Workers, cpu_count
from gramfold.evaluation import Calibration, score_head
from gramfold.federation import Client, load_npz
from gramfold.federation.datasets import Dataset
from gramfold.methods import ClientData, Method
from gramfold.numerics.arrays import to_numpy
from gramfold.solve.leave_one_out import Kernel

CIFAR = "cifar100-dinov2s.npz"
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


@lru_cache(1)
def _data(given: Given) -> Dataset:
    return load_npz(given.file(CIFAR))


@lru_cache(2)
def _broadcasts(given: Given, name: str) -> tuple[Any, Any]:
    pooled = gf.Federation.from_dataset(_data(given), clients=50, partition="iid")
    both = (gf.PACE(features=MAPS[name]), gf.APFL(features=MAPS[name]))
    of_pace, of_apfl = (gf.run(method, pooled, device=given.device, keep_heads=False).run.broadcast for method in both)
    return of_pace, of_apfl


def cells(given: Given) -> Iterator[Cell]:
    if given.file(CIFAR):
        for name in MAPS:
            for seed in seeds(given, 3):
                yield from (Cell((name, clients, alpha, seed), ("pace", "apfl"), 40) for clients, alpha in CELLS)


def measure(given: Given, name: str, clients: int, alpha: float, seed: int) -> list[Row]:
    of_pace, of_apfl = _broadcasts(given, name)
    federation = gf.Federation.from_dataset(_data(given), clients, f"dirichlet:{alpha}", random_state=seed)
    accuracy, estimate, error = personalised(gf.PACE(features=MAPS[name]), federation, of_pace, given.device)
    rival = apfl_best_on_test(federation, of_apfl, given.device)
    return [{"map": name, "clients": clients, "alpha": alpha, "seed": seed, "apfl_best_on_test": rival, "pace": accuracy,
             "pace_loo_estimate": estimate, "pace_calibration_error": error}]  # fmt: skip


BENCH = Bench("pace", cells, measure)
