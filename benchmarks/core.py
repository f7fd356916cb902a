"""The core against scikit-learn, against the AFL paper's recursion, and against the machine's limit.

    python benchmarks/core.py FILE.npz

FILE holds features of 100 classes or so (see the README); 100 clients, dirichlet:0.1, linear map, float64 throughout.
Every ratio is taken within this one run, runs interleaved, best of three turns.
"""

import argparse
import subprocess
import sys

import numpy as np
from sklearn.linear_model import RidgeClassifier

import gramfold as gf
from benchmarks.timing import best_interleaved, best_of, gemm_rate, peak_bytes, resident_bytes, write
from gramfold.federation import Dataset, load_npz

CLIENTS = 100
APFL = gf.APFL(features="linear", refinement="linear", penalty=1.0, refinement_penalty=100.0, lam=0.5)


def federation(data: Dataset) -> gf.Federation:
    return gf.Federation.from_dataset(data, clients=CLIENTS, partition="dirichlet:0.1", random_state=0)


def paper_recursion(clients: list[tuple[np.ndarray, np.ndarray]], classes: int, penalty: float) -> np.ndarray:
    """AFL as its paper states it: local solutions with a penalty each, merged pairwise by the absolute aggregation law, every
    inverse where the formula has one, and the accumulated penalty taken out at the end. Precision C, weights W."""
    eye, inv = np.eye(clients[0][0].shape[1]), np.linalg.inv
    C, W = None, None
    for rows, codes in clients:
        own = rows.T @ rows + penalty * eye
        solution = inv(own) @ (rows.T @ np.eye(classes)[codes])
        if C is None:
            C, W = own, solution
            continue
        ours = eye - inv(C) @ own @ (eye - inv(C + own) @ own)
        theirs = eye - inv(own) @ C @ (eye - inv(C + own) @ C)
        W, C = ours @ W + theirs @ solution, C + own
    return inv(C - len(clients) * penalty * eye) @ (C @ W)


def needed_flops(sizes: np.ndarray, tests: np.ndarray, m: int, classes: int) -> float:
    """The least APFL must do in float64: the fold, one solve, for each client residuals and the smaller system, and scoring."""
    fold = sizes.sum() * m**2
    solve = m**3 / 3 + 2 * m**2 * classes
    residuals = 2 * sizes.sum() * m * classes
    small = np.where(
        sizes < m,
        sizes**2 * m + sizes**3 / 3 + 2 * sizes**2 * classes + 2 * sizes * m * classes,
        sizes * m**2 + m**3 / 3 + 2 * m**2 * classes + 2 * sizes * m * classes,
    ).sum()
    return float(fold + solve + residuals + small + 2 * 2 * tests.sum() * m * classes)


def memory(path: str) -> None:
    """Run APFL alone and print how much memory it took above what the loaded data takes."""
    fed = federation(load_npz(path))
    before = resident_bytes()
    gf.run(APFL, fed)
    print(peak_bytes() - before)


def main(path: str) -> None:
    data = load_npz(path)
    fed = federation(data)
    train = data.inputs[data.train]
    train64, codes = train.astype(np.float64), data.codes[data.train]
    phi_rows = [client.train() for client in fed]
    clients = [(s.inputs.astype(np.float64), s.targets) for s in phi_rows]
    sizes = np.array([s.n for s in phi_rows], dtype=float)
    tests = np.array([client.test().n for client in fed], dtype=float)
    seconds = best_interleaved(
        3,
        {
            "ridge_float64": lambda: RidgeClassifier(solver="cholesky").fit(train64, codes),
            "ridge_float32": lambda: RidgeClassifier(solver="cholesky").fit(train, codes),
            "apfl": lambda: gf.run(APFL, fed),
            "afl": lambda: gf.run(gf.AFL(features="linear", penalty=1.0), fed),
        },
    )
    seconds["paper_recursion"] = best_of(1, lambda: paper_recursion(clients, data.outputs, 1.0))
    rate, flops = gemm_rate(), needed_flops(sizes, tests, data.inputs.shape[1], data.outputs)
    above = int(
        subprocess.run([sys.executable, "-m", "benchmarks.core", path, "--memory"], capture_output=True, check=True).stdout
    )
    result = gf.run(APFL, fed)
    m, c = data.inputs.shape[1], data.outputs
    released = 8 * (m * c + 2 * m * m)
    write(
        "core",
        {
            "seconds": seconds,
            "apfl_over_ridge_float64": seconds["apfl"] / seconds["ridge_float64"],
            "apfl_over_ridge_float32": seconds["apfl"] / seconds["ridge_float32"],
            "recursion_over_apfl": seconds["paper_recursion"] / seconds["apfl"],
            "recursion_over_afl": seconds["paper_recursion"] / seconds["afl"],
            "gigaflop_needed": flops / 1e9,
            "gemm_gigaflop_per_second": rate / 1e9,
            "apfl_over_machine_limit": seconds["apfl"] / (flops / rate),
            "memory_above_loaded_data_over_float32_features": above / train.nbytes,
            "uplink_over_released_afl_mean": result.uplink_bytes / len(fed) / released,
            "uplink_over_released_afl_max": max(client.uplink_bytes for client in result.clients.values()) / released,
        },
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--memory", action="store_true", help="only measure memory (used by the benchmark itself)")
    given = parser.parse_args()
    memory(given.path) if given.memory else main(given.path)
