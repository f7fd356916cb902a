"""Methods against each other over several seeds, with the uncertainty of their means: what goes into a paper's table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramfold import evaluation, report, wire
from gramfold.engines import Progress, open_engine
from gramfold.errors import GramfoldError
from gramfold.evaluation import Difference, Estimate, bootstrap
from gramfold.evaluation.intervals import percentiles
from gramfold.federation import Federation
from gramfold.measures import MEASURES, leading_of, main_measure
from gramfold.methods import Method, make_method
from gramfold.report import papers
from gramfold.report.charts import intervals
from gramfold.report.summary import standing_alone

if TYPE_CHECKING:
    from pandas import DataFrame

Methods = Sequence[Method | str] | Mapping[str, Method | str]
Entry = Mapping[str, Any]
SEEDS = 3
PAIRINGS = ("seed", "client")


@dataclass(frozen=True)
class Comparison:
    """Methods over the same seeds. `results` has each method's figures, seed by seed, as they stand in result.json.

    Intervals and p-values go over seeds. Seeds cut the same data anew, so they speak of cuts and random draws, not of other data
    sets; p-values are not corrected for how many methods are compared. Of a single run, intervals speak of its test samples:
    those of a method follow from its clients' own, those of a difference from resampled test splits, the same for both methods.
    """

    seeds: Sequence[int]
    results: Mapping[str, Sequence[Entry]]
    baseline: str

    def __post_init__(self) -> None:
        if self.baseline not in self.results:
            raise GramfoldError(f"no method is called {self.baseline!r}; compared are: {', '.join(self.results)}")

    @classmethod
    def of_pages(cls, pages: Sequence[Mapping[str, Any]], baseline: str | None = None) -> "Comparison":
        """Of the contents of result.json files, one for each seed, with the same methods in each."""
        names = [method["name"] for method in pages[0]["methods"]]
        results = {name: [page["methods"][i] for page in pages] for i, name in enumerate(names)}
        return cls([page["seed"] for page in pages], results, baseline or names[0])

    @property
    def figure(self) -> str:
        """What is compared: the measure that leads (`measures`)."""
        return main_measure(self._entries).key

    @property
    def measures(self) -> list[str]:
        """The measures that fit the task, the first of them first: accuracy, or where two classes are of unequal share "auc" and
        "log_loss"; "rmse" and "r2" for regression."""
        return [self.figure, *(key for key in leading_of(self._entries) if key != self.figure)]

    @property
    def _entries(self) -> list[Entry]:
        return [entry for entries in self.results.values() for entry in entries]

    def values(self, method: str, measure: str | None = None) -> list[float | None]:
        """Seed by seed, the mean over clients."""
        return [entry.get(f"mean_{measure or self.figure}") for entry in self._of(method)]

    def mean(self, method: str, measure: str | None = None) -> Estimate:
        """Over seeds, with its standard error and 95 % confidence interval; of a single seed the interval over test samples."""
        name = measure or self.figure
        found = Estimate.of(_known(self.values(method, name)))
        if found.n == 1:
            low, high = self._of(method)[0].get("intervals", {}).get(f"mean_{name}", (None, None))
            return replace(found, ci_low=low, ci_high=high)
        within = MEASURES[name].within if name in MEASURES else float
        return replace(found, ci_low=_at(within, found.ci_low), ci_high=_at(within, found.ci_high))

    def difference(self, method: str, baseline: str | None = None, by: str = "seed", measure: str | None = None) -> Difference:
        """Of a method to the baseline, pair by pair: `by` seed, or by client. Of a single seed it has an interval over test
        samples.

        Clients of one cut share its model and its data, and clients of several cuts share samples: they are not independent. By
        client, interval and p-value therefore describe these clients, and are too narrow for a claim about others.
        """
        if by not in PAIRINGS:
            raise GramfoldError(f"differences are paired by {' or '.join(PAIRINGS)}, not {by!r}")
        values_of, name, other = (
            self._by_seed if by == "seed" else self._by_client,
            measure or self.figure,
            baseline or self.baseline,
        )
        mine, others = values_of(method, name), values_of(other, name)
        both = [key for key in mine if key in others]
        found = Difference.between([mine[key] for key in both], [others[key] for key in both])
        return self._over_samples(found, method, other, name) if by == "seed" and found.n == 1 else found

    def _over_samples(self, found: Difference, method: str, other: str, measure: str) -> Difference:
        """With what resampled test splits say, draw by draw."""
        ours, others = (self._of(name)[0].get("bootstrap", {}) for name in (method, other))
        apart = bootstrap.differences(ours, others, f"mean_{measure}")
        if apart is None:
            return found
        low, high = percentiles(apart)
        return replace(found, standard_error=float(apart.std(ddof=1)), ci_low=low, ci_high=high)

    def _of(self, method: str) -> Sequence[Entry]:
        if method not in self.results:
            raise GramfoldError(f"no method is called {method!r}; compared are: {', '.join(self.results)}")
        return self.results[method]

    def _by_seed(self, method: str, measure: str) -> dict[Any, float]:
        return {key: value for key, value in enumerate(self.values(method, measure)) if value is not None}

    def _by_client(self, method: str, measure: str) -> dict[Any, float]:
        return {
            (i, client["name"]): client[measure]
            for i, entry in enumerate(self._of(method))
            for client in entry["clients"]
            if client.get(measure) is not None
        }

    # --- as values ---

    def to_dict(self) -> dict[str, Any]:
        """As in result.json, under "comparison"."""
        return {
            "figure": self.figure, "measures": self.measures, "over": "samples" if len(self.seeds) == 1 else "seeds",
            "seeds": list(self.seeds), "baseline": self.baseline, "confidence": evaluation.CONFIDENCE,
            "without": _without(self._of(self.baseline), self.figure), "methods": [self._row(method) for method in self.results],
        }  # fmt: skip

    def _row(self, method: str) -> dict[str, Any]:
        entries, other = self.results[method], method != self.baseline

        def average(values: Sequence[float | None]) -> float | None:
            return evaluation.mean(_known(values))

        def per_client(key: str) -> float | None:
            return average([entry[key] / max(len(entry["clients"]), 1) for entry in entries])

        return {
            "method": method, "values": self.values(method), **self.mean(method).to_dict(),
            "worst_decile": average([entry.get(f"worst_decile_{self.figure}") for entry in entries]),
            "shared": average([entry.get(f"global_{self.figure}") for entry in entries]),
            "difference": self.difference(method).to_dict() if other else None,
            "by_client": self.difference(method, by="client").to_dict() if other else None,
            "uplink_bytes": per_client("uplink_bytes"), "downlink_bytes": per_client("downlink_bytes"),
            "seconds": average([sum(entry["seconds"].values()) for entry in entries]),
            "measures": {
                key: {**self.mean(method, key).to_dict(),
                      "difference": self.difference(method, measure=key).to_dict() if other else None}
                for key in self.measures
            },
        }  # fmt: skip

    def to_frame(self) -> "DataFrame":
        """A pandas DataFrame, one row per method."""
        return report.frame(papers.flat_rows(self.to_dict()))

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """The same as text, also written to a file where one is named."""
        return _written(papers.as_csv(self.to_dict()), path)

    # --- to look at ---

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        return _written(papers.markdown(self.to_dict()), path)

    def to_latex(
        self, path: str | PathLike[str] | None = None, *, columns: Sequence[str] | None = None, bold: bool = False
    ) -> str:
        r"""A tabular for the package booktabs. `columns`: which, by the titles that `print` shows; None: all. `bold`: the best of
        each
        measure stands out."""
        return _written(papers.latex(self.to_dict(), columns, bold), path)

    def plot(self, path: str | PathLike[str] | None = None) -> str:
        """An SVG: every seed a dot, the mean a tick and its confidence interval a line, a row per method."""
        return _written(standing_alone(intervals(self.to_dict()["methods"], self.figure)), path)

    def __repr__(self) -> str:
        seeds = ", ".join(map(str, self.seeds))
        return f"Comparison of {len(self.results)} methods, seeds {seeds}\n{papers.text(self.to_dict())}"

    def _repr_html_(self) -> str:
        return papers.html(self.to_dict())


def compare(
    methods: Methods,
    data: Federation | Sequence[Federation] | Callable[[int], Federation] | tuple[Any, Any],
    seeds: int | Sequence[int] | None = None,
    *,
    baseline: str | None = None,
    engine: str = "inprocess",
    device: str = "cpu",
    progress: Progress | None = None,
    **split: Any,
) -> Comparison:
    """Run methods over the same seeds and compare them.

    `methods` are methods or their names, or a mapping from labels to these. `data` is a function from a seed to a Federation;
    (X, y), which `Federation.split` cuts anew for each seed, with the keyword arguments that are left; a Federation that was cut
    from one data set, and is cut anew; or a list of federations, one for each seed. `seeds` says which, or how many
    (from 0, or from the federation's own, on); 3 if not said. A federation whose clients were given has no cut to draw again: it
    is one run, without intervals over seeds.
    `baseline` is the label that differences are to, the first if not said. Heads are not kept.
    """
    labelled = _labelled(methods)
    which, federations = _federations(data, seeds, split)
    comparison = Comparison(which, {label: [] for label in labelled}, baseline or next(iter(labelled)))
    results: dict[str, list[Entry]] = {label: [] for label in labelled}
    for federation in federations:
        made = federation()
        with open_engine(engine, made, device=device, keep_total=False if engine == "inprocess" else None) as run_method:
            for label, method in labelled.items():
                entry = run_method(method, progress=progress, keep_heads=False).to_dict()
                results[label].append({**entry, "name": label})
    return Comparison(comparison.seeds, results, comparison.baseline)


def _labelled(methods: Methods) -> dict[str, Method]:
    if isinstance(methods, str | Method):
        methods = [methods]
    given = list(methods.items()) if isinstance(methods, Mapping) else [(None, method) for method in methods]
    labelled: dict[str, Method] = {}
    for label, method in given:
        made = make_method(method) if isinstance(method, str) else method
        if (label or made.name) in labelled:
            raise GramfoldError(f"two methods are called {made.name}; give them labels: {{'{made.name}-a': ..., ...}}")
        labelled[label or made.name] = made
    if not labelled:
        raise GramfoldError("no method to compare")
    return labelled


def _federations(
    data: Any, seeds: int | Sequence[int] | None, split: Mapping[str, Any]
) -> tuple[list[int], list[Callable[[], Federation]]]:
    """The seeds, and a way to each one's federation: one of them is in memory at a time."""
    is_arrays = isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], Federation)
    if split and not is_arrays:
        raise GramfoldError(f"{next(iter(split))} is for data given as (X, y); here the federation is made already")
    if "seed" in split:
        raise GramfoldError("say seeds=[...] for the seeds; each one cuts the data anew")
    first = 0
    if isinstance(data, Federation):
        if data.cut is None and seeds is not None and seeds not in (1, [data.task.seed]):
            raise GramfoldError(
                "this federation's clients were given: there is no cut to draw again; give a function of the seed"
            )
        if data.cut is None:
            return [data.task.seed], [lambda: data]
        make, first = data.cut, data.task.seed
    elif is_arrays:
        X, y = data
        make = lambda seed: Federation.split(X, y, seed=seed, **split)  # noqa: E731
    elif callable(data):
        make = data
    else:
        made = list(data)
        if not made or not all(isinstance(federation, Federation) for federation in made):
            raise GramfoldError("data must be a Federation, a list of them, a function from a seed to one, or (X, y)")
        if seeds not in (None, len(made)):
            raise GramfoldError(f"{len(made)} federations are {len(made)} seeds; leave `seeds` out")
        return [federation.task.seed for federation in made], [partial(_itself, federation) for federation in made]
    if seeds is None or isinstance(seeds, int):
        seeds = range(first, first + (SEEDS if seeds is None else seeds))
    which = [int(seed) for seed in seeds]
    if not which or len(set(which)) < len(which):
        raise GramfoldError("compare needs at least one seed, and each of them once")
    return which, [partial(make, seed) for seed in which]


def _at(within: Callable[[float], float], value: float | None) -> float | None:
    return None if value is None else within(value)


def _without(entries: Sequence[Entry], measure: str) -> int:
    """How many clients with test samples have no such figure: an AUC needs samples of both classes."""
    return max(
        (sum(client["test"] > 0 and client.get(measure) is None for client in one["clients"]) for one in entries), default=0
    )


def _itself(federation: Federation) -> Federation:
    return federation


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _written(text: str, path: str | PathLike[str] | None) -> str:
    if path is not None:
        wire.write_atomically(Path(path), text.encode(), public=True)
    return text
