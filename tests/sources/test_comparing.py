"""Labels that a comparison makes of a column."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import GramfoldError
from gramfold.errors import LabelsError
from gramfold.sources.comparing import ORDER, Comparison


@given(st.lists(st.integers(-3, 3), min_size=1), st.sampled_from([">", "<", ">=", "<=", "=", "==", "!="]), st.integers(-3, 3))
def test_it_says_of_numbers_what_python_says(numbers, sign, value):
    compare = ORDER.get(sign) or {"=": int.__eq__, "==": int.__eq__, "!=": int.__ne__}[sign]
    wanted = [int(compare(number, value)) for number in numbers]
    for values in (np.array(numbers), np.array([str(number) for number in numbers], dtype=object)):
        assert Comparison.read(f"num {sign} {value}")(values, "t").tolist() == wanted


@pytest.mark.parametrize("text", ["outcome=ill", "outcome = ill", " outcome == ill"])
def test_words_are_equal_or_not(text):
    assert Comparison.read(text)(np.array(["ill", "well", " ill "], dtype=object), "t").tolist() == [1, 0, 1]


def test_the_name_of_a_column_is_no_comparison():
    assert Comparison.read("num") is None
    rows = {"bmi > 25": ["yes", "no"] * 6, "age": [40.5, 60.0, 51.0] * 4}
    assert gf.load_data(rows, label_column="bmi > 25").labels == ("no", "yes")


def test_what_is_compared_is_no_feature():
    rows = {"num": [0, 2, 1, 0] * 3, "age": [40.5, 60.0, 51.0] * 4}
    assert gf.load_data(rows, label_column="num>0").inputs.shape == (12, 1)
    assert gf.load_data(rows, label_column="num>0").targets.tolist() == [0, 1, 1, 0] * 3


@pytest.mark.parametrize(
    ("column", "text", "words"),
    [
        ([1, None, 2], "num > 0", "t: sample 1 has no label: nothing in column 'num'; leave it out"),
        ([1, "?", 2], "num = 1", "t: sample 1 has no label"),
        (["a", "b", "a"], "num > 0", "t: sample 0 has a word in column 'num', and > compares numbers; for words write num=WORD"),
        ([1, 0, 2], "num > ill", "'ill' is no number, and > compares numbers"),
    ],
)
def test_what_cannot_be_compared(column, text, words):
    with pytest.raises(GramfoldError, match=words):
        Comparison.read(text)(np.array(column, dtype=object), "t")


def test_a_comparison_and_its_column_are_checked():
    rows = {"num": [0, 2, 1, 0], "age": [40.5, 60.0, 51.0, 44.0]}
    with pytest.raises(GramfoldError, match=r"dict has no column 'nun' \(did you mean 'num'\?\)"):
        gf.load_data(rows, label_column="nun > 0")
    with pytest.raises(GramfoldError, match="cannot read the comparison 'num => 0'; write it as in 'num > 0'"):
        gf.load_data(rows, label_column="num => 0")
    with pytest.raises(LabelsError):
        gf.load_data(rows, label_column="num > 0", regression=True)
