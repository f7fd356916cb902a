"""The encoder of tables: statistics fold, and what they make of numbers, categories and gaps."""

import json
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold import GramfoldError
from gramfold.errors import ColumnsError, FileError
from gramfold.extraction import load_data
from gramfold.origin import Origin
from gramfold.sources import TableEncoder, TableStatistics
from gramfold.sources.statistics import ColumnStatistics

NUMBERS = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, 0.0]))
WORDS = st.sampled_from(["a", "b", "c", "d", "", None])
ROWS = st.lists(st.tuples(NUMBERS, WORDS, st.integers(0, 3)), min_size=1, max_size=40)
FLOORS = st.integers(1, 4)


def table(rows) -> dict[str, np.ndarray]:
    return {"x": np.array([row[0] for row in rows]), "k": np.array([row[1] for row in rows], dtype=object)}


def parts(rows, floor: int = 2) -> list[TableStatistics]:
    owners = sorted({row[2] for row in rows})
    return [TableStatistics.of(table([row for row in rows if row[2] == owner]), floor) for owner in owners]


@given(ROWS, FLOORS)
def test_folded_statistics_are_those_of_all_rows_and_the_union_of_what_owners_release(rows, floor):
    whole, folded = TableStatistics.of(table(rows), floor), reduce(add, parts(rows, floor))
    released = {
        word
        for owner in range(4)
        for word in "abcd"
        if sum(row[1:] == (word, owner) for row in rows) >= floor and not _names_its_rows([r for r in rows if r[2] == owner])
    }
    assert set(folded.by_column["k"].words or ()) == released
    for name, wanted in whole.by_column.items():
        found = folded.by_column[name]
        assert (found.rows, found.missing) == (wanted.rows, wanted.missing)
        if found.present < wanted.present or wanted.singular:
            continue  # one of them sees in it whose a row is
        assert found.mean == pytest.approx(wanted.mean, rel=1e-9, abs=1e-6)
        assert found.deviations == pytest.approx(wanted.deviations, rel=1e-9, abs=1e-3)  # of numbers up to 1e12


def _names_its_rows(rows) -> bool:
    words = [row[1] for row in rows if row[1]]
    return len(words) >= 10 and 2 * len(set(words)) > len(words)


@given(ROWS, FLOORS, st.randoms(use_true_random=False))
def test_the_order_of_clients_does_not_matter(rows, floor, random):
    shuffled = parts(rows, floor)
    random.shuffle(shuffled)
    one, other = reduce(add, parts(rows, floor)), reduce(add, shuffled)
    assert one.unused() == other.unused()
    if len(one.unused()) < 2:
        encoders = [TableEncoder.of(statistics) for statistics in (one, other)]
        assert encoders[0].columns == encoders[1].columns
        assert np.allclose(*(encoder(table(rows)) for encoder in encoders), atol=1e-6)


@given(ROWS, st.lists(st.floats(-10, 10), min_size=1, max_size=8))
def test_a_column_that_a_client_lacks_is_missing_in_all_its_rows(rows, numbers):
    mine, lacking = TableStatistics.of(table(rows)), TableStatistics.of({"x": np.array(numbers)})
    told = TableStatistics.of({"x": np.array(numbers), "k": np.full(len(numbers), None, dtype=object)})
    assert mine + lacking == mine + told
    assert (lacking + mine).by_column["k"] == (told + mine).by_column["k"]


def test_numbers_are_standardised_and_gaps_are_said():
    rows = {"age": np.array([40.0, 60.0, np.nan, 50.0])}
    encoder = encoder_of(rows)
    encoded = encoder(rows)
    assert encoder.columns == ["age", "age is missing"]
    assert encoded[:, 1].tolist() == [0, 0, 1, 0]
    assert encoded[2, 0] == 0, "the mean"
    assert encoded[[0, 1, 3], 0].std() == pytest.approx(1)


def encoder_of(rows, *others, floor: int = 5, wanted=()) -> TableEncoder:
    return TableEncoder.of(reduce(add, (TableStatistics.of(part, floor, wanted) for part in (rows, *others))))


def words(**counts: int) -> dict[str, np.ndarray]:
    return {"ward": np.array([word for word, count in counts.items() for _ in range(count)], dtype=object)}


def test_rare_and_unknown_categories_are_one():
    encoder = encoder_of(words(a=9, b=5, c=4, once=1))
    assert encoder.columns == ["ward = a", "ward = b", "ward = other"]
    asked = {"ward": np.array(["b", "once", "never seen", None], dtype=object)}
    assert encoder(asked).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert encoder.unknown(encoder.read(asked)) == {"ward": 2}


def test_too_few_rows_of_rare_words_are_no_category_either():
    encoder = encoder_of(words(a=9, b=5, c=3, once=1))
    assert encoder.columns == ["ward = a", "ward = b"]
    asked = {"ward": np.array(["c", "a"], dtype=object)}
    assert (encoder(asked).tolist(), encoder.unknown(encoder.read(asked))) == ([[0, 0], [1, 0]], {"ward": 1})


def test_the_floor_is_each_clients():
    assert encoder_of(words(a=9, b=4), words(b=4, c=9)).columns == ["ward = a", "ward = c"]
    assert encoder_of(words(a=9, b=4), words(b=5, c=9)).columns == ["ward = a", "ward = b", "ward = c"]


def test_a_category_called_other_is_that_of_rare_words():
    encoder = encoder_of(words(a=9, other=9, x=3, y=2))
    assert encoder.columns == ["ward = a", "ward = other"]
    assert encoder({"ward": np.array(["other", "x"], dtype=object)}).tolist() == [[0, 1], [0, 1]]


ROW = np.arange(40)
SINGULAR = {
    "names": np.array([f"patient {i}" for i in ROW], dtype=object),
    "a telephone that a family shares": np.array([f"030-{max(i, 8)}" for i in ROW], dtype=object),
    "dates as text": np.array([f"{i % 28 + 1}. {i}. 1951" for i in ROW], dtype=object),
    "numbers of the rows": 1000.0 + ROW,
    "the same, shuffled": np.random.default_rng(0).permutation(40) + 7.0,
    "the same as text": np.array([str(1000 + 3 * i) for i in ROW], dtype=object),
}


@pytest.mark.parametrize("what", SINGULAR)
def test_what_says_whose_a_row_is_is_not_used(what):
    rows = {"id": SINGULAR[what], "age": np.linspace(20, 80, 40) % 7}
    statistics = TableStatistics.of(rows)
    assert list(statistics.unused()) == ["id"]
    assert "says whose a row is" in statistics.unused()["id"]
    assert statistics.by_column["id"] == ColumnStatistics(singular=40), "nothing else is said"
    encoder = TableEncoder.of(statistics)
    assert encoder.names == ["age"]
    assert "id" not in encoder.origin.to_json()


def test_running_numbers_are_used_where_they_are_asked_for_and_words_are_not():
    rows = {"day": 1000.0 + ROW, "name": SINGULAR["names"]}
    assert encoder_of(rows, wanted=("day", "name")).names == ["day"]


@pytest.mark.parametrize(
    "numbers",
    [np.random.default_rng(0).integers(100_000, 10_000_000, 200), np.random.default_rng(0).integers(20, 90, 200), np.arange(9),
     np.linspace(0, 1, 50)],
)  # fmt: skip
def test_measured_numbers_are_no_running_ones(numbers):
    assert encoder_of({"x": numbers.astype(float)}).names == ["x"]


def test_most_rows_say_what_a_column_is():
    sorted_by_it, measured = {"x": np.arange(12.0)}, {"x": np.array([3.0, 1.0, 3.0, 7.0] * 5)}
    assert encoder_of(sorted_by_it, measured).names == ["x"]
    assert "x" in (TableStatistics.of({"x": np.arange(30.0)}) + TableStatistics.of(measured)).unused()


def test_what_is_long_is_text_however_often_it_occurs():
    assert encoder_of(words(a=9, **{"b" * 101: 9})).columns == ["ward = a", "ward = other"]


def test_what_is_shown_of_statistics_holds_no_words():
    statistics = TableStatistics.of(words(icu=9, other=9))
    assert "icu" not in repr(statistics) + repr(statistics.by_column["ward"]) + repr(TableEncoder.of(statistics).origin)


def test_a_floor_is_a_number_of_rows():
    with pytest.raises(GramfoldError, match="release_words is how many rows must have a word, at least 1; got 0"):
        TableStatistics.of(words(a=9), 0)


def test_an_encoder_of_an_older_gramfold_is_refused():
    counts = {"present": 2, "missing": 0, "mean": 0.0, "deviations": 0.0, "counts": {"HIV": 1, "well": 1}}
    with pytest.raises(FileError):
        TableEncoder.reopen(Origin("table", "columns", "", {"columns": [["diagnosis", counts]]}))


@pytest.mark.parametrize(
    "fields",
    [
        {"mean": 0.0, "spread": 0.0, "gaps": False}, {"mean": 0.0, "spread": 1.0, "gaps": 1}, {"mean": 0.0},
        {"words": ["b", "a"], "other": True}, {"words": ["a", 1], "other": True}, {"words": ["a"]}, 3,
        {"mean": float("nan"), "spread": 1.0, "gaps": True}, {"mean": 0.0, "spread": 1.0, "gaps": True, "dates": 1},
    ],
)  # fmt: skip
def test_encoders_from_elsewhere_are_checked(fields):
    with pytest.raises(ColumnsError):
        TableEncoder.reopen(Origin("table", "columns", "", {"columns": [["x", fields]]}))


def test_large_numbers_that_hardly_vary_keep_their_spread():
    seconds = 1.7e9 + np.array([0.0, 10.0, 20.0, 30.0])
    halves = TableStatistics.of({"t": seconds[:2]}) + TableStatistics.of({"t": seconds[2:]})
    assert TableEncoder.of(halves)({"t": seconds})[:, 0] == pytest.approx((seconds - seconds.mean()) / seconds.std(), abs=1e-6)


def test_a_constant_column_stays_quiet():
    assert encoder_of({"x": np.full(5, 0.1)})({"x": np.full(5, 0.1)}).tolist() == [[0.0]] * 5


def test_statistics_travel_as_json():
    statistics = TableStatistics.of(table([(1.0, "a", 0), (np.nan, "a", 0), (3.5, None, 0)]), 2)
    again = TableStatistics.from_dict(json.loads(json.dumps(statistics.to_dict())))
    assert again == statistics
    encoder = TableEncoder.of(statistics)
    assert TableEncoder.reopen(encoder.origin).origin == encoder.origin


@pytest.mark.parametrize(
    "fields",
    [
        {"present": -1}, {"present": 1.5}, {"mean": 1e300}, {"deviations": float("nan")}, {"mean": "a"}, {"unheard": 1},
        {"singular": -1}, {"words": ["b", "a"]}, {"words": ["a", "a"]}, {"words": [1]}, {"words": ["x" * 101]},
        {"other": True}, {"dates": 1}, {"dates": True, "words": ["a"]}, 3,
    ],
)  # fmt: skip
def test_statistics_from_elsewhere_are_checked(fields):
    for written in ({"columns": [["x", fields]]}, {"columns": fields}):
        with pytest.raises(ColumnsError):
            TableStatistics.from_dict(written)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"x": np.array(["a"], dtype=object)}, "column 'x' does not fold: it holds numbers at one client and words at another"),
        ({"x": np.array(["2024-02-28"])}, "column 'x' does not fold: it holds dates at one client and numbers at another"),
    ],
)
def test_tables_that_do_not_fit_together(other, said):
    with pytest.raises(GramfoldError, match=said):
        TableStatistics.of({"x": np.array([1.0])}) + TableStatistics.of(other)


def test_a_table_whose_column_changed_is_refused():
    encoder = encoder_of({"x": np.array([1.0, 2.0])})
    with pytest.raises(GramfoldError, match="column 'x' holds no number in sample 1, and numbers where") as refused:
        encoder({"x": np.array(["1", "much"], dtype=object)})
    assert "much" not in str(refused.value)
    with pytest.raises(GramfoldError, match="none of the columns that its encoder takes: x"):
        encoder({"y": np.array([1.0])})


DAYS = np.array(["2024-02-28", None, "2024-03-04"], dtype=object)
"""Dates as text, with a gap."""


def test_dates_where_numbers_were_and_numbers_where_dates_were_are_refused():
    days, numbers = encoder_of({"seen": DAYS}), encoder_of({"seen": np.array([19781.0, np.nan, 19786.0])})
    np.testing.assert_array_equal(days({"seen": DAYS}), numbers({"seen": np.array([19781.0, np.nan, 19786.0])}))
    for column in (DAYS, np.array([19781.0, "2024-03-04"], dtype=object), np.array(["19781", "2024-03-04T10:00"])):
        with pytest.raises(GramfoldError, match=r"holds no number in .*, and numbers where its encoder was made"):
            numbers({"seen": column})
    with pytest.raises(GramfoldError, match="column 'seen' holds no date in sample 1, and dates where its encoder was made"):
        days({"seen": np.array([None, 19781.0], dtype=object)})
    assert days({"seen": np.array([None, np.nan], dtype=object)}).tolist() == [[0.0, 1.0]] * 2, "nothing is of either kind"
    assert TableEncoder.reopen(days.origin).origin == days.origin != numbers.origin


def test_a_date_among_numbers_makes_words_of_them():
    """A spreadsheet that takes 3.1 for the third of January spoils no number in silence."""
    column = np.array([*["3.2", "4.5"] * 6, "2024-01-03"], dtype=object)
    assert TableStatistics.of({"x": column}).by_column["x"].words == ("3.2", "4.5")


def test_a_csv_of_patients_becomes_a_data_set(tmp_path):
    rows = ["age,sex,stage,hospital,diagnosis", "50,f,2,north,0", ",m,1,north,1", "61,m,?,south,1", "70,f,2,south,0"]
    (tmp_path / "p.csv").write_text("\n".join(rows))
    dataset = load_data(tmp_path / "p.csv", label_column="diagnosis", release_words=1)
    assert TableEncoder.reopen(dataset.origin).columns == [
        "age", "age is missing", "sex = f", "sex = m", "stage", "stage is missing",
    ]  # fmt: skip
    assert (dataset.labels, set(dataset.client)) == ((0, 1), {"north", "south"})
    only = load_data(tmp_path / "p.csv", label_column="diagnosis", columns=["age"])
    assert only.inputs.shape == (4, 2)
