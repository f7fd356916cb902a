"""PACE before and after a change, in minutes: frozen figures on small cuts of every kind of data, and their difference.

    python -m benchmarks.frozen run OUT.json [--cifar FILE.npz] [--shift FILE.npz] [--tables FOLDER] [--only NAME,...] [--seeds 1]
    python -m benchmarks.frozen compare BEFORE.json AFTER.json

`run` measures whichever gramfold is imported. Embeddings and digits have a linear map, cells called "default" the one that PACE
chooses. Accuracy in points, log loss in nats, root mean square errors in the target's units, each a mean over clients; `estimate`
is what clients foresee for a fresh draw. `compare` prints the mean difference over seeds with its standard error.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.every_data import split, written
from benchmarks.site_tables import TABLES
from gramfold.federation import load_npz
from gramfold.federation.partition import Partition
from gramfold.methods import Method

LINEAR = gf.PACE(features="bias+linear")
Owners = Callable[[int], np.ndarray]


class Cell(NamedTuple):
    """Rows, targets and whose they are in each seed's cut; `method`: what is measured there."""

    data: str
    cut: str
    X: np.ndarray
    y: np.ndarray
    owners: Owners
    seeds: int
    method: Method = LINEAR
    regression: bool = False


def dealt(codes: np.ndarray, clients: int, cut: str) -> Owners:
    return lambda seed: Partition.parse(cut).draw(codes, clients, np.random.default_rng([seed, 7]))


def shared_out(owners: np.ndarray, each: int) -> Owners:
    return lambda seed: owners * each + np.random.default_rng([seed, 7]).integers(0, each, len(owners))


def bundled(times: int) -> Iterator[Cell]:
    X, y = load_digits(return_X_y=True)
    for clients, cut in ((10, "dirichlet:0.1"), (50, "dirichlet:1"), (50, "classes:2"), (50, "quantity:0.5"), (10, "iid")):
        yield Cell("digits", f"{clients} {cut}", X, y, dealt(y, clients, cut), 8 * times)
    for cut in ("dirichlet:0.1", "dirichlet:1"):
        yield Cell("digits, default", f"20 {cut}", X, y, dealt(y, 20, cut), 3 * times, gf.PACE())
    X, y, who = written(10)
    for each in (1, 4):
        yield Cell("ten writers", f"{each} each", X, y, shared_out(who, each), 8 * times)
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for clients, cut in ((5, "iid"), (20, "dirichlet:1")):
        yield Cell("breast cancer", f"{clients} {cut}", X, y, dealt(y, clients, cut), 20 * times)
    yield Cell("breast cancer, default", "8 dirichlet:1", X, y, dealt(y, 8, "dirichlet:1"), 4 * times, gf.PACE())


def embedded(cifar: str | None, shift: str | None, times: int) -> Iterator[Cell]:
    if shift:
        data = load_npz(shift)
        X, domains = np.asarray(data.inputs, np.float32), np.unique(np.asarray(data.client), return_inverse=True)[1]
        for each in (1, 4, 8):
            yield Cell("eight domains", f"{each} each", X, data.codes, shared_out(domains, each), 3 * times)
        yield Cell("eight domains, default", "4 each", X, data.codes, shared_out(domains, 4), times, gf.PACE())
        yield Cell("20 classes", "100 dirichlet:0.1", X, data.codes, dealt(data.codes, 100, "dirichlet:0.1"), 2 * times)
    if cifar:
        data = load_npz(cifar)
        rows = np.random.default_rng(0).permutation(len(data.codes))[:20_000]
        X, y = np.asarray(data.inputs[rows], np.float32), data.codes[rows]
        for cut in ("dirichlet:0.1", "dirichlet:1"):
            yield Cell("CIFAR-100", f"100 {cut}", X, y, dealt(y, 100, cut), 2 * times)
        yield Cell("CIFAR-100, default", "100 dirichlet:0.1", X, y, dealt(y, 100, "dirichlet:0.1"), times, gf.PACE())


def line() -> tuple[np.ndarray, np.ndarray]:
    """A table in which nothing curves, with noise of one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 8))
    return X * np.logspace(-1, 1, 8), X @ rng.standard_normal(8) + rng.standard_normal(2000)


def sited(folder: str | None, times: int) -> Iterator[Cell]:
    """Tables, with the map that PACE chooses."""
    for name in ("Friedman 1", "Friedman 3", "diabetes"):
        for seed in range(times):
            X, y, site, regression = TABLES[name](seed)
            yield Cell(name, "sites" if not seed else f"sites, draw {seed}", X, y, shared_out(site, 1), 1 if times > 1 else 2,
                       gf.PACE(), regression)  # fmt: skip
    X, y = line()
    yield Cell("a straight line", "4 iid", X, y, dealt(np.zeros(len(y), int), 4, "iid"), 3 * times, gf.PACE(), True)
    if folder is None:
        return
    frame = pd.read_csv(Path(folder) / "parkinson.csv")
    who = np.unique(frame.pop("subject#"), return_inverse=True)[1]
    y = frame.pop("total_UPDRS").to_numpy(float)
    yield Cell("Parkinson", "patients", frame.to_numpy(float), y, shared_out(who, 1), 2 * times, gf.PACE(), True)
    school = np.load(Path(folder) / "school.npz")
    who = np.unique(school["client"], return_inverse=True)[1]
    yield Cell("schools", "schools", school["features"].astype(float), school["targets"].astype(float), shared_out(who, 1), times,
               gf.PACE(), True)  # fmt: skip
    centres = [pd.read_csv(file, na_values="?") for file in sorted((Path(folder) / "heart").glob("*.csv"))]
    whose = np.concatenate([np.full(len(one), k) for k, one in enumerate(centres)])
    together = pd.concat(centres)
    sick = (together.pop("num").to_numpy(float) > 0).astype(int)
    X = together.to_numpy(float)
    X = np.column_stack([np.where(np.isnan(X), np.nanmedian(X, 0), X), np.isnan(X)])
    yield Cell("heart", "hospitals", X, sick, shared_out(whose, 1), 6 * times, gf.PACE())


def federated(cell: Cell, seed: int) -> tuple[gf.Federation, dict[str, tuple[Any, ...]]]:
    """A seed's cut, and every client's samples for training and for testing."""
    parts = split(cell.X, cell.y, cell.owners(seed), seed)
    clients = {str(k): (a.inputs, a.targets, b.inputs, b.targets) for k, (a, b) in enumerate(parts)}
    labels = {} if cell.regression else {"labels": range(int(cell.y.max()) + 1)}
    return gf.Federation.from_clients(clients, regression=cell.regression, random_state=seed, **labels), clients


def measured(cell: Cell, seed: int) -> dict[str, float]:
    """Means over clients."""
    federation, clients = federated(cell, seed)
    begun = time.process_time()  # of this process alone: machines are shared
    result = gf.run(cell.method, federation)
    seconds, found = time.process_time() - begun, []
    for name, (_, _, X, y) in clients.items():
        head = result.heads[name]
        if cell.regression:
            low, high = head.predict_interval(X, 0.9).T
            rmse, covered = float(np.sqrt(np.mean((head.predict(X) - y) ** 2))), float(np.mean((low <= y) & (y <= high)))
            found.append({"rmse": rmse, "estimate": head.chosen["leave_one_out_rmse"], "coverage": covered})
            continue
        likely = head.predict_proba(X)
        right, lost = likely.argmax(1) == y, -np.log(likely[np.arange(len(y)), y].clip(1e-12))
        foreseen = 100 * head.chosen["leave_one_out_accuracy"]
        found.append({"accuracy": 100 * float(right.mean()), "estimate": foreseen, "log_loss": float(lost.mean())})
    means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    if "accuracy" in means:
        means["shared"] = 100 * float(result.global_accuracy)
        means["ece"] = float(result.calibration_error)
    return {**means, "seconds": seconds}


def run(given: argparse.Namespace) -> None:
    rows = json.loads(Path(given.file).read_text()) if Path(given.file).exists() else []
    cells = [*bundled(given.seeds), *sited(given.tables, given.seeds), *embedded(given.cifar, given.shift, given.seeds)]
    for cell in cells:
        if given.only is not None and cell.data not in given.only.split(","):
            continue
        rows = [row for row in rows if (row["data"], row["cut"]) != (cell.data, cell.cut)]
        for seed in range(cell.seeds):
            rows.append({"data": cell.data, "cut": cell.cut, "seed": seed, **measured(cell, seed)})
        mine = [row for row in rows if (row["data"], row["cut"]) == (cell.data, cell.cut)]
        figures = {key: round(float(np.mean([row[key] for row in mine])), 4) for key in list(mine[0])[3:]}
        print(cell.data, cell.cut, json.dumps(figures), flush=True)
        Path(given.file).write_text(json.dumps(rows, indent=1) + "\n")


def compare(given: argparse.Namespace) -> None:
    before, after = (
        {(row["data"], row["cut"], row["seed"]): row for row in json.loads(Path(file).read_text())}
        for file in (given.file, given.other)
    )
    kept: list[dict[str, Any]] = []
    for cell in dict.fromkeys(key[:2] for key in after):
        seeds = [key for key in after if key[:2] == cell and key in before]
        figures = [name for name in after[seeds[0]] if name in before[seeds[0]]] if seeds else []
        for figure in figures:
            if figure in ("data", "cut", "seed"):
                continue
            old, new = (np.array([rows[key][figure] for key in seeds]) for rows in (before, after))
            error = float((new - old).std(ddof=1) / len(seeds) ** 0.5) if len(seeds) > 1 else 0.0
            row = {"before": float(old.mean()), "change": float((new - old).mean()), "error": error, "seeds": len(seeds)}
            kept.append({"data": cell[0], "cut": cell[1], "figure": figure, **row})
        mine = [row for row in kept if (row["data"], row["cut"]) == cell]
        told = [f"{row['figure']} {row['before']:.4g} {row['change']:+.3g} ({row['error']:.2g})" for row in mine]
        print(f"{cell[0]}, {cell[1]}: " + "; ".join(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "compare"))
    parser.add_argument("file")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--cifar")
    parser.add_argument("--shift")
    parser.add_argument("--tables")
    parser.add_argument("--only")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    run(given) if given.what == "run" else compare(given)


if __name__ == "__main__":
    main()
