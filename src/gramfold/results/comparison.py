"""Methods beside each other over several seeds, with the uncertainty of their means: what goes into a paper's table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramfold import evaluation, report, wire
from gramfold.errors import GramfoldError
from gramfold.evaluation import Difference, Estimate
from gramfold.report import papers
from gramfold.report.charts import intervals
from gramfold.report.summary import standing_alone

if TYPE_CHECKING:
    from pandas import DataFrame

Entry = Mapping[str, Any]
PAIRINGS = ("seed", "client")


@dataclass(frozen=True)
class Comparison:
    """Methods over the same seeds. `results` has each method's figures, seed by seed, as they stand in result.json.

    Intervals and p-values go over seeds. Seeds cut the same data anew, so they speak of cuts and random draws, not of other data
    sets; p-values are not corrected for how many methods are compared.
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
        """What is compared: "accuracy", or "rmse" for regression."""
        return "accuracy" if "mean_accuracy" in self.results[self.baseline][0] else "rmse"

    def values(self, method: str) -> list[float | None]:
        """Seed by seed, the mean over clients."""
        return [entry[f"mean_{self.figure}"] for entry in self._of(method)]

    def mean(self, method: str) -> Estimate:
        """Over seeds, with its standard error and 95 % confidence interval."""
        return Estimate.of(_known(self.values(method)))

    def difference(self, method: str, baseline: str | None = None, by: str = "seed") -> Difference:
        """Of a method to the baseline, pair by pair: `by` seed, or by client.

        Clients of one cut share its model and its data, and clients of several cuts share samples: they are not independent. By
        client, interval and p-value therefore describe these clients, and are too narrow for a claim about others.
        """
        if by not in PAIRINGS:
            raise GramfoldError(f"differences are paired by {' or '.join(PAIRINGS)}, not {by!r}")
        values_of = self._by_seed if by == "seed" else self._by_client
        mine, others = values_of(method), values_of(baseline or self.baseline)
        both = [key for key in mine if key in others]
        return Difference.between([mine[key] for key in both], [others[key] for key in both])

    def _of(self, method: str) -> Sequence[Entry]:
        if method not in self.results:
            raise GramfoldError(f"no method is called {method!r}; compared are: {', '.join(self.results)}")
        return self.results[method]

    def _by_seed(self, method: str) -> dict[Any, float]:
        return {key: value for key, value in enumerate(self.values(method)) if value is not None}

    def _by_client(self, method: str) -> dict[Any, float]:
        return {
            (i, client["name"]): client[self.figure]
            for i, entry in enumerate(self._of(method))
            for client in entry["clients"]
            if client[self.figure] is not None
        }

    # --- as values ---

    def to_dict(self) -> dict[str, Any]:
        """As in result.json, under "comparison"."""
        return {
            "figure": self.figure, "seeds": list(self.seeds), "baseline": self.baseline, "confidence": evaluation.CONFIDENCE,
            "methods": [self._row(method) for method in self.results],
        }  # fmt: skip

    def _row(self, method: str) -> dict[str, Any]:
        entries, other = self.results[method], method != self.baseline

        def average(values: Sequence[float | None]) -> float | None:
            return evaluation.mean(_known(values))

        def per_client(key: str) -> float | None:
            return average([entry[key] / max(len(entry["clients"]), 1) for entry in entries])

        return {
            "method": method, "values": self.values(method), **self.mean(method).to_dict(),
            "worst_decile": average([entry[f"worst_decile_{self.figure}"] for entry in entries]),
            "shared": average([entry[f"global_{self.figure}"] for entry in entries]),
            "difference": self.difference(method).to_dict() if other else None,
            "by_client": self.difference(method, by="client").to_dict() if other else None,
            "uplink_bytes": per_client("uplink_bytes"), "downlink_bytes": per_client("downlink_bytes"),
            "seconds": average([sum(entry["seconds"].values()) for entry in entries]),
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

    def to_latex(self, path: str | PathLike[str] | None = None) -> str:
        r"""A tabular for the package booktabs."""
        return _written(papers.latex(self.to_dict()), path)

    def plot(self, path: str | PathLike[str] | None = None) -> str:
        """An SVG: every seed a dot, the mean a tick and its confidence interval a line, a row per method."""
        return _written(standing_alone(intervals(self.to_dict()["methods"], self.figure)), path)

    def __repr__(self) -> str:
        seeds = ", ".join(map(str, self.seeds))
        return f"Comparison of {len(self.results)} methods, seeds {seeds}\n{papers.text(self.to_dict())}"

    def _repr_html_(self) -> str:
        return papers.html(self.to_dict())


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _written(text: str, path: str | PathLike[str] | None) -> str:
    if path is not None:
        wire.write_atomically(Path(path), text.encode(), public=True)
    return text
