"""Several tables as one source: each a client, columns by name, whatever is wrong named with its file."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import GramfoldError
from gramfold.errors import ColumnsError
from gramfold.sources import Columns, open_source, source_of

CELLS = st.tuples(
    st.one_of(st.integers(-9, 9).map(float), st.none()), st.sampled_from(["a", "b", "", None]), st.sampled_from(["n", "s", "w"])
)


def table(rows, drop_empty=False) -> dict:
    """A table of drawn cells; a client that has nothing in a column may lack it."""
    columns = {"age": [row[0] for row in rows], "ward": [row[1] for row in rows]}
    kept = {
        name: values for name, values in columns.items() if not drop_empty or any(value not in ("", None) for value in values)
    }
    return {**kept, "sex": ["f", "m"] * (len(rows) // 2) + ["f"] * (len(rows) % 2), "label": [i % 2 for i in range(len(rows))]}


@pytest.mark.filterwarnings("ignore:column .* it is not used")
@given(st.lists(CELLS, min_size=4, max_size=40))
def test_tables_apart_are_encoded_as_one_table_that_names_its_clients(rows):
    """Folding apart is pooling, and a column that a client lacks is one in which it has nothing."""
    owners = sorted({row[2] for row in rows})
    parts = {name: [row for row in rows if row[2] == name] for name in owners}
    whole = table([row for name in owners for row in parts[name]])
    for key in ("sex", "label"):
        whole[key] = [value for name in owners for value in table(parts[name])[key]]
    if len(set(whole["label"])) < 2:
        return
    whole["client"] = [name for name in owners for _ in parts[name]]
    apart = gf.load_data({name: table(part, drop_empty=True) for name, part in parts.items()}, release_words=1)
    pooled = gf.load_data(whole, release_words=1)
    assert apart.origin == pooled.origin
    assert np.array_equal(apart.inputs, pooled.inputs)
    assert apart.client.tolist() == pooled.client.tolist()


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


NORTH = "age,sex,num\n" + "63,f,0\n41,m,2\n" * 6
NUM = {"label_column": "num"}
SOUTH = "age,num\n" + "70,0\n35,1\n" * 6


def test_a_folder_a_list_and_a_pattern_are_the_same_files(tmp_path):
    write(tmp_path / "sites", north=NORTH, south=SOUTH)
    (tmp_path / "sites" / ".hidden.csv").write_text("nothing")
    (tmp_path / "sites" / "readme.txt").write_text("nothing")
    paths = [tmp_path / "sites" / "north.csv", str(tmp_path / "sites" / "south.csv")]
    forms = [tmp_path / "sites", str(tmp_path / "sites" / "*th.csv"), paths, {"north": paths[0], "south": paths[1]}]
    made = [gf.load_data(form, label_column="num > 0") for form in forms]
    for one in made:
        assert np.array_equal(one.inputs, made[0].inputs)
        assert one.client.tolist() == ["north"] * 12 + ["south"] * 12
        assert one.labels == (0, 1)
    assert [one.name for one in made[:3]] == ["sites", "*th.csv", "north.csv, south.csv"]


def test_parquet_and_frames_beside_csv(tmp_path):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    write(tmp_path, north=NORTH)
    frame = pandas.DataFrame({"age": [70, 35] * 6, "num": [0, 1] * 6})
    frame.to_parquet(tmp_path / "south.parquet")
    files = gf.load_data(tmp_path, label_column="num > 0")
    for south in (frame, polars.DataFrame(frame.to_dict("list")), frame.to_dict("list")):
        mixed = gf.load_data({"north": tmp_path / "north.csv", "south": south}, label_column="num > 0")
        assert np.array_equal(files.inputs, mixed.inputs)


def test_files_of_the_same_name_are_called_by_their_folders(tmp_path):
    for place in ("2023", "2024"):
        write(tmp_path / place, north=NORTH)
    found = open_source(str(tmp_path / "*" / "north.csv"), Columns("num"))
    assert set(found.client) == {"2023-north", "2024-north"}


def test_a_client_column_that_is_named_goes_before_files(tmp_path):
    wards = "age,ward,num\n" + "63,er,0\n41,icu,2\n" * 6
    write(tmp_path, monday=wards, tuesday=wards)
    dataset = gf.load_data(tmp_path, label_column="num", client_column="ward")
    assert set(dataset.client) == {"er", "icu"}


def test_columns_that_are_named_may_be_missing_at_some(tmp_path):
    write(tmp_path, north=NORTH, south=SOUTH)
    assert gf.load_data(tmp_path, label_column="num > 0", columns=["age", "sex"]).inputs.shape == (24, 3)
    with pytest.raises(GramfoldError, match=r"south.csv has none of the columns to use \(sex\); it has: age, num"):
        gf.load_data(tmp_path, label_column="num > 0", columns=["sex"])
    with pytest.raises(GramfoldError, match=r"no table of .* has a column 'sexe'; correct --columns \(in Python"):
        gf.load_data(tmp_path, label_column="num > 0", columns=["age", "sexe"])


def test_truth_values_are_numbers_however_they_are_written(tmp_path):
    pandas = pytest.importorskip("pandas")
    write(tmp_path, north="smokes,num\n" + "True,0\nFALSE,1\n,0\n" * 6)
    frame = pandas.DataFrame({"smokes": [True, False] * 6, "num": [0, 1] * 6})
    dataset = gf.load_data({"north": tmp_path / "north.csv", "south": frame}, label_column="num")
    assert dataset.inputs.shape == (30, 2)
    assert dataset.inputs[0].tolist() == dataset.inputs[18].tolist()


def test_a_sample_is_called_by_its_file(tmp_path):
    write(tmp_path, north=NORTH, south=SOUTH)
    source = open_source(str(tmp_path), Columns("num"))
    assert [source.called(i) for i in (0, 11, 12, 23)] == [
        "sample 0 of north.csv", "sample 11 of north.csv", "sample 0 of south.csv", "sample 11 of south.csv",
    ]  # fmt: skip


def test_nearly_the_same_names_are_said(tmp_path):
    write(tmp_path, north=NORTH, south=NORTH.replace("age", "Age "))
    with pytest.warns(UserWarning, match=r"north.csv has a column 'age', south.csv 'Age': .* rename one"):
        open_source(str(tmp_path), Columns("num"))


@pytest.mark.parametrize(
    ("south", "given", "words"),
    [
        (
            SOUTH,
            {},
            r"has no labels; name the column with --label-column \(in Python label_column=\), .*; its columns: age, sex, num",
        ),
        (SOUTH, {"label_column": "nun"}, r"north.csv has no column 'nun' \(did you mean 'num'\?\); it has: age, sex, num"),
        (SOUTH.replace("num", "n"), NUM, r"south.csv has no column 'num'; it has: age, n"),
        ("label,age\n0,1\n", {}, r"north.csv has no labels, south.csv has; name the column with --label-column"),
        ("age,num\n", NUM, r"south.csv holds no samples; leave it out"),
        ("", NUM, r"south.csv is empty; its first line must name the columns"),
        (SOUTH + "51,\n", NUM, r"south.csv: sample 12 has no label: nothing in column 'num'; leave it out"),
        (SOUTH + "51,?\n", {"label_column": "num>0"}, r"south.csv: sample 12 has no label: nothing in column 'num'"),
        (SOUTH.replace("1\n", "ill\n"), NUM, r"labels are words in south.csv and numbers in north.csv; write them the same way"),
        (
            SOUTH.replace("35,1", "<40,1", 1),
            NUM,
            r"'age' holds a word in sample 1 of south.csv, and only numbers in client 'north'",
        ),
        ("height,num\n170,0\n180,1\n", NUM, r"south.csv and north.csv have no column in common; .* height and age, sex"),
        ("age,age,num\n1,2,0\n", NUM, r"south.csv: two columns have the same name, 'age'"),
        ("age,num\n1,0,7\n", NUM, r"south.csv: row 2 has 3 values, the header names 2"),
        (
            "age,site,num\n" + "1,a,0\n2,b,1\n" * 3,
            NUM,
            r"south.csv is one client, and has a column of several; .*--client-column",
        ),
        ("age,split,num\n1,test,0\n", NUM, r"north.csv has no column that says train or test, south.csv has; .*--split-column"),
    ],
)
def test_whatever_is_wrong_is_one_line_that_names_the_file(south, given, words, tmp_path):
    write(tmp_path, north=NORTH, south=south)
    with pytest.raises(GramfoldError, match=words) as error:
        gf.load_data(tmp_path, **given)
    assert "\n" not in str(error.value)


def test_clients_of_one_row_of_one_class_and_without_test_rows(tmp_path):
    split = "age,split,num\n" + "63,train,0\n41,train,2\n" * 6
    write(tmp_path / "split", north=split, south=split.replace("41,train", "41,test", 1))
    result = gf.run("afl", gf.Federation.from_clients(tmp_path / "split", label_column="num > 0"))
    assert {name: client.test for name, client in result.clients.items()} == {"north": 0, "south": 1}
    write(tmp_path / "tiny", north=NORTH, south="age,num\n70,1\n")
    federation = gf.Federation.from_clients(tmp_path / "tiny", label_column="num > 0")
    assert [client.train().n for client in federation] == [9, 1]
    gf.run("pace", federation)
    with pytest.raises(GramfoldError, match=r"client 'south' has 1 training samples, fewer than 2; .*--drop-small"):
        gf.Federation.from_dataset(gf.load_data(tmp_path / "tiny", label_column="num > 0"))
    write(tmp_path / "one", north=NORTH.replace(",2", ",1"), south=SOUTH)
    with pytest.raises(GramfoldError, match="one: only one class in the labels; classification needs at least two"):
        gf.load_data(tmp_path / "one", label_column="num > 7")


def test_folders_that_hold_something_else(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    with pytest.raises(GramfoldError, match=r"empty holds no images .*, and no tables; expected FOLDER/CLASS/IMAGE"):
        gf.load_data(tmp_path / "empty")
    write(tmp_path / "both", north=NORTH)
    (tmp_path / "both" / "a.png").touch()
    with pytest.raises(GramfoldError, match=r"holds tables \(north.csv\) and images \(a.png\); name the tables one by one"):
        gf.load_data(tmp_path / "both")
    with pytest.raises(GramfoldError, match=r"no file matches .*x\*\.csv"):
        gf.load_data(str(tmp_path / "x*.csv"))
    (tmp_path / "both" / "north.tsv").write_text(NORTH)
    with pytest.raises(GramfoldError, match=r"two files are called 'north': .*north.csv and .*north.tsv; rename one"):
        source_of([tmp_path / "both" / "north.csv", tmp_path / "both" / "north.tsv"], Columns("num"))

    def refused(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(GramfoldError, match=r"cannot look into .*: Permission denied; ask for the right to, or copy it"):
        gf.load_data(tmp_path / "both")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    write(tmp_path, north=NORTH)

    def refused(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(GramfoldError, match=r"cannot read .*north.csv: Permission denied; ask for the right to, or copy it"):
        gf.load_data(tmp_path, label_column="num")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    write(tmp_path, north=NORTH)
    (tmp_path / "south.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(GramfoldError, match=r'reading south.parquet needs the package pyarrow; .*"gramfold\[tables\]"'):
        gf.load_data(tmp_path, label_column="num")


def test_no_clients():
    for none in ({}, []):
        with pytest.raises(GramfoldError, match="at least one client"):
            gf.Federation.from_clients(none, label_column="num")


def test_one_table_needs_a_column_of_clients():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0, 3.0, 4.0], "num": [0, 1, 0, 1]})
    with pytest.raises(ColumnsError):
        gf.Federation.from_clients(frame, label_column="num")
