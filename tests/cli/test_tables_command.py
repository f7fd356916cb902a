"""Tables of several sites on the command line: run, and predict at a site that lacks columns."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf

HEART = Path(__file__).parents[3] / "shared" / "data" / "heart"
CENTRES = ("cleveland", "hungarian", "switzerland", "va")


def write_sites(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name, lacks in (("north", ()), ("south", ("crp",))):
        age, crp = rng.normal(50, 10, 60), rng.normal(size=60)
        columns = {"age": age.round(2), "crp": crp.round(3), "num": np.where(age + 4 * crp > 50, 2, 0)}
        kept = {title: values for title, values in columns.items() if title not in lacks}
        lines = [",".join(kept), *(",".join(map(str, row)) for row in zip(*kept.values(), strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "data",
    [("sites",), ("sites/*th.csv",), ("sites/north.csv", "sites/south.csv")],
)  # fmt: skip
def test_files_are_clients(data, gramfold, tmp_path):
    (tmp_path / "sites").mkdir()
    write_sites(tmp_path / "sites")
    code, out, err = gramfold("run", *data, "--label-column", "num > 0", "--methods", "pace", "--heads", "heads", "--json")
    assert code == 0, err
    assert [client["name"] for client in json.loads(out)["methods"][0]["clients"]] == ["north", "south"]
    card = (tmp_path / "heads" / "pace" / "south.card.md").read_text()
    assert "| takes | 3 numbers from the columns age, crp of a table (fingerprint `" in card
    code, out, err = gramfold("predict", "heads/pace/south.safetensors", "sites/south.csv", "--out", "p.csv")
    assert (code, out) == (0, "p.csv: 60 samples\n")
    assert "warning: south.csv: it has no column 'crp', which is taken as missing\n" in err
    with (tmp_path / "p.csv").open() as file:
        found = [row["class"] for row in csv.DictReader(file)]
    head = gf.load_head(tmp_path / "heads" / "pace" / "south.safetensors")
    with pytest.warns(UserWarning, match="no column 'crp'"):
        assert found == [str(label) for label in head.predict(tmp_path / "sites" / "south.csv")]


def test_a_column_may_say_whose_rows_of_several_files_are(gramfold, tmp_path):
    (tmp_path / "sites").mkdir()
    write_sites(tmp_path / "sites")
    for path in (tmp_path / "sites").iterdir():
        lines = path.read_text().splitlines()
        path.write_text("\n".join([f"{lines[0]},ward", *(f"{line},{'ab'[i % 2]}" for i, line in enumerate(lines[1:]))]))
    ask = ["run", "sites", "--label-column", "num>0", "--methods", "afl", "--json"]
    code, out, _ = gramfold(*ask, "--client-column", "ward")
    assert code == 0
    assert [client["name"] for client in json.loads(out)["methods"][0]["clients"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["sites", "--label-column", "nun"],
            "north.csv has no column 'nun' (did you mean 'num'?); it has: age, crp, num",
        ),
        (
            ["sites/north.csv", "digits"],
            "digits is no table; of several files each is a client, and a .csv or .parquet",
        ),
        (["none*.csv"], "no file matches none*.csv"),
        (["sites/north.csv", "sites/west.csv", "--label-column", "num"], "no such table: sites/west.csv"),
    ],
)
def test_what_is_wrong_is_one_line(arguments, words, gramfold, tmp_path):
    (tmp_path / "sites").mkdir()
    write_sites(tmp_path / "sites")
    assert gramfold("run", *arguments) == (2, "", f"error: {words}\n")


@pytest.mark.data
@pytest.mark.skipif(not HEART.is_dir(), reason="the development data is not here")
def test_four_hospitals_as_published(gramfold, tmp_path):
    """The issue's own command: the files as they are, and one comparison that says what the disease is."""
    code, out, err = gramfold("run", str(HEART), "--label-column", "num > 0", "--methods", "pace", "--heads", "h", "--json")
    assert code == 0, err
    page = json.loads(out)
    assert [client["name"] for client in page["methods"][0]["clients"]] == list(CENTRES)
    federation = gf.Federation.from_clients(HEART, label_column="num > 0")
    pandas = pytest.importorskip("pandas")
    for client in federation:
        head = gf.load_head(tmp_path / "h" / "pace" / f"{client.name}.safetensors")
        raw = pandas.read_csv(HEART / f"{client.name}.csv", na_values="?")
        own = np.concatenate([client.train().inputs, client.test().inputs])
        known = {tuple(row): place for place, row in enumerate(own.tolist())}
        in_its_order = own[[known[tuple(row)] for row in head.rows(raw).tolist()]]
        assert np.array_equal(head.predict_proba(raw), head.predict_proba(in_its_order))
        assert np.array_equal(head.predict_proba(raw), head.predict_proba(HEART / f"{client.name}.csv"))
        code, out, err = gramfold("predict", f"h/pace/{client.name}.safetensors", str(HEART / f"{client.name}.csv"))
        assert (code, out) == (0, f"predictions.csv: {len(raw)} samples\n")
        if client.name == "va":  # its own training rows, too
            assert err.startswith("check: va.csv, column 'chol': 49 of 193 rows have 0, where its others have 239.6")
        else:
            assert err == ""
