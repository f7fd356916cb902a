"""`gramfold explain`, and `gramfold predict --novelty`, on a table."""

import csv
import json

import numpy as np
import pytest

import gramfold as gf


@pytest.fixture
def head(tmp_path) -> str:
    rng = np.random.default_rng(0)
    age, sex = rng.normal(60, 10, 200), rng.choice(["f", "m"], 200)
    died = np.where(rng.random(200) < 1 / (1 + np.exp(-(age - 60) / 4 - (sex == "m"))), "yes", "no")
    with open(tmp_path / "all.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["age", "sex", "died", "site"])
        rows.writerows(zip(age.round(1), sex, died, ["a", "b"] * 100, strict=True))
    data = gf.load_data(str(tmp_path / "all.csv"), label_column="died", client_column="site")
    gf.run("afl", gf.Federation.from_dataset(data, 2)).heads["a"].save(tmp_path / "a.safetensors")
    (tmp_path / "one.csv").write_text("age,sex\n80,m\n")
    return "a.safetensors"


def test_effects_are_printed_and_written(gramfold, head, tmp_path):
    code, out, err = gramfold("explain", head, "all.csv", "--out", "effects.csv")
    assert (code, err.count("error")) == (0, 0)
    assert out.splitlines()[0] == "Mean size of effects on 200 predictions"
    assert out.splitlines()[1].split()[0] == "age"
    rows = list(csv.DictReader((tmp_path / "effects.csv").open()))
    assert list(rows[0]) == ["sample", "of", "prediction", "baseline", "age", "sex"]
    sums = [float(row["age"]) + float(row["sex"]) - float(row["prediction"]) + float(row["baseline"]) for row in rows]
    np.testing.assert_allclose(sums, 0.0, atol=1e-9)


def test_one_row_is_explained_by_itself_and_as_json(gramfold, head):
    assert "log-odds of yes" in gramfold("explain", head, "one.csv")[1]
    told = json.loads(gramfold("explain", head, "one.csv", "--of", "no", "--json")[1])
    assert told["exact"] is True
    assert told["samples"][0]["of"] == "no"
    assert told["samples"][0]["age"] < 0
    compared = json.loads(gramfold("explain", head, "one.csv", "--baseline", "one.csv", "--json")[1])
    assert compared["importance"] == {"age": 0.0, "sex": 0.0}


def test_a_page(gramfold, head, tmp_path):
    assert gramfold("explain", head, "all.csv", "--out", "effects.html")[0] == 0
    page = (tmp_path / "effects.html").read_text()
    assert "Mean size of effects" in page
    assert "sex" in page


def test_a_mistake_is_one_line(gramfold, head):
    for line, words in (
        (("all.csv", "--of", "maybe"), "no class 'maybe'; it has: no, yes"),
        (("all.csv", "--out", "effects.txt"), "must end in .csv, .parquet, .pq, .html"),
    ):
        code, _, err = gramfold("explain", head, *line)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err


def test_novelty_beside_predictions(gramfold, head, tmp_path):
    (tmp_path / "two.csv").write_text("age,sex\n60,m\n300,m\n")
    assert gramfold("predict", head, "two.csv", "--novelty")[0] == 0
    rows = list(csv.DictReader((tmp_path / "predictions.csv").open()))
    assert 0 <= float(rows[0]["novelty"]) < 0.9 < float(rows[1]["novelty"]) < 1
