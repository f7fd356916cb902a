"""PACE with nothing set on every kind of cut, against the best analytic method tuned on the test data, and its estimate against
the truth.

    python -m benchmarks every_data --data FOLDER

Data sets: scikit-learn's digits and breast cancer; the digits as ten writers would have them, each of whom turns, slants and
stretches them in a way of their own; CIFAR-100 features (20,000 of them) and the features of eight domains, where their files are
given. The rows of a data set are cut among clients, and each client's own are split at random, a quarter for testing, so that new
samples are a fresh draw. Domains and writers are also clients themselves, and four clients each. One linear map for all.
Rivals: AFL, AFL among a client's own classes (LocalClasses), each client alone, FedHiP and APFL, each with the values that are
best on the test data of the cell, over all seeds.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import affine_transform
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
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
    """A data set: which domain (or whose) each row is, where it has any, and what that is called."""

    X: np.ndarray
    codes: np.ndarray
    domains: np.ndarray | None = None
    called: str = "domains"


class Asked(NamedTuple):
    """How often a data set is cut anew, and among how many clients. `file`: what it is read from."""

    seeds: int
    clients: tuple[int, ...]
    classes: int
    domains: str = ""
    file: str = ""
    seconds: float = 1.0


ASKED = {
    "eight domains": Asked(6, (10, 100, 300), 20, "domains", "shift-dinov2s.npz", 15.0),
    "CIFAR-100": Asked(3, (100, 1000, 10), 100, "", "cifar100-dinov2s.npz", 60.0),
    "ten writers": Asked(30, (), 10, "writers"),
    "digits": Asked(15, (10, 50, 150), 10),
    "breast cancer": Asked(90, (5, 20), 2),
}
"""The smaller they are, the more often they are cut anew: test splits are small, too."""


@lru_cache(1)
def data_set(given: Given, name: str) -> Data:
    if name == "digits":
        return Data(*load_digits(return_X_y=True))
    if name == "ten writers":
        return Data(*written(10), "writers")
    if name == "breast cancer":
        X, codes = load_breast_cancer(return_X_y=True)
        return Data(StandardScaler().fit_transform(X), codes)
    data = load_npz(given.file(ASKED[name].file))
    if name == "eight domains":
        return Data(np.asarray(data.inputs, np.float32), data.codes, _codes(data.client))
    rows = np.random.default_rng(0).permutation(len(data.codes))[:20_000]
    return Data(np.asarray(data.inputs[rows], np.float32), data.codes[rows])


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


def cells(given: Given) -> Iterator[Cell]:
    """How a data set is cut, among how many; seed after seed."""
    for seed in seeds(given, max(asked.seeds for asked in ASKED.values())):
        for name, asked in ASKED.items():
            if seed >= asked.seeds or (asked.file and not given.file(asked.file)):
                continue
            each = [(f"{asked.domains}, {n} client{'s'[: n - 1]} each", n) for n in (1, 4) if asked.domains]
            few = [(cut, n) for n in asked.clients for cut in CUTS if cut == "classes:2" and 2 * n < asked.classes]
            dealt = [(cut, n) for n in asked.clients for cut in CUTS]
            for cut, clients in [*each, *(one for one in dealt if one not in few)]:  # too few clients hold not all classes
                yield Cell((name, cut, clients, seed), ("pace", "afl", "fedhip", "apfl", "local"), asked.seconds)


def owners(data: Data, cut: str, clients: int, seed: int) -> np.ndarray:
    """Whose each row is. `clients`: of a domain, or in all."""
    if "each" in cut and data.domains is not None:
        return data.domains * clients + np.random.default_rng([seed, 7, clients]).integers(0, clients, len(data.codes))
    rng = np.random.default_rng([seed, 7, clients, CUTS.index(cut)])
    return Partition.parse(cut).draw(data.codes, clients, rng)


def run_cell(parts: Cut, classes: int, seed: int = 0) -> dict[str, Any]:
    """PACE's figures, and every rival's with each of its values: the mean over clients, and over the worst tenth."""
    train = sum(one.n for one, _ in parts)
    clients = {str(k): (one.inputs, one.targets, test.inputs, test.targets) for k, (one, test) in enumerate(parts)}
    result = gf.run(gf.PACE(features=MAP), gf.Federation.from_clients(clients, labels=range(classes), random_state=seed))
    final = shared(parts, Task(parts[0][0].inputs.shape[1], tuple(range(classes)), classes, 0, train))
    grids: dict[str, list[np.ndarray]] = {}
    scored, estimates, calibration, alphas = [], [], Calibration(), []
    for (one, test), head in zip(parts, result.heads.values(), strict=True):
        found = score_head(head, test)
        scored.append(found.accuracy)
        estimates.append(head.chosen["leave_one_out_accuracy"])
        alphas.append(head.chosen.get("alpha", 0.0) > 0)
        calibration += found.calibration
        for name, grid in rivals(one, test, final).items():
            grids.setdefault(name, []).append(grid)
    tables = {name: np.array(parts_of).T for name, parts_of in grids.items()}
    found = {
        name: [(round(float(one.mean()), 5), round(worst_decile(one), 5)) for one in table] for name, table in tables.items()
    }
    return {
        "train": train, "pace": mean(scored), "pace_worst": worst_decile(scored), "estimate": mean(estimates),
        "calibration_error": calibration.expected_error, "own_way": mean(alphas), "rivals": found,
    }  # fmt: skip


def shared(parts: Cut, task: Task) -> Any:
    """What AFL, FedHiP and APFL share: the pooled ridge, its factor, and APFL's refinement map."""
    method = gf.PACE(features=MAP, refinement=gf.APFL.refinement)
    begin, total = method.begin(task), None
    for one, _ in parts:
        moments = begin.space.fold(ClientData("", one))
        total = moments if total is None else total.__iadd__(moments)
    return method.aggregate(total.settle(), begin)


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


def measure(given: Given, name: str, cut: str, clients: int, seed: int) -> list[Row]:
    data = data_set(given, name)
    whose = owners(data, cut, clients, seed)
    found = run_cell(split(data.X, data.codes, whose, seed), int(data.codes.max()) + 1, seed)
    number = clients if data.domains is None or "each" not in cut else clients * (int(data.domains.max()) + 1)
    return [{"data": name, "cut": cut, "clients": number, "seed": seed, **found}]


def settled(rows: list[Row]) -> list[Row]:
    """Of every rival the value that is best on the test data of all seeds: one for each seed would be the best of its luck."""
    best = {}
    for cell in {(row["data"], row["cut"], row["clients"]) for row in rows}:
        same = [row["rivals"] for row in rows if (row["data"], row["cut"], row["clients"]) == cell]
        best[cell] = {name: int(np.mean([[one for one, _ in of[name]] for of in same], axis=0).argmax()) for name in same[0]}

    def at(row: Row) -> Row:
        chosen = best[row["data"], row["cut"], row["clients"]]
        found = {name: row["rivals"][name][value] for name, value in chosen.items()}
        return {**row, "rivals": {name: {"mean": one, "worst": worst} for name, (one, worst) in found.items()}}

    return [at(row) for row in rows]


BENCH = Bench("every_data", cells, measure, settled)
