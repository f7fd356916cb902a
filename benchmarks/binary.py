"""Few classes on small tables: PACE's personal and shared heads beside AFL and logistic regression, pooled and per hospital.

    python -m benchmarks binary

Every table is cut among eight hospitals, a quarter of each held out, and its columns standardised by the pooled training rows, as
a user would in a Pipeline. Figures are of all hospitals' test rows together: log loss, area under the curve (one against the rest
where there are more than two classes), accuracy; each with its mean and standard error over ten seeds, and over ten others
(100 to 109) of some settings.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from gramfold.heads import Head

HOSPITALS = 8
Table = tuple[np.ndarray, np.ndarray]
Answer = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Cut:
    """Each hospital's training and test rows, in standardised columns."""

    train: dict[str, Table]
    test: dict[str, Table]
    classes: int

    @property
    def pooled(self) -> Table:
        return np.concatenate([X for X, _ in self.train.values()]), np.concatenate([y for _, y in self.train.values()])

    @property
    def federation(self) -> gf.Federation:
        return gf.Federation.from_clients(
            {name: (*self.train[name], *self.test[name]) for name in self.train}, labels=range(self.classes)
        )


def cut(X: np.ndarray, y: np.ndarray, partition: str, seed: int) -> Cut:
    """Cells that are missing (NaN) become their column's mean."""
    places = gf.Federation.split(
        np.arange(len(y))[:, None], y, clients=HOSPITALS, partition=partition, random_state=seed, min_size=8
    )
    train = {client.name: client.train().inputs[:, 0].astype(int) for client in places}
    test = {client.name: client.test().inputs[:, 0].astype(int) for client in places}
    pooled_rows = np.concatenate(list(train.values()))
    X = np.where(np.isnan(X), np.nanmean(X[pooled_rows], axis=0), X)
    X = StandardScaler().fit(X[pooled_rows]).transform(X)
    parts = [{name: (X[rows], y[rows]) for name, rows in part.items()} for part in (train, test)]
    return Cut(parts[0], parts[1], int(y.max()) + 1)


# --- the tables ---


def breast_cancer(seed: int, noise: float = 0.0, missing: float = 0.0) -> Table:
    """`noise` in standard deviations of each column; `missing` is the share of cells that are lost."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    X = X + noise * X.std(0) * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def synthetic(seed: int, columns: int = 20, flip: float = 0.05, share: float = 0.5, rows: int = 2000, classes: int = 2) -> Table:
    """A quarter of the columns matter; `share` is that of the first class."""
    shares = [share, *[(1 - share) / (classes - 1)] * (classes - 1)]
    X, y = make_classification(
        rows, columns, n_informative=max(columns // 4, 3), n_redundant=columns // 4, n_classes=classes, n_clusters_per_class=1,
        weights=shares, flip_y=flip, class_sep=0.8, random_state=seed,
    )  # fmt: skip
    return X, y


SETTINGS: dict[str, tuple[Callable[[int], Table], str]] = {
    "breast cancer, iid": (breast_cancer, "iid"),
    "breast cancer, skewed": (breast_cancer, "dirichlet:0.5"),
    "breast cancer, noisy, iid": (lambda seed: breast_cancer(seed, noise=2.0), "iid"),
    "breast cancer, noisy, skewed": (lambda seed: breast_cancer(seed, noise=2.0), "dirichlet:0.5"),
    "breast cancer, 30 % missing, iid": (lambda seed: breast_cancer(seed, missing=0.3), "iid"),
    "breast cancer, 30 % missing, skewed": (lambda seed: breast_cancer(seed, missing=0.3), "dirichlet:0.5"),
    "synthetic, 10 columns, 1 % flipped": (lambda seed: synthetic(seed, 10, 0.01), "iid"),
    "synthetic, 20 columns, 20 % flipped": (lambda seed: synthetic(seed, 20, 0.2), "iid"),
    "synthetic, 50 columns, skewed": (lambda seed: synthetic(seed, 50), "dirichlet:0.5"),
    "synthetic, 10 : 90": (lambda seed: synthetic(seed, share=0.1, flip=0.02), "iid"),
    "synthetic, 1 : 99": (lambda seed: synthetic(seed, share=0.01, flip=0.0, rows=6000), "iid"),
    "synthetic, 3 classes": (lambda seed: synthetic(seed, classes=3), "iid"),
    "synthetic, 5 classes": (lambda seed: synthetic(seed, classes=5), "iid"),
    "iris (3 classes)": (lambda seed: load_iris(return_X_y=True), "iid"),
    "wine (3 classes)": (lambda seed: load_wine(return_X_y=True), "iid"),
    "digits (10 classes), skewed": (lambda seed: load_digits(return_X_y=True), "dirichlet:0.5"),
}


# --- the models ---


def of_heads(result: gf.Result, shared: bool) -> dict[str, Answer]:
    def answer(head: Head) -> Answer:
        return head.predict_proba if head.probabilistic else lambda X: np.asarray(head.scores(X))

    return {name: answer(result.global_head if shared else head) for name, head in result.heads.items()}


def local_regression(X: np.ndarray, y: np.ndarray, classes: int) -> Answer:
    """Logistic regression on one hospital's rows. A class it never saw shares in one pseudo-sample, as in PACE."""
    seen, counts = np.unique(y, return_counts=True)
    prior = np.zeros(classes)
    prior[seen] = counts
    prior = (prior + 1 / classes) / (len(y) + 1)
    model = LogisticRegression(max_iter=5000).fit(X, y) if len(seen) > 1 else None

    def answer(rows: np.ndarray) -> np.ndarray:
        probabilities = np.tile(prior, (len(rows), 1))
        if model is not None:
            probabilities[:, seen] = model.predict_proba(rows) * prior[seen].sum()
        return probabilities

    return answer


def pooled_regressions(X: np.ndarray, y: np.ndarray) -> dict[str, Answer]:
    """Logistic regression on all hospitals' rows, with C as it comes and as cross-validation would have it."""
    pooled = LogisticRegression(max_iter=5000).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the names of its options are in transition
        tuned = LogisticRegressionCV(Cs=np.logspace(-3, 2, 11), cv=5, scoring="neg_log_loss", max_iter=5000).fit(X, y)
    return {"pooled LR, C = 1": pooled.predict_proba, "pooled LR, C by CV": tuned.predict_proba}


def models(data: Cut, seed: int) -> dict[str, dict[str, Answer]]:
    """What each model answers for the rows of each hospital."""
    pace, afl = gf.run(gf.PACE(), data.federation), gf.run(gf.AFL(), data.federation)
    return {
        "PACE personal": of_heads(pace, shared=False),
        "PACE shared": of_heads(pace, shared=True),
        "AFL": of_heads(afl, shared=True),
        **{name: dict.fromkeys(data.train, answer) for name, answer in pooled_regressions(*data.pooled).items()},
        "LR per hospital": {name: local_regression(*part, data.classes) for name, part in data.train.items()},
    }


def figures(answers: dict[str, Answer], data: Cut) -> dict[str, float]:
    said = np.concatenate([answers[name](X) for name, (X, y) in data.test.items() if len(y)])
    y = np.concatenate([y for _, y in data.test.values()])
    found = {"accuracy": float((said.argmax(1) == y).mean())}
    if np.allclose(said.sum(1), 1.0) and said.min() >= 0:
        found["log_loss"] = float(log_loss(y, said, labels=range(data.classes)))
    if data.classes == 2:
        found["auc"] = float(roc_auc_score(y, said[:, 1] - said[:, 0]))
    else:
        found["auc"] = float(np.mean([roc_auc_score(y == c, said[:, c]) for c in range(data.classes)]))
    return found


def summary(values: list[float]) -> list[float]:
    """Mean and standard error."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return [round(float(np.mean(values)), 5), round(error, 5)]


AGAIN = (
    "breast cancer, iid",
    "breast cancer, skewed",
    "breast cancer, noisy, iid",
    "breast cancer, 30 % missing, iid",
    "iris (3 classes)",
    "wine (3 classes)",
)
FIRST_AGAIN = 100
"""What is measured with ten other seeds, too."""


def cells(given: Given) -> Iterator[Cell]:
    for seed in seeds(given, 10):
        yield from (Cell((name, seed), ("pace", "afl"), 10) for name in SETTINGS)
        yield from (Cell((name, FIRST_AGAIN + seed), ("pace", "afl"), 10) for name in AGAIN)


def measure(given: Given, name: str, seed: int) -> list[Row]:
    table, partition = SETTINGS[name]
    data = cut(*table(seed), partition, seed)
    found = models(data, seed)
    return [{"setting": name, "seed": seed, "model": model, **figures(answers, data)} for model, answers in found.items()]


def of_models(rows: list[Row]) -> dict[str, dict[str, list[float]]]:
    """For every model and figure: mean and standard error over seeds."""
    found = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        mine = [row for row in rows if row["model"] == model]
        keys = [key for key in mine[0] if key not in ("setting", "table", "seed", "model")]
        found[model] = {key: summary([row[key] for row in mine]) for key in keys}
    return found


def pages(rows: list[Row]) -> dict[str, Any]:
    """Of the first ten seeds, and of the ten others."""

    def settings(rows: list[Row]) -> dict[str, Any]:
        names = dict.fromkeys(row["setting"] for row in rows)
        return {name: of_models([row for row in rows if row["setting"] == name]) for name in names}

    first = [row for row in rows if row["seed"] < FIRST_AGAIN]
    others = [row for row in rows if row["seed"] >= FIRST_AGAIN]
    count = len({row["seed"] for row in first})
    return {"seeds": count, "hospitals": HOSPITALS, "settings": settings(first), "again": settings(others)}


BENCH = Bench("binary", cells, measure, pages)
