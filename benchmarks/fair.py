"""Every method under one protocol: as it is, among a client's own classes, and with the class prior and a temperature.

    python -m benchmarks.fair FILE.npz [--device cuda] [--jobs 12] [--rounds 200] [--seeds 3] [--minutes 8.5] [--methods ...]

CIFAR-100 features (as they are, or as `benchmarks.carried` packs them), six cells, and two kinds of test split: *shares*, test
images cut in exactly the class shares of each client's training images, and *fresh*, each client's images split at random.
What is fitted (a rival's parameters, the temperature of its log-probabilities and the weight of the class prior beside them) is
fitted on a fifth of every client's training images, held out from a run of its own, once for each cell. Every cell has all three
accuracies, so that what the prior brings a rival can be read off. PACE has nothing fitted: what is, is kept and not used.

What is done is not run again: first what stands in the result file, then what stands in `--out`. Work goes seed by seed, so that
whenever it is stopped (`--minutes`: nothing begins that might not end in time) the table is whole but for its last seed.
"""

import argparse
import itertools
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import gramfold as gf
from benchmarks.carried import load
from benchmarks.cells import cell_path, run_cells
from benchmarks.evidence import Evidence
from benchmarks.pace import CELLS
from benchmarks.provenance import RESULTS, code_of, made_here
from gramfold.errors import NotFiniteError
from gramfold.federation.datasets import Dataset
from gramfold.federation.partition import Partition
from gramfold.methods import ClientData, make_method

Values = Mapping[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Rival(NamedTuple):
    """A method, what is set, and what is swept, one parameter after another, the first values first. `then`: methods that end
    otherwise after the same rounds, and what is swept of them."""

    method: str
    given: Values = NOTHING
    grids: Mapping[str, tuple[Any, ...]] = NOTHING
    then: Mapping[str, Mapping[str, tuple[Any, ...]]] = NOTHING
    seconds: int = 60
    """About how long a run takes beside a dozen others on a GPU."""


RATES = (0.1, 0.3, 0.03, 1.0, 3.0)
FINISH = {"lr": (0.01, 0.03, 0.003, 0.1, 0.3)}
MLP = {"model": "mlp:256"}
RIVALS = {
    "local": Rival("local"), "afl": Rival("afl", seconds=20), "localclasses": Rival("localclasses", seconds=20),
    "fedhip": Rival("fedhip"), "apfl": Rival("apfl"), "fedcgs": Rival("fedcgs", seconds=20),
    "gh-ofl": Rival("gh-ofl", NOTHING, {"shrinkage": (0.01, 0.003, 0.001, 0.0003, 0.03, 0.1)}, seconds=20),
    "fedcof": Rival("fedcof", NOTHING, {"penalty": (0.1, 0.03, 0.01, 0.003, 0.3, 1.0)}, seconds=20),
    "safle": Rival("safle", NOTHING, {"group": (2, 1, 4), "levels": (3, 1, 7)}, seconds=60),
    "pace-linear": Rival("pace", {"features": "bias+linear"}, seconds=60), "pace": Rival("pace", seconds=60),
    "fedavg": Rival("fedavg", NOTHING, {"lr": RATES}, {"fedavg-ft": FINISH}, 160),
    "fedavg-mlp": Rival("fedavg", MLP, {"lr": RATES}, {"lp-ft": FINISH}, 170),
    "fedrep": Rival("fedrep", {**MLP, "epochs": 1, "head_epochs": 2}, {"lr": RATES}, seconds=170),
    "feddbe": Rival("feddbe", MLP, {"lr": RATES, "kappa": (50.0, 5.0, 500.0)}, seconds=170),
}  # fmt: skip
"""Those that need a base have an `mlp:256`, so FedAvg has one, too, beside its linear head. All gradient methods have three local
epochs a round; FedRep's are two on the head and one on the base."""
SPLITS = ("shares", "fresh")
SWEEP_ROUNDS = 20
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
    """The best values, one parameter after another."""
    best = {name: values[0] for name, values in grids.items()}
    for name, values in grids.items():
        scores = {}
        for value in values:
            tried = {**best, name: value}
            key = json.dumps(tried)
            if key not in log:
                try:
                    log[key] = score(tried)
                except NotFiniteError:  # it diverged
                    log[key] = 0.0
            scores[value] = log[key]
        best[name] = max(scores, key=lambda value: scores[value])
    return best


class Cell:
    """One method on one cut: what is held out decides, seeds measure."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.split, clients, alpha, self.name, self.what = given.cell.split("/")
        self.rival, data = RIVALS[self.name], load(given.path)
        self.cut = partial(federation, data, self.split, int(clients), float(alpha))
        self.start = f"{self.split}/{clients}/{alpha}"

    def run(self, values: Values, parts: gf.Federation, rounds: int) -> gf.Result:
        return gf.run(made(self.rival, rounds, values), parts, device=self.given.device, keep_total=False)

    def held_out(self) -> list[dict[str, Any]]:
        """What is fitted, and on what grounds, for the method and those that end otherwise."""
        parts, log = self.cut(0).validation(), dict[str, float]()

        def tried(values: Values) -> float:
            evidence = Evidence(self.run(values, parts, SWEEP_ROUNDS).heads, parts)
            return evidence.accuracy(evidence.fitted())

        best = swept(self.rival.grids, tried, log)
        result = self.run(best, parts, self.given.rounds)
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
            return {"cell": f"{self.start}/{name}", "seed": number, **Evidence(heads, parts).figures(weights)}

        result = self.run(fitted[self.name]["chosen"], parts, self.given.rounds)
        rows = [row(self.name, result.heads)]
        for name in self.rival.then:
            rows.append(row(name, finished(name, self.rival, fitted[name]["chosen"], result, parts, self.given.device)))
        return rows


def run_one(given: argparse.Namespace) -> None:
    cell, out = Cell(given), Path(given.out)
    if cell.what == HELD_OUT:
        rows = cell.held_out()
    else:
        before = json.loads(cell_path(out, f"{cell.start}/{cell.name}/{HELD_OUT}").read_text())
        rows = cell.seed(int(cell.what), {row["method"]: row for row in before})
    rows = [{**row, "code": code_of(row["cell"].rpartition("/")[2].removesuffix("-mlp").removesuffix("-linear"))} for row in rows]
    path = cell_path(out, given.cell)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(rows))
    part.replace(path)


# --- what is done, and what is to do ---


def unpack(kept: Mapping[str, Any], out: Path, again: list[str]) -> None:
    """Lay the cells of a result file out again, so that they are not run once more, but for those of some methods."""
    out.mkdir(parents=True, exist_ok=True)
    for cell, rows in kept.items():
        if not cell_path(out, cell).exists() and cell.split("_")[3] not in again:
            cell_path(out, cell).write_text(json.dumps(rows))


def gathered(cells: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A row for every method on every cut, its seeds in lists."""
    rows = dict[str, dict[str, Any]]()
    for cell in sorted(cells):
        for row in cells[cell]:
            if "method" in row:
                rows[row["cell"]] = {**row, "seeds": []}
    for cell in sorted(cells):
        for row in cells[cell]:
            if "seed" in row and row["cell"] in rows:
                into = rows[row["cell"]]
                into["seeds"].append(row["seed"])
                for key, value in row.items():
                    if key not in ("cell", "seed", "code"):
                        into.setdefault(key, []).append(value)
    return [row for row in rows.values() if row["seeds"]]


def codes(cells: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    """The code that a method's figures are of: "mixed" where cells are of several."""
    found: dict[str, set[str]] = {}
    for row in itertools.chain.from_iterable(cells.values()):
        found.setdefault(row["cell"].rpartition("/")[2].removesuffix("-mlp").removesuffix("-linear"), set()).add(row["code"])
    return {method: "mixed" if len(several) > 1 else several.pop() for method, several in sorted(found.items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing that might not end by then")
    parser.add_argument("--splits", default=",".join(SPLITS))
    parser.add_argument("--cuts", default=",".join(f"{clients}/{alpha}" for clients, alpha in CELLS))
    parser.add_argument("--methods", default=",".join(RIVALS))
    parser.add_argument("--out", default="build/fair")
    parser.add_argument("--results", default=str(RESULTS / "fair.json"))
    parser.add_argument("--again", default="", help="methods whose cells are measured anew")
    parser.add_argument("--cell", default="", help="run this one cell (used by the benchmark itself)")
    given = parser.parse_args()
    if given.cell:
        return run_one(given)
    out, results, until = Path(given.out), Path(given.results), time.monotonic() + 60 * given.minutes
    if results.exists():
        unpack(json.loads(results.read_text()).get("cells", {}), out, given.again.split(","))
    load(given.path)  # whole, once
    passed = [given.path, "--device", given.device, "--rounds", str(given.rounds), "--out", given.out]
    asked = dict[str, list[str]]()
    for what in (HELD_OUT, *map(str, range(given.seeds))):
        asked[what] = [
            f"{split}/{cut}/{name}/{what}"
            for split in given.splits.split(",") for name in given.methods.split(",") for cut in given.cuts.split(",")
        ]  # fmt: skip
    for what, names in asked.items():
        ready = [name for name in names if what == HELD_OUT or _held_out(out, name).exists()]
        sweeps = 3 if what == HELD_OUT else 1
        seconds = {
            name: (sweeps if RIVALS[name.split("/")[3]].grids else 1) * RIVALS[name.split("/")[3]].seconds for name in ready
        }
        run_cells("benchmarks.fair", ready, passed, out, given.jobs, until, seconds)
    cells = {path.stem: json.loads(path.read_text()) for path in sorted(out.glob("*.json"))}
    rows = gathered(cells)
    figures = {"rounds": given.rounds, "rows": rows, "cells": cells, "stamp": {**made_here(), "code": codes(cells)}}
    results.write_text(json.dumps(figures) + "\n")
    print(f"{len(cells)} cells, {sum(len(row['seeds']) for row in rows)} figures in {results}", flush=True)


def _held_out(out: Path, cell: str) -> Path:
    return cell_path(out, f"{cell.rpartition('/')[0]}/{HELD_OUT}")


if __name__ == "__main__":
    main()
