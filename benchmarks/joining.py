"""Is anybody the worse for joining? PACE with nothing set against each client alone, on every kind of cut and every table.

    python -m benchmarks joining [--data FOLDER] [--seeds 3]

The cuts of `every_data`, the tables of `site_tables`, `more_tables` and `natural`, each with the first seed's draw and split;
with `--seeds` further draws of all, with `--only` of some. `Local` is the ridge on a client's own samples, its penalty by leaving
one out. Figures are means over clients: accuracy in points, or root mean square errors. `worse`: by how much PACE is behind a
client alone, in points or in percent of its error; `error`: the standard error of that, over resampled test samples of every
client, the same for both. FOLDER holds the development data; without it the data sets of packages are used.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import gramfold as gf
from benchmarks import every_data, more_tables, natural, site_tables
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from gramfold.evaluation.bootstrap import DRAWS

METHODS, SEEDS, SURE = ("pace", "local"), 30, 2.0
ONE_SPLIT = "heart disease, by hospital"
"""The split of this one is another's."""
POINTS, PERCENT = 0.3, 1.0
"""By so much nobody may be worse: of accuracy, or of errors."""


class Cut(NamedTuple):
    """Rows, targets, whose each is, which train, and whether targets are values."""

    X: np.ndarray
    y: np.ndarray
    owner: np.ndarray
    train: np.ndarray
    regression: bool


def of_every_data(given: Given, name: str, cut: str, clients: int, seed: int) -> Cut:
    data = every_data.data_set(given, name)
    owner, rng = every_data.owners(data, cut, clients, seed), np.random.default_rng([seed, 7, clients, 1])
    train = np.ones(len(owner), bool)
    for k in range(owner.max() + 1):
        mine = rng.permutation(np.flatnonzero(owner == k))
        train[mine[: max(1, round(len(mine) / 4))]] = False
    kept = np.bincount(owner)[owner] >= every_data.LEAST
    return Cut(data.X[kept], data.codes[kept], owner[kept], train[kept], False)


def of_table(found: Any, seed: int) -> Cut:
    train = np.random.default_rng(1000 + seed).random(len(found.X)) < 0.75
    return Cut(found.X, found.y, found.site, train, found.regression)


def of_natural(given: Given, name: str, seed: int) -> Cut:
    found = natural.natural(given, name, seed)
    train = found.train if found.train is not None else natural.split(found.owner, seed)
    return Cut(found.X, found.y.astype(int) if found.classes else found.y, found.owner, train, not found.classes)


READ: dict[str, Callable[..., Cut]] = {
    "every_data": of_every_data,
    "site_tables": lambda given, name, seed: of_table(site_tables.table(given, name, seed), seed),
    "more_tables": lambda given, name, seed: of_table(more_tables.table(given, name, seed), seed),
    "natural": of_natural,
}  # fmt: skip


def cells(given: Given) -> Iterator[Cell]:
    """Seed after seed, and what takes longest last."""
    tables = [("more_tables", name, 5) for name in more_tables.TABLES]
    tables += [("natural", name, 15) for name in natural.readers(given.data)]
    tables += [("site_tables", name, 20) for name in site_tables.TABLES]
    dealt = sorted({(cell.seconds, cell.key[:3]) for cell in every_data.cells(replace(given, seeds=1))})
    for seed in seeds(given, SEEDS):
        yield from (Cell((of, name, seed), METHODS, seconds) for of, name, seconds in tables if not seed or name != ONE_SPLIT)
        yield from (Cell(("every_data", *key, seed), METHODS, seconds) for seconds, key in dealt)


def measure(given: Given, of: str, *key: Any) -> list[Row]:
    warnings.simplefilter("ignore")
    cut = READ[of](given, *key)
    parts = {}
    for k in np.unique(cut.owner):
        mine, train = cut.owner == k, cut.train
        if (mine & train).any() and (mine & ~train).any():
            parts[str(k)] = cut.X[mine & train], cut.y[mine & train], cut.X[mine & ~train], cut.y[mine & ~train]
    kind: dict[str, Any] = {"regression": True} if cut.regression else {"labels": np.unique(cut.y).tolist()}
    federation = gf.Federation.from_clients(parts, random_state=key[-1], **kind)
    sizes = {"rows": len(cut.X), "columns": cut.X.shape[1], "clients": len(parts)}
    where = {"of": of, "data": key[0], "cut": "/".join(map(str, key[1:-1])), "seed": key[-1]}
    return [{**where, **sizes, **compared(federation, cut.regression)}]


def compared(federation: gf.Federation, regression: bool) -> Row:
    """Both methods' figures, and by how much PACE is the worse."""
    found, drawn, seconds, results = {}, {}, {}, {}
    measured = "rmse" if regression else "accuracy"
    for method in (gf.PACE(), gf.Local()):
        begun = time.process_time()
        result = results[method.name] = gf.run(method, federation)
        seconds[method.name] = time.process_time() - begun
        clients = [client.scored for client in result.clients.values()]
        found[method.name] = float(np.mean([getattr(one, measured) for one in clients]))
        drawn[method.name] = np.mean(
            [one.draws.get(measured, getattr(one, measured)) + np.zeros(DRAWS) for one in clients], axis=0
        )
    behind = worse(found, regression)
    error = float(np.std([worse(dict(zip(drawn, pair, strict=True)), regression) for pair in zip(*drawn.values(), strict=True)]))
    gains, chosen = list(results["pace"].gained_by_joining.values()), results["pace"].chosen
    said = {name: name in chosen for name in ("groups", "personal_columns", "variances")}
    return {
        "regression": regression, **found, "worse": behind, "error": error, "seconds": seconds, "found": said,
        "least_gained": float(min(gains)) if gains else None,
    }  # fmt: skip


def worse(figures: Mapping[str, float], regression: bool) -> float:
    """By how much PACE is behind a client alone: in percent of its error, or in points."""
    if regression:
        return float(100 * (figures["pace"] / figures["local"] - 1))
    return float(100 * (figures["local"] - figures["pace"]))


class Judged(NamedTuple):
    """A cell over its seeds: by how much PACE is behind, the standard error of that, and what may be."""

    cell: str
    seeds: int
    worse: float
    error: float
    limit: float

    @property
    def beyond(self) -> bool:
        return self.worse > self.limit

    @property
    def surely(self) -> bool:
        """Beyond what the test samples' chance explains, one time of forty."""
        return self.worse - SURE * self.error > self.limit


def judged(rows: list[Row]) -> list[Judged]:
    cells: dict[str, list[Row]] = {}
    for row in rows:
        cells.setdefault(f"{row['of']}: {row['data']} {row['cut']}".strip(), []).append(row)
    return [
        Judged(
            name, len(mine), float(np.mean([row["worse"] for row in mine])),
            float(np.sqrt(np.sum([row["error"] ** 2 for row in mine])) / len(mine)), PERCENT if mine[0]["regression"] else POINTS,
        )
        for name, mine in cells.items()
    ]  # fmt: skip


BENCH = Bench("joining", cells, measure)
