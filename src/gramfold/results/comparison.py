"""Methods beside each other over several seeds, with the uncertainty of their means: what goes into a paper's table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramfold import evaluation, wire
from gramfold.errors import ResultError
from gramfold.evaluation import Difference, Estimate, bootstrap
from gramfold.evaluation.intervals import percentiles
from gramfold.imports import frame
from gramfold.measures import MEASURES, leading_of, main_measure
from gramfold.report import papers, plots
from gramfold.report.charts import intervals
from gramfold.report.summary import standing_alone

if TYPE_CHECKING:
    from pandas import DataFrame

Entry = Mapping[str, Any]
PAIRINGS = ("seed", "client")


class Chart(str):
    """The text of an SVG. Notebooks show it as a figure."""

    def _repr_svg_(self) -> str:
        return str(self)


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
            raise ResultError(f"no method is called {self.baseline!r}; compared are: {', '.join(self.results)}")

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
        key = f"mean_{self._named(measure)}"
        return [entry.get(key) for entry in self._of(method)]

    def mean(self, method: str, measure: str | None = None) -> Estimate:
        """Over seeds, with its standard error and 95 % confidence interval; of a single seed the interval over test samples."""
        name = self._named(measure)
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
            raise ResultError(f"differences are paired by {' or '.join(PAIRINGS)}, not {by!r}")
        values_of, name, other = (
            self._by_seed if by == "seed" else self._by_client,
            self._named(measure),
            baseline or self.baseline,
        )
        mine, others = values_of(method, name), values_of(other, name)
        both = [key for key in mine if key in others]
        found = Difference.between([mine[key] for key in both], [others[key] for key in both])
        return self._over_samples(found, method, other, name) if by == "seed" and found.n == 1 else found

    def _named(self, measure: str | None) -> str:
        """The measure, or the one that leads; raises where no method has a figure of it."""
        if measure is None or any(f"mean_{measure}" in entry for entry in self._entries):
            return measure or self.figure
        known = [key for key in MEASURES if any(entry.get(f"mean_{key}") is not None for entry in self._entries)]
        raise ResultError(f"no method has a figure of {measure!r}; there are {', '.join(known)}")

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
            raise ResultError(f"no method is called {method!r}; compared are: {', '.join(self.results)}")
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
        return frame(papers.flat_rows(self.to_dict()))

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

    def plot(self, path: str | PathLike[str] | None = None) -> Chart:
        """An SVG, which a notebook shows: every seed a dot, the mean a tick and its confidence interval a line, a row per method.
        A path that ends in .svg gets that; one in .pdf or .png gets the same drawn for print (the extra `plots`)."""
        methods, kind = self.to_dict()["methods"], "" if path is None else Path(path).suffix.lower().removeprefix(".")
        drawn = Chart(standing_alone(intervals(methods, self.figure)))
        if path is not None and kind != "svg":
            wire.write_atomically(Path(path), plots.intervals(methods, self.figure, kind), public=True)
            return drawn
        _written(drawn, path)
        return drawn

    def __repr__(self) -> str:
        seeds = ", ".join(map(str, self.seeds))
        return f"Comparison of {len(self.results)} methods, seeds {seeds}\n{papers.text(self.to_dict())}"

    def _repr_html_(self) -> str:
        return papers.html(self.to_dict())


def _at(within: Callable[[float], float], value: float | None) -> float | None:
    return None if value is None else within(value)


def _without(entries: Sequence[Entry], measure: str) -> int:
    """How many clients with test samples have no such figure: an AUC needs samples of both classes."""
    return max(
        (sum(client["test"] > 0 and client.get(measure) is None for client in one["clients"]) for one in entries), default=0
    )


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _written(text: str, path: str | PathLike[str] | None) -> str:
    if path is not None:
        wire.write_atomically(Path(path), text.encode(), public=True)
    return text
