"""PACE with nothing set on every kind of cut, against the best analytic method tuned on the test data, and its estimate against
the truth.

    python -m benchmarks.every_data [--cifar FILE.npz] [--shift FILE.npz] [--seeds 3] [--only digits]

Data sets: scikit-learn's digits and breast cancer; the digits as ten writers would have them, each of whom turns, slants and
stretches them in a way of their own; CIFAR-100 features (20,000 of them) and the features of eight domains, where their files are
given. The rows of a data set are cut among clients, and each client's own are split at random, a quarter for testing, so that new
samples are a fresh draw. Domains and writers are also clients themselves, and four clients each. One linear map for all.
Rivals: AFL, AFL among a client's own classes (LocalClasses), each client alone, FedHiP and APFL, each with the values that are
best on the test data of the cell, over all seeds.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import affine_transform
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.provenance import RESULTS, stamp
from gramfold.evaluation import Calibration, mean, score_head, worst_decile
from gramfold.federation import Samples, Task, load_npz
from gramfold.federation.partition import Partition
from gramfold.methods import ClientData
from gramfold.solve.leave_one_out import Kernel

MAP = "bias+linear"
CUTS = ("dirichlet:0.1", "dirichlet:1", "dirichlet:100", "classes:2", "shards:2", "quantity:0.5", "iid")
ALPHAS, BETAS, GAMMAS = np.logspace(-1, 4, 11), np.logspace(-5, 1, 7), np.logspace(-1.5, 1.5, 7)
LAMBDAS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
LEAST = 4
"""Samples of a client that takes part."""

Cut = list[tuple[Samples, Samples]]


def split(X: np.ndarray, codes: np.ndarray, owners: np.ndarray, seed: int) -> Cut:
    """Clients' training and test samples."""
    rng, parts = np.random.default_rng(seed), []
    for k in range(owners.max() + 1):
        mine = rng.permutation(np.flatnonzero(owners == k))
        if len(mine) >= LEAST:
            test, train = np.split(mine, [max(1, round(len(mine) / 4))])
            parts.append((Samples(X[train], codes[train]), Samples(X[test], codes[test])))
    return parts


class Data(NamedTuple):
    """A data set: which domain (or whose) each row is, where it has any, and what that is called; among how many clients it is
    cut, and how often anew."""

    name: str
    X: np.ndarray
    codes: np.ndarray
    domains: np.ndarray | None
    clients: list[int]
    seeds: int
    called: str = "domains"


def data_sets(cifar: str | None, shift: str | None, seeds: int) -> Iterator[Data]:
    """The smaller they are, the more often they are cut anew: test splits are small, too."""
    yield Data("digits", *load_digits(return_X_y=True), None, [10, 50, 150], 5 * seeds)
    yield Data("ten writers", *written(10), [], 10 * seeds, "writers")
    X, codes = load_breast_cancer(return_X_y=True)
    yield Data("breast cancer", StandardScaler().fit_transform(X), codes, None, [5, 20], 30 * seeds)
    if shift:
        data = load_npz(shift)
        yield Data(
            "eight domains", np.asarray(data.inputs, np.float32), data.codes, _codes(data.client), [10, 100, 300], 2 * seeds
        )
    if cifar:
        data = load_npz(cifar)
        rows = np.random.default_rng(0).permutation(len(data.codes))[:20_000]
        yield Data("CIFAR-100", np.asarray(data.inputs[rows], np.float32), data.codes[rows], None, [100, 1000, 10], seeds)


def written(writers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The digits dealt to writers, each with an angle, a slant and a size of their own; their classes, and who wrote them."""
    X, codes = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    who = rng.integers(0, writers, len(codes))
    images = X.reshape(-1, 8, 8).copy()
    for one in range(writers):
        angle, slant, (high, wide) = rng.uniform(-0.7, 0.7), rng.uniform(-0.5, 0.5), rng.uniform(0.8, 1.3, 2)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        way = turn @ np.array([[high, 0.0], [slant, wide]])
        centre = np.full(2, 3.5)
        for place in np.flatnonzero(who == one):
            images[place] = affine_transform(images[place], way, centre - way @ centre, order=1)
    return images.reshape(len(X), -1), codes, who


def _codes(names: Any) -> np.ndarray:
    return np.unique(np.asarray(names), return_inverse=True)[1]


def cells(data: Data, seed: int) -> Iterator[tuple[str, int, np.ndarray]]:
    """How it is cut, among how many, and each row's owner."""
    codes, domains = data.codes, data.domains
    rng = np.random.default_rng([seed, 7])
    if domains is not None:
        for each in (1, 4):
            called = f"{data.called}, {each} client{'s'[: each - 1]} each"
            yield called, (int(domains.max()) + 1) * each, domains * each + rng.integers(0, each, len(codes))
    for number in data.clients:
        for cut in CUTS:
            if cut == "classes:2" and 2 * number < codes.max() + 1:
                continue  # too few clients to hold all classes
            yield cut, number, Partition.parse(cut).draw(codes, number, rng)


def run_cell(parts: Cut, classes: int) -> dict[str, Any]:
    """PACE's figures, and every rival's with each of its values: the mean over clients, and over the worst tenth."""
    train = sum(one.n for one, _ in parts)
    method = gf.PACE(features=MAP)
    begin = method.begin(Task(parts[0][0].inputs.shape[1], tuple(range(classes)), classes, 0, train))
    total = None
    for one, _ in parts:
        moments = begin.space.fold(ClientData("", one))
        total = moments if total is None else total.__iadd__(moments)
    final = method.aggregate(total.settle(), begin)
    grids: dict[str, list[np.ndarray]] = {}
    scored, estimates, calibration, alphas = [], [], Calibration(), []
    for one, test in parts:
        head = method.personalize(ClientData("", one, contributed=True), final)
        found = score_head(head, test)
        scored.append(found.accuracy)
        estimates.append(head.chosen["leave_one_out_accuracy"])
        alphas.append(head.chosen.get("alpha", 0.0) > 0)
        calibration += found.calibration
        for name, grid in rivals(one, test, final).items():
            grids.setdefault(name, []).append(grid)
    tables = {name: np.array(parts_of).T for name, parts_of in grids.items()}
    found = {name: [(float(one.mean()), worst_decile(one)) for one in table] for name, table in tables.items()}
    return {
        "train": train, "pace": mean(scored), "pace_worst": worst_decile(scored), "estimate": mean(estimates),
        "calibration_error": calibration.expected_error, "own_way": mean(alphas), "rivals": found,
    }  # fmt: skip


def rivals(one: Samples, test: Samples, final: Any) -> dict[str, np.ndarray]:
    """Test accuracies of every rival, for each of its values."""
    space, psi, pooled = final.space, final.refinement, final.pooled
    rows, new = space.map(one.inputs), space.map(test.inputs)
    targets, base = space.targets(one, rows), new @ pooled.weights
    residuals = targets - rows @ pooled.weights

    def right(scores: np.ndarray) -> float:
        return float((scores.argmax(1) == test.targets).mean())

    def fits(kernel: Kernel, between: np.ndarray, wanted: np.ndarray, penalties: np.ndarray) -> list[np.ndarray]:
        return [between @ kernel.apply(1 / (kernel.values + p), 1 / p, wanted) for p in penalties]

    own, other = (pooled.leverage.solve_lower(part.T).T for part in (rows, new))
    refined = psi(one.inputs)
    alone, blend, refinement = Kernel.of(rows), Kernel.of(own), Kernel.of(refined)
    refining = fits(refinement, psi(test.inputs) @ refined.T, residuals, GAMMAS * refinement.mean_diagonal)
    absent = ~np.isin(np.arange(base.shape[1]), one.targets)
    return {
        "AFL": np.array([right(base)]),
        "LocalClasses": np.array([right(np.where(absent, -np.inf, base))]),
        "Local": np.array([right(fit) for fit in fits(alone, new @ rows.T, targets, BETAS * alone.mean_diagonal)]),
        "FedHiP": np.array([right(base + fit) for fit in fits(blend, other @ own.T, residuals, 1 / ALPHAS)]),
        "APFL": np.array([right(base + lam * fit) for fit in refining for lam in LAMBDAS]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cifar")
    parser.add_argument("--shift")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="one data set: the others' rows of the result file stay as they are")
    given = parser.parse_args()
    for data in data_sets(given.cifar, given.shift, given.seeds):
        if given.only in (None, data.name):
            rows: list[dict[str, Any]] = []
            for seed in range(data.seeds):
                rows += measure(data, seed)
                keep(data.name, settled(rows))  # what is cut short has the seeds that it came to
    if given.only is None:
        stamp("every_data")


def measure(data: Data, seed: int) -> Iterator[dict[str, Any]]:
    for cut, number, owners in cells(data, seed):
        figures = run_cell(split(data.X, data.codes, owners, seed), int(data.codes.max()) + 1)
        print(data.name, cut, number, seed, f"{figures['pace']:.4f} {figures['estimate']:.4f}", flush=True)
        yield {"data": data.name, "cut": cut, "clients": number, "seed": seed, **figures}


def settled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of every rival the value that is best on the test data of all seeds: one for each seed would be the best of its luck."""
    best = {}
    for cell in {(row["cut"], row["clients"]) for row in rows}:
        same = [row["rivals"] for row in rows if (row["cut"], row["clients"]) == cell]
        best[cell] = {name: int(np.mean([[one for one, _ in of[name]] for of in same], axis=0).argmax()) for name in same[0]}

    def at(row: dict[str, Any]) -> dict[str, Any]:
        chosen = {name: row["rivals"][name][value] for name, value in best[row["cut"], row["clients"]].items()}
        return {**row, "rivals": {name: {"mean": one, "worst": worst} for name, (one, worst) in chosen.items()}}

    return [at(row) for row in rows]


def keep(name: str, rows: list[dict[str, Any]]) -> None:
    """Write a data set's rows in place of those that were there."""
    path = RESULTS / "every_data.json"
    others = [row for row in (json.loads(path.read_text()) if path.exists() else []) if row["data"] != name]
    lines = ",\n".join(json.dumps(row) for row in others + rows)
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
