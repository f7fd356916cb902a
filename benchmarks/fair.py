"""Every method under one protocol: as it is, among a client's own classes, and with the class prior and a temperature.

    python -m benchmarks fair --data FOLDER --device cuda --jobs 14 [--only fresh/100]

CIFAR-100 features, six cuts, and two kinds of test split: *shares*, test images cut in exactly the class shares of each client's
training images, and *fresh*, each client's images split at random; three seeds. What is fitted (a rival's parameters, the
temperature of its log-probabilities and the weight of the class prior beside them) is fitted on a fifth of every client's
training images, held out from a run of its own, once for each cut. Every cell has all three accuracies, so that what the prior
brings a rival can be read off. PACE has nothing fitted; of its heads both estimates are kept, which know no test image.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import gramfold as gf
from benchmarks import kept
from benchmarks.bench import Bench, Cell, Given, Row, named, seeds
from benchmarks.evidence import PLAIN, Evidence
from benchmarks.pace import CELLS, CIFAR
from gramfold.errors import NotFiniteError
from gramfold.federation import load_npz
from gramfold.federation.datasets import Dataset
from gramfold.federation.partition import Partition
from gramfold.methods import ClientData, make_method

Values = Mapping[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Rival(NamedTuple):
    """A method, what is set, and what is swept, one parameter after another: values from small to large. `then`: methods that
    end otherwise after the same rounds, and what is swept of them."""

    method: str
    given: Values = NOTHING
    grids: Mapping[str, tuple[Any, ...]] = NOTHING
    then: Mapping[str, Mapping[str, tuple[Any, ...]]] = NOTHING
    seconds: int = 60
    """About how long a run takes beside a dozen others on a GPU."""
    gradient: bool = False


RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
FINISH = {"lr": (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)}
MLP = {"model": "mlp:256"}
SHRINKAGE, PENALTY = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1), (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
RIVALS = {
    "pace": Rival("pace"), "pace-linear": Rival("pace", {"features": "bias+linear"}), "afl": Rival("afl", seconds=20),
    "localclasses": Rival("localclasses", seconds=20), "local": Rival("local"), "fedhip": Rival("fedhip"), "apfl": Rival("apfl"),
    "fedcgs": Rival("fedcgs", seconds=20), "gh-ofl": Rival("gh-ofl", NOTHING, {"shrinkage": SHRINKAGE}, seconds=20),
    "fedcof": Rival("fedcof", NOTHING, {"penalty": PENALTY}, seconds=20),
    "safle": Rival("safle", NOTHING, {"group": (1, 2, 4), "levels": (1, 3, 7)}, NOTHING, 300, True),
    "fedavg": Rival("fedavg", NOTHING, {"lr": RATES}, {"fedavg-ft": FINISH}, 160, True),
    "fedavg-mlp": Rival("fedavg", MLP, {"lr": RATES}, {"lp-ft": FINISH}, 170, True),
    "fedrep": Rival("fedrep", {**MLP, "epochs": 1, "head_epochs": 2}, {"lr": RATES}, NOTHING, 170, True),
    "feddbe": Rival("feddbe", MLP, {"lr": RATES, "kappa": (0.5, 5.0, 50.0, 500.0, 5000.0)}, NOTHING, 170, True),
}  # fmt: skip
"""Those that need a base have an `mlp:256`, so FedAvg has one, too, beside its linear head. All gradient methods have three local
epochs a round; FedRep's are two on the head and one on the base."""
NOTHING_FITTED = ("pace", "pace-linear")
ESTIMATES = {"leave_one_out_accuracy": "fresh", "leave_one_out_accuracy_same_shares": "shares"}
"""What a head says of itself, and of which kind of test split."""
SPLITS = ("shares", "fresh")
ROUNDS, SWEEP_ROUNDS = 200, 20
TEST = 1 / 6
HELD_OUT = "held out"


def federation(data: Dataset, split: str, clients: int, alpha: float, seed: int) -> gf.Federation:
    if split == "shares":
        return gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", random_state=seed)
    rng = np.random.default_rng([seed, clients, int(10 * alpha)])
    owners = Partition.parse(f"dirichlet:{alpha}").cut(data.codes, clients, rng, min_size=20)
    parts = {}
    for k in range(clients):
        mine = rng.permutation(np.flatnonzero(owners == k))
        test, train = np.split(mine, [max(1, round(len(mine) * TEST))])
        parts[str(k)] = tuple(itertools.chain.from_iterable((data.inputs[rows], data.codes[rows]) for rows in (train, test)))
    return gf.Federation.from_clients(parts, random_state=seed, labels=range(data.outputs))


def made(rival: Rival, rounds: int, values: Values) -> Any:
    """The method with these values, of so many rounds where it has that choice."""
    try:
        return make_method(rival.method, rounds=rounds, **{**rival.given, **values})
    except gf.GramfoldError as error:
        if "no parameter rounds" not in str(error):
            raise
        return make_method(rival.method, **{**rival.given, **values})


def finished(name: str, rival: Rival, values: Values, result: gf.Result, parts: gf.Federation, device: str) -> dict[str, Any]:
    """Clients' heads where they end otherwise after the same rounds."""
    from gramfold.engines.inprocess import on_device

    ending: Any = make_method(name, **{**rival.given, **values})
    clients = [ClientData(client.name, on_device(client.train(), device)) for client in parts]
    heads = ending.personalize_many(clients, result.run.broadcast)
    return {client.name: head for client, head in zip(parts, heads, strict=True)}


def swept(grids: Mapping[str, tuple[Any, ...]], score: Callable[[Values], float], log: dict[str, float]) -> dict[str, Any]:
    """The best values, one parameter after another: from the middle of a grid on, until values on both sides are worse."""
    best = {name: values[len(values) // 2] for name, values in grids.items()}

    def scored(tried: Values) -> float:
        key = json.dumps(tried)
        if key not in log:
            try:
                log[key] = score(tried)
            except NotFiniteError:  # it diverged
                log[key] = 0.0
        return log[key]

    for name, values in grids.items():
        place = len(values) // 2
        while True:
            beside = [at for at in (place, place - 1, place + 1) if 0 <= at < len(values)]
            found = max(beside, key=lambda at: scored({**best, name: values[at]}))
            if found == place:
                break
            place = found
        best[name] = values[place]
    return best


@lru_cache(1)
def _data(given: Given) -> Dataset:
    return load_npz(given.file(CIFAR))


class Cut:
    """One method on one cut: what is held out decides, seeds measure."""

    def __init__(self, given: Given, split: str, clients: int, alpha: float, name: str) -> None:
        self.given, self.name, self.rival, self.rounds = given, name, RIVALS[name], given.rounds or ROUNDS
        self.cut = lambda seed: federation(_data(given), split, clients, alpha, seed)
        self.start = f"{split}/{clients}/{alpha}"

    def run(self, values: Values, parts: gf.Federation, rounds: int) -> gf.Result:
        return gf.run(made(self.rival, rounds, values), parts, device=self.given.device, keep_total=False)

    def held_out(self) -> list[dict[str, Any]]:
        """What is fitted, and on what grounds, for the method and those that end otherwise."""
        if self.name in NOTHING_FITTED:
            return [self._row(self.name, {}, {}, PLAIN)]
        parts, log = self.cut(0).validation(), dict[str, float]()

        def tried(values: Values) -> float:
            evidence = Evidence(self.run(values, parts, min(SWEEP_ROUNDS, self.rounds)).heads, parts)
            return evidence.accuracy(evidence.fitted())

        best = swept(self.rival.grids, tried, log)
        result = self.run(best, parts, self.rounds)
        rows = [self._row(self.name, best, log, Evidence(result.heads, parts).fitted())]
        for name, grids in self.rival.then.items():
            found, seen = dict[str, Evidence](), dict[str, float]()

            def ended(values: Values, name: str = name, found: dict[str, Evidence] = found, result: gf.Result = result) -> float:
                heads = finished(name, self.rival, values, result, parts, self.given.device)
                found[json.dumps(values)] = evidence = Evidence(heads, parts)
                return evidence.accuracy(evidence.fitted())

            chosen = swept(grids, ended, seen)
            rows.append(self._row(name, chosen, seen, found[json.dumps(chosen)].fitted()))
        return rows

    def _row(self, name: str, best: Values, log: Values, weights: np.ndarray) -> dict[str, Any]:
        fitted = {"temperature": 1 / float(weights[0]), "prior": float(weights[1])}
        return {"cell": f"{self.start}/{name}", "method": name, "chosen": best, "swept": log, **fitted}

    def seed(self, number: int, fitted: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The figures of a seed, with what was fitted."""
        parts = self.cut(number)

        def row(name: str, heads: Any) -> dict[str, Any]:
            weights = np.array([1 / fitted[name]["temperature"], fitted[name]["prior"]])
            figures = {**Evidence(heads, parts).figures(weights), **estimated(heads.values())}
            return {"cell": f"{self.start}/{name}", "seed": number, **figures}

        result = self.run(fitted[self.name]["chosen"], parts, self.rounds)
        rows = [row(self.name, result.heads)]
        for name in self.rival.then:
            rows.append(row(name, finished(name, self.rival, fitted[name]["chosen"], result, parts, self.given.device)))
        return rows


def estimated(heads: Iterable[Any]) -> dict[str, float]:
    """The mean over clients of what heads say of themselves, before any test."""
    told = {key: [head.chosen[key] for head in heads if key in head.chosen] for key in ESTIMATES}
    return {f"estimate_{ESTIMATES[key]}": float(np.mean(values)) for key, values in told.items() if values}


def cells(given: Given) -> Iterator[Cell]:
    """PACE and the closed forms first, seed after seed; then gradient methods, one after another."""
    if not given.file(CIFAR):
        return
    gradient = [[name] for name, rival in RIVALS.items() if rival.gradient]
    for names in ([name for name, rival in RIVALS.items() if not rival.gradient], *gradient):
        for what in (HELD_OUT, *seeds(given, 3)):
            for split in SPLITS:
                for name in names:
                    for clients, alpha in CELLS:
                        yield _cell(split, clients, alpha, name, what)


def _cell(split: str, clients: int, alpha: float, name: str, what: Any) -> Cell:
    rival, start = RIVALS[name], (split, clients, alpha, name)
    methods = tuple(code_name(each) for each in (name, *rival.then))
    if what == HELD_OUT:
        return Cell((*start, what), methods, (2 if rival.grids else 1) * rival.seconds)
    return Cell((*start, what), methods, rival.seconds, needs=(*start, HELD_OUT))


def code_name(name: str) -> str:
    """The method that a row of a table is of."""
    return RIVALS[name].method if name in RIVALS else name


def measure(given: Given, split: str, clients: int, alpha: float, name: str, what: Any) -> list[Row]:
    cut = Cut(given, split, clients, alpha, name)
    if what == HELD_OUT:
        return cut.held_out()
    before = kept.read("fair", given.folder)[named((split, clients, alpha, name, HELD_OUT))]["rows"]
    return cut.seed(what, {row["method"]: row for row in before})


def gathered(rows: list[Row]) -> dict[str, Any]:
    """A row for every method on every cut, with what it reached in each seed."""
    found = {row["cell"]: {**row, "by_seed": {}} for row in rows if "method" in row}
    for row in sorted((row for row in rows if "seed" in row), key=lambda row: row["seed"]):
        if row["cell"] in found:
            found[row["cell"]]["by_seed"][row["seed"]] = {key: row[key] for key in row if key not in ("cell", "seed")}
    return {"rounds": ROUNDS, "rows": [row for row in found.values() if row["by_seed"]]}


BENCH = Bench("fair", cells, measure, gathered)
