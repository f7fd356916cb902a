"""Every method on every data set at hand: mean and worst decile, seconds and bytes. Nothing is set for any of them.

Digits, digits as images and breast cancer come with scikit-learn; others are given by path, and left out where they are not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from gramfold.bench.figures import over_seeds, table
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Table
from gramfold.bench.measuring import load, run_method
from gramfold.bench.rivals import run_rival, sweep
from gramfold.federation import Dataset, Federation
from gramfold.methods import ANALYTIC, GRADIENT, METHODS, ON_IMAGES, make_method
from gramfold.report.text import duration, size

HEAVY = ("heart-pfl",)
"""Has a bench of its own, with the network that it takes."""


@lru_cache(maxsize=1)
def breast_cancer() -> Dataset:
    """569 patients, 30 measurements, two classes: a table."""
    from sklearn.datasets import load_breast_cancer

    X, codes = load_breast_cancer(return_X_y=True)
    return Dataset("breast cancer", X.astype(np.float64), codes.astype(np.int64), (0, 1))


@dataclass(frozen=True)
class Place:
    """A data set and how it is cut; `file` is the name of its path where it is not embedded."""

    name: str
    open: Callable[[], Dataset] | None
    clients: int
    partition: str
    images: bool = False
    file: str | None = None

    @property
    def title(self) -> str:
        cut = f"{self.clients} clients, {self.partition}" if self.partition != "natural" else "clients as they are"
        return f"{self.name}: {cut}"

    def federation(self, options: Options, seed: int) -> Federation:
        dataset = self.open() if self.open is not None else load(options.path(self.file or "") or "")
        return Federation.from_dataset(dataset, self.clients, self.partition, random_state=seed)

    def methods(self, options: Options) -> list[str]:
        kind = "images" if self.images else "features"
        kinds = (*(ON_IMAGES if self.images else ANALYTIC), *GRADIENT)
        names = [one.name for one in kinds if kind in one.input_kinds and one.name not in HEAVY]
        return [name for name in names if not options["methods"] or name in options["methods"]]


PLACES = (
    Place("digits", partial(load, "digits"), 20, "dirichlet:0.1"),
    Place("digits", partial(load, "digits"), 20, "iid"),
    Place("breast cancer", breast_cancer, 8, "dirichlet:1"),
    Place("digits as images", partial(load, "digits-images"), 20, "dirichlet:0.1", images=True),
    Place("eight domains, DINOv2-small", None, 8, "natural", file="domains"),
    Place("CIFAR-100, DINOv2-small", None, 100, "dirichlet:0.1", file="cifar100"),
    Place("CIFAR-100, 20 classes as images", None, 20, "dirichlet:0.1", images=True, file="images"),
)


class Leaderboard(Bench):
    name: ClassVar[str] = "leaderboard"
    paper: ClassVar[str] = "all of them"
    summary: ClassVar[str] = "every method on every data set at hand: mean, worst decile, seconds, bytes"
    files: ClassVar[Mapping[str, str]] = {place.file: place.name for place in PLACES if place.file is not None}
    settings: ClassVar[Mapping[str, Any]] = {"methods": [], "rounds": 30, "sweep_rounds": 5}
    quick: ClassVar[Mapping[str, Any]] = {
        "methods": ["local", "afl", "pace", "fedacnnl", "fedavg"],
        "rounds": 2,
        "sweep_rounds": 0,
    }

    def cells(self, options: Options) -> list[Cell]:
        return [*self._cells(options)]

    def _cells(self, options: Options) -> Iterator[Cell]:
        for seed in options.seeds:
            for place in self._places(options):
                if place.partition == "natural" and seed != options.seeds[0]:
                    continue  # nothing is drawn
                for method in place.methods(options):
                    yield Cell(key(place, method, seed), partial(measure, options, place, method, seed))

    def _places(self, options: Options) -> list[Place]:
        at_hand = [place for place in PLACES if place.file is None or options.path(place.file) is not None]
        return at_hand[:3] if options.quick else at_hand

    def tables(self, found: Found, options: Options) -> list[Table]:
        made = [self._table(found, options, place) for place in self._places(options)]
        return [one for one in made if one["rows"]]

    def _table(self, found: Found, options: Options, place: Place) -> Table:
        rows: list[list[Any]] = []
        measured = [
            {seed for seed in options.seeds if key(place, method, seed) in found} for method in place.methods(options)
        ]  # fmt: skip
        seeds = sorted(set(options.seeds).intersection(*filter(None, measured)))  # a rank is over the seeds that all have
        for method in place.methods(options):
            of = partial(over_seeds, found, seeds, partial(key, place, method))
            if (mean := of("mean_accuracy")) is None:
                continue
            costs = [of(figure, scale=1.0) for figure in ("seconds", "uplink_bytes", "downlink_bytes")]
            seconds, up, down = (0.0 if cost is None else float(cost["mean"]) for cost in costs)
            rows.append([method, mean, of("worst_decile_accuracy"), duration(seconds), size(up), size(down)])
        rows.sort(key=lambda row: -row[1]["mean"])
        note = (
            f"Seeds {', '.join(map(str, seeds))}. Per cent, each client's final model on its own test split; bytes of a client. "
            f"Nothing set; gradient methods: {options['rounds']} rounds, parameters swept on validation data."
        )
        return table(place.title, ["method", "mean", "worst 10 %", "time", "up / client", "down / client"], rows, note)


def key(place: Place, method: str, seed: int) -> str:
    return f"{place.name}/{place.partition}/{method}/seed {seed}"


def measure(options: Options, place: Place, name: str, seed: int) -> Figures:
    federation = place.federation(options, seed)
    if METHODS[name] not in GRADIENT:
        return run_method(make_method(name), federation, options.device)
    return run_rival(name, federation, options, sweep(name, federation, options))


BENCH = Leaderboard()
