"""Clean tables: log loss of PACE's personal and shared heads beside pooled logistic regression on the same encoding.

    python -m benchmarks clean_tables --data FOLDER

FOLDER/heart has the heart data, a CSV file for each of four hospitals; its label is `num > 0`. The other tables are those of
scikit-learn, cut at random among eight hospitals; of diabetes the class is whether the disease went further than in half of all
patients. A quarter of each hospital is held out. What logistic regression gets is what the federation's own encoder made of its
training rows, all hospitals' in one, standardised; its C is 1 or chosen by cross-validation in them. "Straight" is PACE with no
features but the columns (`features="bias+columns"`). Figures are of all hospitals' test rows together, `margin` the mean
difference from a regression over ten seeds: below zero PACE is ahead.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.binary import HOSPITALS, Answer, Cut, figures, of_heads, of_models, pooled_regressions, summary
from gramfold.federation import Samples

METHODS = {"PACE": gf.PACE(), "straight": gf.PACE(features="bias+columns")}


def of_sklearn(load: Callable[..., object], seed: int) -> gf.Federation:
    frame = load(as_frame=True).frame  # type: ignore[attr-defined]
    if load is load_diabetes:
        frame["target"] = (frame["target"] > frame["target"].median()).astype(int)
    return gf.Federation.from_dataset(gf.load_data(frame, label_column="target"), HOSPITALS, "iid", random_state=seed)


def tables(folder: Path) -> dict[str, Callable[[int], gf.Federation]]:
    return {
        "breast cancer": lambda seed: of_sklearn(load_breast_cancer, seed),
        "heart": lambda seed: gf.Federation.from_clients(folder, label_column="num > 0", random_state=seed),
        "wine": lambda seed: of_sklearn(load_wine, seed),
        "iris": lambda seed: of_sklearn(load_iris, seed),
        "diabetes": lambda seed: of_sklearn(load_diabetes, seed),
    }


def encoded(federation: gf.Federation) -> Cut:
    """What the federation's encoder makes of every row."""

    def arrays(samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(samples.inputs, float), np.asarray(samples.targets)

    train = {client.name: arrays(client.train()) for client in federation.clients}
    test = {client.name: arrays(client.test()) for client in federation.clients}
    return Cut(train, test, federation.task.outputs)


def regressions(data: Cut) -> dict[str, Answer]:
    X, y = data.pooled
    scaler = StandardScaler().fit(X)

    def on_columns(answer: Answer) -> Answer:
        return lambda rows: answer(scaler.transform(rows))

    return {name: on_columns(answer) for name, answer in pooled_regressions(scaler.transform(X), y).items()}


def cells(given: Given) -> Iterator[Cell]:
    for seed in seeds(given, 10):
        for name in tables(Path()):
            if name != "heart" or given.file("heart"):
                yield Cell((name, seed), ("pace",), 10)


def measure(given: Given, name: str, seed: int) -> list[Row]:
    federation = tables(given.file("heart") or Path())[name](seed)
    data, answers = encoded(federation), {}
    for called, method in METHODS.items():
        result = gf.run(method, federation)
        answers |= {f"{called} {kind}": of_heads(result, shared=kind == "shared") for kind in ("personal", "shared")}
    answers |= {called: dict.fromkeys(data.train, answer) for called, answer in regressions(data).items()}
    return [{"table": name, "seed": seed, "model": called, **figures(each, data)} for called, each in answers.items()]


def pages(rows: list[Row]) -> dict[str, Any]:
    """Means and standard errors over seeds: figures of every model, and how far PACE's log loss is above a regression's."""
    found = {}
    for name in dict.fromkeys(row["table"] for row in rows):
        mine = [row for row in rows if row["table"] == name]
        models = list(dict.fromkeys(row["model"] for row in mine))
        losses = {model: {row["seed"]: row["log_loss"] for row in mine if row["model"] == model} for model in models}

        def away(ours: str, theirs: str, losses: dict[str, dict[int, float]] = losses) -> list[float]:
            return summary([losses[ours][seed] - losses[theirs][seed] for seed in losses[ours]])

        ours, others = [name for name in models if "LR" not in name], [name for name in models if "LR" in name]
        margins = {name: {other: away(name, other) for other in others} for name in ours}
        found[name] = {"figures": of_models(mine), "margin": margins}
    return {"seeds": len({row["seed"] for row in rows}), "hospitals": HOSPITALS, "tables": found}


BENCH = Bench("clean_tables", cells, measure, pages)
