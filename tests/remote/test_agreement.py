"""Which sites' descriptions fit together; of tables also, which statistics no site's encoder should be made of."""

import numpy as np
import pytest

from gramfold.remote.agreement import odd_ones_out
from gramfold.remote.table_agreement import MOST_TEXT
from gramfold.sources import TableStatistics

ROWS = 40


ONES = np.ones(ROWS)


def site(**columns: object) -> dict:
    """What a site says of a table of ages and wards, some columns changed or added."""
    rng = np.random.default_rng(len(columns))
    usual = {"age": rng.normal(50, 10, ROWS), "ward": np.array(["icu", "er", "day", "er"] * (ROWS // 4), dtype=object)}
    table = TableStatistics.of({**usual, **columns}).to_dict()
    return {"inputs": 2, "shape": [], "labels": ["no", "yes"], "outputs": 2, "declared": False, "samples": ROWS, "table": table}


def changed(column: str, **fields: object) -> dict:
    made = site()
    next(statistics for name, statistics in made["table"]["columns"] if name == column).update(fields)
    return made


def of_words(count: int, word: str = "w") -> dict:
    return changed("ward", words=sorted(f"{word}{i}" for i in range(count)), present=2 * count, missing=0) | {
        "samples": 2 * count
    }


def shorter(made: dict, rows: int) -> dict:
    for _, statistics in made["table"]["columns"]:
        statistics["missing"] = rows - statistics["present"]
    return made


ODD = {
    "other columns": (site(weight=ONES, height=ONES, shoes=ONES), "3 of its 5 columns are at no other site"),
    "words for numbers": (site(age=np.array(["old", "young"] * (ROWS // 2), dtype=object)), "its column 'age' (words)"),
    "features": ({key: value for key, value in site().items() if key != "table"}, "its form (features)"),
    "more rows than samples": (changed("age", present=2**50), "more samples than it has"),
    "more rows in all columns": (shorter(site(), 2**40), "more samples than it has"),
    "another magnitude": (site(age=np.full(ROWS, 1e30)), "numbers in column 'age' are more than 1e+06 times larger"),
    "another spread": (changed("age", deviations=1e60), "is it another unit?"),
    "words without end": (site(**{"x" * MOST_TEXT: np.ones(ROWS)}), "names of columns and categories"),
    "categories of its own": (shorter(of_words(999), 1998), "999 of them its own"),
}


@pytest.mark.parametrize("what", ODD)
def test_one_odd_table_is_left_out_by_name(what):
    liar, reason = ODD[what]
    odd = odd_ones_out({"a": site(), "b": site(), "c": site(), "liar": liar}, 1000)
    assert list(odd) == ["liar"]
    assert reason in odd["liar"]


def test_honest_sites_may_differ_in_units_gaps_columns_and_zeros():
    nothing = np.full(ROWS, None, dtype=object)
    sites = {
        "cm": site(age=np.full(ROWS, 5000.0)), "no ages": site(age=nothing), "no wards": site(ward=nothing),
        "zeros": site(age=np.zeros(ROWS)), "usual": site(), "other wards": site(ward=np.array(["x", "y"] * (ROWS // 2))),
        "another column": site(weight=ONES), "no age": {**site(), "table": {"columns": site()["table"]["columns"][1:]}},
    }  # fmt: skip
    assert odd_ones_out(sites, 1000) == {}
