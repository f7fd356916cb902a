"""Several runs side by side: a row for each run and method."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramfold.errors import OptionError
from gramfold.measures import Measure, main_measure
from gramfold.report.columns import Column, columns

Named = tuple[str, Mapping[str, Any]]
"""A run's name, and the content of its result.json."""


def averaged(pages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The methods of a run over several seeds as if they were one run's: means of their figures, all clients together, each
    named after its seed too."""
    seeds = [page["seed"] for page in pages]
    return [_average(seeds, [page["methods"][i] for page in pages]) for i in range(len(pages[0]["methods"]))]


def _average(seeds: Sequence[int], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = entries[0]
    figures = {
        key: _mean([entry[key] for entry in entries])
        for key in first
        if all(isinstance(entry[key], float | None) for entry in entries)
    }
    seconds = {phase: _mean([entry["seconds"].get(phase, 0.0) for entry in entries]) for phase in first["seconds"]}
    clients = [
        {**client, "name": f"{client['name']}, seed {seed}"}
        for seed, entry in zip(seeds, entries, strict=True)
        for client in entry["clients"]
    ]
    sums = {key: _summed([entry[key] for entry in entries if entry.get(key)]) for key in ("reliability", "positive")}
    total = {key: sum(entry[key] for entry in entries) for key in ("uplink_bytes", "downlink_bytes")}  # of all these clients
    single: dict[str, Any] = {"intervals": {}, "bootstrap": {}, "history": []}  # those are of one seed each
    return {**first, **figures, **total, **sums, **single, "seconds": seconds, "clients": clients}


def _summed(bins: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Bins of several runs together; what is said of them beside is that of the first."""
    if not bins:
        return None
    added = {key: np.sum([part[key] for part in bins], axis=0).tolist() for key in bins[0] if isinstance(bins[0][key], list)}
    return {**bins[0], **added}


def side_by_side(runs: Sequence[Named]) -> tuple[list[dict[str, Any]], Mapping[str, Any] | None] | None:
    """All runs' methods, each named after its run too, where the runs have the same clients; and the clients' label counts."""
    if any("comparison" in content for _, content in runs):
        return None
    methods = [{**method, "name": f"{name}: {method['name']}"} for name, content in runs for method in content["methods"]]
    who = [[(client["name"], client["train"], client["test"]) for client in method["clients"]] for method in methods]
    if not methods or any(clients != who[0] for clients in who):
        return None
    return methods, next((content["labels"] for _, content in runs if content.get("labels")), None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _rows(runs: Sequence[Named]) -> list[dict[str, Any]]:
    """Methods, each with its run's name and what was run on, and the standard error where there are several seeds."""
    rows = []
    for name, content in runs:
        several = "comparison" in content
        methods = averaged(content["seeds"]) if several else content["methods"]
        errors = [row["standard_error"] for row in content["comparison"]["methods"]] if several else [None] * len(methods)
        seeds = content["comparison"]["seeds"] if several else [content["seed"]]
        about = {
            "run": name, "data": str(content["data"]["name"]), "seeds": ", ".join(map(str, seeds)),
            "cut": f"{content['partition']['clients']} clients, {content['partition']['kind']}",
        }  # fmt: skip
        rows += [{**method, **about, "standard_error": error} for method, error in zip(methods, errors, strict=True)]
    kinds = {"mean_accuracy" in row for row in rows}
    if len(kinds) > 1:
        named = [next(row["run"] for row in rows if ("mean_accuracy" in row) == kind) for kind in (True, False)]
        raise OptionError(f"{named[0]} has accuracies and {named[1]} errors of a regression; they cannot stand side by side")
    return rows


def _with_error(column: Column, measure: Measure) -> Column:
    def cell(row: Mapping[str, Any]) -> str:
        error = row["standard_error"]
        written = "" if error is None else measure.shown(error, 2 if measure.percent else None)
        return column.cell(row) + (written and f" \N{PLUS-MINUS SIGN} {written}")

    return Column(column.title, column.meaning, cell)


def runs_columns(runs: Sequence[Named]) -> list[Column]:
    rows = _rows(runs)
    figure, *others = columns(rows)
    about = [Column(key, "", lambda row, key=key: row[key]) for key in ("run", "data", "cut", "seeds")]  # type: ignore[misc]
    named = Column("method", "", lambda row: row["name"])
    return [*about, named, _with_error(figure, main_measure(rows)), *others]


def run_cells(runs: Sequence[Named]) -> list[list[str]]:
    return [[column.cell(row) for column in runs_columns(runs)] for row in _rows(runs)]
