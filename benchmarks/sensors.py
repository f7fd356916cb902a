"""Machines whose many sensors lie where each machine's do: every analytic method beside a ridge of each machine's own.

    python -m benchmarks sensors

Eight machines of 200 samples and 192 columns, with a unit of its own for every column and an offset of its own for every
machine's columns; the target depends on the columns alike at all machines, up to a tenth, and on an offset of the machine's. Root
mean squared errors on 200 further samples of each machine, mean over machines and its standard error over seeds. The rival is
scikit-learn's RidgeCV on standardised columns, one for each machine. Five seeds.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from gramfold.methods import Method

MACHINES, SAMPLES, COLUMNS = 8, 200, 192
METHODS = {
    "Local": gf.Local(), "AFL (shared)": gf.AFL(), "FedHiP": gf.FedHiP(), "APFL": gf.APFL(), "DeepAFL": gf.DeepAFL(),
    "PACE": gf.PACE(),
}  # fmt: skip
Machine = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def machines(seed: int, columns: int = COLUMNS, offset: float = 5.0, units: float = 2.0) -> dict[str, Machine]:
    """Training and test samples. `offset`: of a machine's columns, in units of the largest spread; `units`: decades that these
    differ by in either direction."""
    rng = np.random.default_rng(seed)
    spread = 3.0 / np.sqrt(1.0 + np.arange(columns))
    unit, shared = 10.0 ** rng.uniform(-units, units, columns), rng.standard_normal(columns) * 3.0 / np.sqrt(columns)
    made = {}
    for machine in range(MACHINES):
        inside = rng.standard_normal((2 * SAMPLES, columns)) * spread
        own = shared + 0.1 * rng.standard_normal(columns) * 3.0 / np.sqrt(columns)
        y = inside @ own + 10.0 * rng.standard_normal() + 0.5 * rng.standard_normal(2 * SAMPLES)
        X = (inside + offset * rng.standard_normal(columns)) * unit
        made[f"machine {machine}"] = X[:SAMPLES], y[:SAMPLES], X[SAMPLES:], y[SAMPLES:]
    return made


def alone(data: dict[str, Machine]) -> float:
    errors = []
    for X, y, X_test, y_test in data.values():
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 29))).fit(X, y)
        errors.append(float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))))
    return float(np.mean(errors))


def measure(seed: int, methods: dict[str, Method] = METHODS, **made: float) -> dict[str, float]:
    data = machines(seed, **made)
    federation = gf.Federation.from_clients(data, regression=True)
    found = {"RidgeCV per machine": alone(data)}
    for name, method in methods.items():
        found[name] = gf.run(method, federation).mean_rmse or float("nan")
    return found


def cells(given: Given) -> Iterator[Cell]:
    return (Cell((seed,), tuple(method.name for method in METHODS.values()), 20) for seed in seeds(given, 5))


def measure_seed(given: Given, seed: int) -> list[Row]:
    warnings.simplefilter("ignore")
    return [{"seed": seed, "model": name, "rmse": rmse} for name, rmse in measure(seed).items()]


def figures(rows: list[Row]) -> dict[str, Any]:
    """Means and standard errors over seeds."""
    found = {}
    for name in dict.fromkeys(row["model"] for row in rows):
        values = np.array([row["rmse"] for row in rows if row["model"] == name])
        error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        found[name] = [round(float(values.mean()), 3), round(error, 3)]
    return {"seeds": len({row["seed"] for row in rows}), "rmse": found}


BENCH = Bench("sensors", cells, measure_seed, figures)
