"""How long methods take beside what everybody knows, a pooled fit by scikit-learn, and beside the machine's own limit.

A ratio is taken within one cell: both sides in turn, the best turn of each. Beside its seconds stands the share of them that the
machine would need at its rate of products for the operations that were counted (`numerics/work.py`; features and products by `@`
are not among them), and what was counted: of that a busy machine changes nothing.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeClassifier

from gramfold.bench import made_up
from gramfold.bench.frame import Bench, Cell, Figures, Found, Options, Table
from gramfold.bench.machine import described, once, share
from gramfold.bench.measuring import cut
from gramfold.engines import Result, run
from gramfold.errors import GramfoldError
from gramfold.federation import Federation
from gramfold.methods import APFL, PACE, Method
from gramfold.numerics import work

APFL_GIVEN = APFL(features="linear", refinement="linear", penalty=1.0, refinement_penalty=100.0, lam=0.5)
LARGE: Mapping[str, Method] = {"apfl": APFL_GIVEN, "pace linear": PACE(features="bias+linear"), "pace": PACE()}
MACHINE = "machine"


class Speed(Bench):
    name: ClassVar[str] = "speed"
    paper: ClassVar[str] = ""
    summary: ClassVar[str] = "seconds beside a pooled fit by scikit-learn and the machine's own limit, with the work counted"
    settings: ClassVar[Mapping[str, Any]] = {
        "clients": 100, "samples": 50_000, "inputs": 768, "classes": 100, "small": 600, "turns": 3,
    }  # fmt: skip
    quick: ClassVar[Mapping[str, Any]] = {"clients": 6, "samples": 600, "inputs": 16, "classes": 5, "small": 8, "turns": 1}
    files: ClassVar[Mapping[str, str]] = {
        "": "features and labels (.npz), cut into clients; made up where none is given",
        "schools": "a table of values (.npz with features, targets and client), beside boosted trees",
    }

    def cells(self, options: Options) -> Sequence[Cell]:
        needs = (MACHINE,)
        cells = [Cell(MACHINE, partial(described, options.device, options.quick))]
        cells += [Cell(name, partial(_large, options, method), needs) for name, method in LARGE.items()]
        cells.append(Cell("small clients", partial(_small, options), needs))
        if options.path("schools"):
            cells.append(Cell("schools", partial(_schools, options), needs))
        return cells

    def tables(self, found: Found, options: Options) -> Sequence[Table]:
        rows = [[key, *(found[key].get(name) for name in COLUMNS)] for key in found if key != MACHINE]
        note = (
            "Pooled fits are scikit-learn's in float64: RidgeClassifier by Cholesky, and of values boosted trees with early "
            "stopping. The fold is that of all training rows at the machine's rate of products."
        )
        return [{"title": "Speed", "columns": ["", *COLUMNS.values()], "rows": rows, "note": note}]


COLUMNS = {
    "seconds": "seconds", "clients_per_second": "clients a second", "rival_seconds": "pooled fit, seconds", "ratio": "ratio",
    "fold_ratio": "in folds at the limit", "limit_share": "share of the limit", "cpu_seconds": "processor's seconds",
    "load": "load",
}  # fmt: skip


def timed(
    method: Method, federation: Federation, limit: Figures, device: str, rival: Callable[[], Any] | None, turns: int
) -> Figures:
    """A method's figures, beside a rival's seconds where there is one."""
    taken, beside, spent = [], [], []
    with work.counted() as counts:
        result = _run(method, federation, device)  # its time does not count: imports, and memory that is new
    for _ in range(turns):
        if rival is not None:
            beside.append(once(rival))
        busy = time.process_time()
        taken.append(once(lambda: _run(method, federation, device), device))
        spent.append(time.process_time() - busy)
    seconds, operations = min(taken), float(counts["operations"])
    compared = {} if rival is None else {"rival_seconds": min(beside), "ratio": seconds / min(beside)}
    return {
        "seconds": seconds, "cpu_seconds": min(spent), "clients": len(federation),
        "clients_per_second": len(federation) / seconds, **compared,
        "fold_ratio": seconds * float(limit["product_per_second"]) / _fold(result),
        "limit_share": share(limit, seconds, operations), "load": os.getloadavg()[0], "work": dict(counts),
        "phases": dict(result.seconds),
    }  # fmt: skip


def _run(method: Method, federation: Federation, device: str) -> Result:
    return run(method, federation, device=device, keep_heads=False, keep_total=False, progress=False)


def _fold(result: Result) -> float:
    """The operations of multiplying out all training rows once, of the symmetric matrix one half."""
    shared = result.global_head
    assert shared is not None
    width = max(stream.map.dim for stream in shared.streams)
    return float(sum(client.train for client in result.clients.values())) * width**2


@lru_cache(maxsize=1)
def large(path: str | None, clients: int, samples: int, inputs: int, classes: int) -> Federation:
    """The clients of a file, or made-up ones."""
    return made_up.embeddings(samples, inputs, classes, clients) if path is None else cut(path, clients, "dirichlet:0.1", 0)


def clients_of(options: Options) -> Federation:
    return large(options.path(), *(options[key] for key in ("clients", "samples", "inputs", "classes")))


def _large(options: Options, method: Method, limit: Figures) -> Figures:
    federation, rival = clients_of(options), None
    if options.device == "cpu":
        X, y = _pooled(federation)
        rival = partial(RidgeClassifier(solver="cholesky").fit, X, y)
    return timed(method, federation, limit, options.device, rival, options["turns"])


def _small(options: Options, limit: Figures) -> Figures:
    return timed(PACE(), made_up.small_clients(options["small"], 100, 20), limit, options.device, None, options["turns"])


def _schools(options: Options, limit: Figures) -> Figures:
    path = options.path("schools")
    assert path is not None
    with np.load(path) as data:
        if missing := {"features", "targets", "client"} - set(data):
            raise GramfoldError(f"{path} has no array {sorted(missing)[0]!r}; it needs features, targets and client")
        X, y, who = data["features"].astype(float), data["targets"].astype(float), data["client"]
    test = np.random.default_rng(0).random(len(y)) < 0.3
    given = {str(name): _split(X, y, test, who == name) for name in np.unique(who)}
    federation = Federation.from_clients(given, regression=True)
    rival = None
    if options.device == "cpu":
        rows, targets = _pooled(federation)
        rival = partial(HistGradientBoostingRegressor(early_stopping=True, random_state=0).fit, rows, targets.ravel())
    return timed(PACE(), federation, limit, options.device, rival, options["turns"])


def _split(X: np.ndarray, y: np.ndarray, test: np.ndarray, mine: np.ndarray) -> tuple[np.ndarray, ...]:
    kept, left = mine & ~test, mine & test
    return X[kept], y[kept], X[left], y[left]


def _pooled(federation: Federation) -> tuple[np.ndarray, np.ndarray]:
    trains = [client.train() for client in federation]
    return np.concatenate([train.inputs for train in trains]).astype(float), np.concatenate([train.targets for train in trains])


BENCH = Speed()
