"""CSV files as spreadsheets of all countries write them."""

import numpy as np
import pytest

import gramfold as gf
from gramfold import GramfoldError
from gramfold.sources import columns_of, read_table

PLAIN = "age,crp,ward\n" + "63,1.5,er\n41,12.25,icu\n"


def read(tmp_path, content: str | bytes, name="t.csv") -> dict[str, list]:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return {title: values.tolist() for title, values in read_table(tmp_path / name).items()}


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.replace(",", ";").replace(".", ","), PLAIN.replace(",", "\t"), PLAIN.replace(",", "\t").replace(".", ","),
        PLAIN.replace(",", "|"), PLAIN.encode("utf-8-sig"), PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("1.5", '"1,5"').replace("12.25", '"12,25"'), PLAIN.replace("\n", "\n\n"),
    ],
)  # fmt: skip
def test_all_ways_to_write_a_table_are_one(content, tmp_path):
    assert read(tmp_path, content) == read(tmp_path, PLAIN, "plain.csv")


def test_an_index_that_was_saved_along_is_left_out(tmp_path):
    with pytest.warns(UserWarning, match=r"t.csv: column 1 has no name \(the rows' numbers, saved along\?\), and is not used"):
        assert list(read(tmp_path, ",age\n0,63\n1,41\n")) == ["age"]
    with pytest.warns(UserWarning, match="column 1 has no name"):
        assert list(read(tmp_path, "Unnamed: 0,age\n0,63\n1,41\n")) == ["age"]
    assert list(read(tmp_path, "age,\n63,\n41,\n")) == ["age"], "nothing behind a last comma is nothing to say"


def test_words_with_commas_stay_words(tmp_path):
    assert read(tmp_path, 'note,n\n"1,5",1\n"see, above",2\n')["note"] == ["1,5", "see, above"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('price\n"1,234"\n17\n', r"sample 0 has '1,234' in column 'price', where the comma may part thousands or decimals"),
        (PLAIN.encode("utf-16"), "is UTF-16, not UTF-8 text; save it as CSV in UTF-8"),
        (
            "age,ort\n1,Köln\n".encode("latin-1"),
            r"is not UTF-8 text; save it .* \(line 2 has a byte .* 'ö' in latin-1",
        ),
        ("a,b,a\n1,2,3\n", "two columns have the same name, 'a'; rename one"),
        ("a,b\n1,2,3\n", "row 2 has 3 values, the header names 2 columns; quote values that hold ','"),
        ("\n", "is empty; its first line must name the columns"),
    ],
)
def test_files_that_cannot_be_read_so(content, words, tmp_path):
    with pytest.raises(GramfoldError, match=words):
        read(tmp_path, content)


def test_frames_with_two_columns_of_one_name_and_ragged_columns():
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame(np.eye(2), columns=["a", "a"])
    with pytest.raises(GramfoldError, match="client 'north': two columns have the same name, 'a'; rename one"):
        gf.Federation.from_clients({"north": twice}, label_column="a")
    with pytest.raises(GramfoldError, match="dict: column 'b' has 1 value, column 'a' 2; give one each"):
        columns_of({"a": [1, 2], "b": [1]})
    indexed = pandas.DataFrame({"Unnamed: 0": [0, 1], "a": [1, 2]})
    with pytest.warns(UserWarning, match="DataFrame: column 1 has no name"):
        assert list(columns_of(indexed)) == ["a"]
