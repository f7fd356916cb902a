"""`gramfold check`, and what `gramfold run` says of it."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold.federation import Federation, digits

HEART = Path(__file__).parents[3] / "shared" / "data" / "heart"


def write(folder: Path, wrong: bool) -> None:
    """Three hospitals; one has weights in grams where it is wrong."""
    folder.mkdir()
    for seed, name in enumerate(("north", "south", "west")):
        rng = np.random.default_rng(seed)
        weight, age, ward = rng.normal(75, 12, 90), rng.normal(50, 9, 90), rng.choice(["[red]er", "icu"], 90)
        ill = np.where(age + rng.normal(0, 5, 90) > 50, "yes", "no")
        weight = weight * 1000 if wrong and name == "south" else weight
        rows = [f"{w:.1f},{a:.1f},{where},{y}" for w, a, where, y in zip(weight, age, ward, ill, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["weight,age,ward,ill", *rows]) + "\n")


@pytest.mark.parametrize("wrong", [False, True])
def test_the_exit_code_says_whether_something_is_serious(wrong, gramfold, tmp_path):
    write(tmp_path / "h", wrong)
    code, out, err = gramfold("check", "h", "--label-column", "ill")
    assert (code, err) == (int(wrong), "")
    assert ("3 clients checked: 1 serious, no notices" in out) == wrong
    assert ("as if in another unit" in " ".join(out.split())) == wrong
    code, out, _ = gramfold(
        "check", *(str(path) for path in sorted((tmp_path / "h").iterdir())), "--label-column", "ill", "--json"
    )
    found = json.loads(out)["findings"]
    assert code == int(wrong)
    assert [(each["client"], each["column"], each["factor"]) for each in found] == [("south", "weight", 1000.0)] * wrong


def test_run_says_what_is_serious_in_a_line_each(gramfold, tmp_path):
    write(tmp_path / "h", wrong=True)
    code, _, err = gramfold("run", "h", "--label-column", "ill", "--methods", "local", "--seeds", "2")
    said = [line for line in err.splitlines() if line.startswith("check: ")]
    assert code == 0
    assert len(said) == 1
    assert said[0].startswith("check: south, column 'weight': its numbers are 975 times as large as")
    write(tmp_path / "clean", wrong=False)
    assert "check:" not in gramfold("run", "clean", "--label-column", "ill", "--methods", "local")[2]


def test_new_rows_in_another_unit_are_said_by_predict_and_explain(gramfold, tmp_path):
    write(tmp_path / "h", wrong=False)
    write(tmp_path / "wrong", wrong=True)
    gramfold("run", "h", "--label-column", "ill", "--methods", "local", "--heads", "heads")
    for command in ("predict", "explain"):
        code, _, err = gramfold(command, "heads/local/north.safetensors", "wrong/south.csv")
        said = [line for line in err.splitlines() if line.startswith("check: ")]
        assert code == 0
        assert len(said) == 1
        assert said[0].startswith("check: south.csv, column 'weight': its numbers are 996 times as large as the others'")
        assert "check:" not in gramfold(command, "heads/local/north.safetensors", "h/south.csv")[2]


def test_features_are_checked_too(gramfold, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(5, 1, (120, 3))
    rows[40:80, 2] *= 1000
    np.savez(tmp_path / "f.npz", features=rows, labels=rng.integers(0, 2, 120), client=np.repeat(["a", "b", "c"], 40))
    code, out, _ = gramfold("check", "f.npz", "--json")
    assert code == 1
    assert [(each["client"], each["column"]) for each in json.loads(out)["findings"]] == [("b", "2")]


def test_what_cannot_be_checked_is_said(gramfold, tmp_path):
    assert gramfold("check", "nothing.csv")[0] == 2
    (tmp_path / "photos" / "red").mkdir(parents=True)
    (tmp_path / "photos" / "red" / "1.png").write_bytes(b"")
    code, _, err = gramfold("check", "photos")
    assert code == 2
    assert "holds images" in err or "no images" in err


def test_a_federation_checks_itself(tmp_path):
    write(tmp_path / "h", wrong=True)
    dataset = gf.load_data(tmp_path / "h", label_column="ill")
    assert [each.column for each in Federation.from_dataset(dataset).check().serious] == ["weight"]
    drawn = Federation.from_dataset(dataset, 5, "iid").check()
    assert drawn.clients == (dataset.name,), "of a simulation the table is its owner's"
    assert Federation.from_dataset(digits(), 3).check().serious == ()


@pytest.mark.data
@pytest.mark.skipif(not HEART.is_dir(), reason="the development data is not here")
def test_the_four_hospitals(gramfold):
    code, out, _ = gramfold("check", str(HEART), "--label-column", "num > 0", "--json")
    found = json.loads(out)["findings"]
    assert code == 1
    serious = {(each["client"], each["column"], each["kind"]): each["what"] for each in found if each["level"] == "serious"}
    assert serious.keys() == {("switzerland", "chol", "gaps"), ("va", "chol", "gaps")}
    assert serious["switzerland", "chol", "gaps"].startswith("all 123 rows have 0, where other clients have 246.7")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        federation = Federation.from_clients(str(HEART), label_column="num > 0")
    assert {each.column for each in federation.check().serious} == {"chol"}
