"""The encoder of tables: statistics fold, and what they make of numbers, categories and gaps."""

import json
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold import GramfoldError
from gramfold.extraction import load_data
from gramfold.sources import Columns, TableEncoder, TableStatistics

NUMBERS = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, 0.0]))
WORDS = st.sampled_from(["a", "b", "c", "d", "", None])
ROWS = st.lists(st.tuples(NUMBERS, WORDS, st.integers(0, 3)), min_size=1, max_size=40)


def table(rows) -> dict[str, np.ndarray]:
    return {"x": np.array([row[0] for row in rows]), "k": np.array([row[1] for row in rows], dtype=object)}


def parts(rows) -> list[TableStatistics]:
    owners = sorted({row[2] for row in rows})
    return [TableStatistics.of(table([row for row in rows if row[2] == owner])) for owner in owners]


@given(ROWS)
def test_folded_statistics_are_those_of_all_rows(rows):
    whole, folded = TableStatistics.of(table(rows)), reduce(add, parts(rows))
    for name, wanted in whole.by_column.items():
        found = folded.by_column[name]
        assert (found.present, found.missing, found.counts or {}) == (wanted.present, wanted.missing, wanted.counts or {})
        assert found.mean == pytest.approx(wanted.mean, rel=1e-9, abs=1e-6)
        assert found.deviations == pytest.approx(wanted.deviations, rel=1e-9, abs=1e-3)  # of numbers up to 1e12


@pytest.mark.filterwarnings("ignore:column .* holds words")
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_clients_does_not_matter(rows, random):
    shuffled = parts(rows)
    random.shuffle(shuffled)
    one, other = reduce(add, parts(rows)), reduce(add, shuffled)
    encoded = [statistics.encoder()(table(rows)) for statistics in (one, other) if _has_columns(statistics)]
    assert all(np.allclose(encoded[0], part, atol=1e-6) for part in encoded)


def _has_columns(statistics: TableStatistics) -> bool:
    try:
        return bool(statistics.encoder().columns)
    except GramfoldError:
        return False


def test_numbers_are_standardised_and_gaps_are_said():
    rows = {"age": np.array([40.0, 60.0, np.nan, 50.0])}
    encoder = TableStatistics.of(rows).encoder()
    encoded = encoder(rows)
    assert encoder.columns == ["age", "age is missing"]
    assert encoded[:, 1].tolist() == [0, 0, 1, 0]
    assert encoded[2, 0] == 0, "the mean"
    assert encoded[[0, 1, 3], 0].std() == pytest.approx(1)


def test_rare_and_unknown_categories_have_no_column():
    encoder = TableStatistics.of({"ward": np.array(["a", "a", "b", "b", "once"])}).encoder()
    assert encoder.columns == ["ward = a", "ward = b"]
    assert encoder({"ward": np.array(["b", "once", "never seen", None], dtype=object)}).tolist() == [
        [0, 1],
        [0, 0],
        [0, 0],
        [0, 0],
    ]


def test_large_numbers_that_hardly_vary_keep_their_spread():
    seconds = 1.7e9 + np.array([0.0, 10.0, 20.0, 30.0])
    halves = TableStatistics.of({"t": seconds[:2]}) + TableStatistics.of({"t": seconds[2:]})
    assert halves.encoder()({"t": seconds})[:, 0] == pytest.approx((seconds - seconds.mean()) / seconds.std(), abs=1e-6)


def test_a_constant_column_stays_quiet():
    assert TableStatistics.of({"x": np.full(5, 0.1)}).encoder()({"x": np.full(5, 0.1)}).tolist() == [[0.0]] * 5


def test_statistics_travel_as_json():
    statistics = TableStatistics.of(table([(1.0, "a", 0), (np.nan, "a", 0), (3.5, None, 0)]))
    again = TableStatistics.from_dict(json.loads(json.dumps(statistics.to_dict())))
    assert again == statistics
    encoder = statistics.encoder()
    assert TableEncoder.reopen(encoder.origin).origin == encoder.origin


@pytest.mark.parametrize(
    "fields",
    [
        {"present": -1}, {"present": 1.5}, {"mean": 1e300}, {"deviations": float("nan")}, {"mean": "a"}, {"unheard": 1},
        {"present": 2, "counts": {"a": 1}}, {"present": 1, "counts": {"a": -1, "b": 2}}, {"counts": [1]}, 3,
    ],
)  # fmt: skip
def test_statistics_from_elsewhere_are_checked(fields):
    for written in ({"columns": [["x", fields]]}, {"columns": fields}):
        with pytest.raises(GramfoldError, match="cannot read a table's statistics"):
            TableStatistics.from_dict(written)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"x": np.array(["a"], dtype=object)}, "column 'x' does not fold: it holds numbers at one client and words at another"),
        ({"z": np.array([1.0])}, "not all clients have a column 'x'"),
    ],
)
def test_tables_that_do_not_fit_together(other, words):
    with pytest.raises(GramfoldError, match=words):
        TableStatistics.of({"x": np.array([1.0])}) + TableStatistics.of(other)


def test_a_table_whose_column_changed_is_refused():
    encoder = TableStatistics.of({"x": np.array([1.0, 2.0])}).encoder()
    with pytest.raises(GramfoldError, match="column 'x' holds 'much', and numbers in the data"):
        encoder({"x": np.array(["1", "much"], dtype=object)})
    with pytest.raises(GramfoldError, match="no column 'x', which its encoder needs"):
        encoder({"y": np.array([1.0])})


def test_a_csv_of_patients_becomes_a_data_set(tmp_path):
    rows = ["age,sex,stage,hospital,diagnosis", "50,f,2,north,0", ",m,1,north,1", "61,m,?,south,1", "70,f,2,south,0"]
    (tmp_path / "p.csv").write_text("\n".join(rows))
    dataset = load_data(tmp_path / "p.csv", columns=Columns(label="diagnosis"))
    assert TableEncoder.reopen(dataset.origin).columns == [
        "age", "age is missing", "sex = f", "sex = m", "stage", "stage is missing",
    ]  # fmt: skip
    assert (dataset.labels, set(dataset.client)) == ((0, 1), {"north", "south"})
    only = load_data(tmp_path / "p.csv", columns=Columns(label="diagnosis", only=("age",)))
    assert only.inputs.shape == (4, 2)
