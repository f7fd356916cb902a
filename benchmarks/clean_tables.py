"""Clean tables: log loss of PACE's personal and shared heads beside pooled logistic regression on the same encoding.

    python -m benchmarks.clean_tables FOLDER [--seeds 10]

FOLDER holds the heart data, a CSV file for each of four hospitals; its label is `num > 0`. The other tables are scikit-learn's,
cut at random among eight hospitals; of diabetes the class is whether the disease went further than in half of all patients. A
quarter of each hospital is held out. What logistic regression gets is what the federation's own encoder made of its training
rows, all hospitals' in one, standardised; its C is 1 or chosen by cross-validation in them. Figures are of all hospitals' test
rows together, `margin` the mean difference from a regression over seeds: below zero PACE is ahead. Writes
benchmarks/results/clean_tables.json.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.binary import HOSPITALS, Answer, Cut, figures, line, of_heads, pooled_regressions, summary
from benchmarks.timing import write
from gramfold.federation import Samples

Summary = dict[str, dict[str, list[float]]]


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


def measure(make: Callable[[int], gf.Federation], seeds: int) -> tuple[Summary, Summary]:
    """Means and standard errors over seeds: figures of every model, and how far PACE's log loss is above a regression's."""
    runs: list[dict[str, dict[str, float]]] = []
    for seed in range(seeds):
        federation = make(seed)
        data = encoded(federation)
        pace = gf.run(gf.PACE(), federation)
        answers = {"PACE personal": of_heads(pace, shared=False), "PACE shared": of_heads(pace, shared=True)}
        answers |= {name: dict.fromkeys(data.train, answer) for name, answer in regressions(data).items()}
        runs.append({name: figures(each, data) for name, each in answers.items()})

    def margin(ours: str, theirs: str) -> list[float]:
        return summary([run[ours]["log_loss"] - run[theirs]["log_loss"] for run in runs])

    ours, theirs = list(runs[0])[:2], list(runs[0])[2:]
    found = {name: {key: summary([run[name][key] for run in runs]) for key in runs[0][name]} for name in runs[0]}
    return found, {name: {other: margin(name, other) for other in theirs} for name in ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the heart data's four files")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    results = {}
    for name, make in tables(given.folder).items():
        found, margins = measure(make, given.seeds)
        results[name] = {"figures": found, "margin": margins}
        print(name, *(line(model, each) for model, each in found.items()), margins, sep="\n", flush=True)
    write("clean_tables", {"seeds": given.seeds, "hospitals": HOSPITALS, "tables": results})


if __name__ == "__main__":
    main()
