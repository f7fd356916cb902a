"""How much memory a run takes above its loaded data: each in a process of its own."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gramfold.bench import made_up
from gramfold.bench.apart import apart, peak_bytes, printed, resident_bytes
from gramfold.bench.frame import Bench, Cell, Found, Options, Table
from gramfold.bench.machine import commit
from gramfold.bench.measuring import cut
from gramfold.engines import run
from gramfold.methods import AFL, APFL, PACE, FedHiP, Method

METHODS: Mapping[str, Method] = {
    "afl": AFL(features="linear", penalty=1.0), "fedhip": FedHiP(features="linear", penalty=1.0),
    "apfl": APFL(features="linear", refinement="linear", penalty=1.0, refinement_penalty=100.0, lam=0.5),
    "pace linear": PACE(features="bias+linear"), "pace": PACE(),
}  # fmt: skip


class Memory(Bench):
    name: ClassVar[str] = "memory"
    paper: ClassVar[str] = ""
    summary: ClassVar[str] = "the most memory that a run takes above its loaded data"
    settings: ClassVar[Mapping[str, Any]] = {
        "clients": 100, "samples": 50_000, "inputs": 768, "classes": 100, "methods": list(METHODS),
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {
        "clients": 4, "samples": 400, "inputs": 16, "classes": 4, "methods": ["afl", "pace linear"],
    }  # fmt: skip
    files: ClassVar[Mapping[str, str]] = {"": "features and labels (.npz), cut into clients; made up where none is given"}

    def cells(self, options: Options) -> Sequence[Cell]:
        about = {"path": options.path(), **{key: options[key] for key in ("clients", "samples", "inputs", "classes")}}
        return [Cell(name, partial(apart, __name__, {**about, "method": name}, name)) for name in options["methods"]]

    def tables(self, found: Found, options: Options) -> Sequence[Table]:
        rows = [[key, *(figures[name] for name in COLUMNS)] for key, figures in found.items()]
        note = "The peak of a process that loads the data and runs the method, less what it held before the run."
        return [{"title": "Memory", "columns": ["", *COLUMNS.values()], "rows": rows, "note": note}]


COLUMNS = {
    "run_megabytes": "MB of the run", "peak_megabytes": "MB in all", "data_megabytes": "features, MB",
    "in_data": "run, in features",
}  # fmt: skip


def _figures(path: str | None, method: str, clients: int, samples: int, inputs: int, classes: int) -> dict[str, Any]:
    federation = made_up.embeddings(samples, inputs, classes, clients) if path is None else cut(path, clients, "dirichlet:0.1", 0)
    data = float(sum(np.asarray(client.train().inputs).nbytes for client in federation))
    before = resident_bytes()
    run(METHODS[method], federation, keep_heads=False, keep_total=False, progress=False)
    peak = peak_bytes()
    return {
        "run_megabytes": (peak - before) / 1e6, "peak_megabytes": peak / 1e6, "data_megabytes": data / 1e6,
        "in_data": (peak - before) / data, "clients": clients, "commit": commit(),
    }  # fmt: skip


def main(about: str) -> None:
    """Print the figures of one method."""
    printed(_figures, about)


BENCH = Memory()
