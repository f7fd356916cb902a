"""extract, run --backbone, predict: from a folder or a table to a table of classes."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import gramfold as gf
from gramfold.federation import load_npz
from raw_cases import write_function, write_photos

pytest.importorskip("PIL", reason="images need pillow")


@pytest.fixture
def colours(tmp_path, monkeypatch) -> str:
    monkeypatch.setenv("GRAMFOLD_CACHE", str(tmp_path / "cache"))
    return f"python:{write_function(tmp_path)}:colours"


def rows_of(path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_extract_then_run_is_run_in_one_go(gramfold, colours, tmp_path):
    write_photos(tmp_path / "photos", 60)
    code, out, err = gramfold("extract", "photos", "--backbone", colours, "--out", "f.npz")
    assert (code, out.startswith("f.npz: 60 samples of 54 numbers, 3 classes, from backbone python:")) == (0, True), err
    assert "60 images, 60 computed in" in err
    assert "images a second" in err
    usual = ["--clients", "3", "--partition", "iid", "--methods", "pace"]
    assert gramfold("run", "f.npz", *usual, "--out", "one", "--heads", "heads")[0] == 0
    code, _, err = gramfold("run", "photos", "--backbone", colours, *usual, "--out", "two")
    assert code == 0, err
    assert "60 images, 0 computed" in err
    one, two = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("one", "two"))
    assert one["methods"][0]["mean_accuracy"] == two["methods"][0]["mean_accuracy"] > 0.9
    assert one["data"]["origin"].startswith("backbone python:")
    head = gf.load_head(tmp_path / "heads" / "pace" / "1.safetensors")
    assert head.origin == load_npz(tmp_path / "f.npz").origin


def test_a_table_of_prices(gramfold, tmp_path):
    lines = [f"{i // 4},{'ab'[i % 2]},{i / 4}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["size,town,price", *lines]))
    usual = ["t.csv", "--label-column", "price", "--client-column", "town", "--methods", "pace", "--out", "here"]
    assert "(--regression)" in gramfold("run", *usual)[2]
    code, out, err = gramfold("run", *usual, "--regression", "--heads", "heads")
    assert (code, "RMSE" in out) == (0, True), err
    code, out, err = gramfold("predict", "heads/pace/a.safetensors", "t.csv")
    assert (code, out, err) == (0, "predictions.csv: 40 samples\n", ""), "nothing is said of an extraction where there is none"
    assert all(abs(float(row["value"]) - i / 4) < 1 for i, row in enumerate(rows_of(tmp_path / "predictions.csv")))
    code, out, _ = gramfold("extract", "t.csv", "--label-column", "price", "--regression", "--out", "t.npz")
    assert out.startswith("t.npz: 40 samples of 3 numbers, 1 targets, from table")
    assert load_npz(tmp_path / "t.npz", regression=True).targets[5].tolist() == [1.25]


def test_predict_says_what_is_wrong(gramfold, federation, tmp_path):
    gf.run("afl", federation).heads["1"].save(tmp_path / "head.safetensors")
    np.savez(tmp_path / "none.npz", features=np.zeros((0, 8)))
    wrong = {
        ("head.safetensors", "nowhere"): "no such data: nowhere",
        ("head.safetensors", "none.npz"): "none.npz holds no samples",
        ("none.npz", "none.npz"): "none.npz: not a gramfold message, or a damaged file: it is cut off",
    }
    for given, words in wrong.items():
        assert gramfold("predict", *given) == (2, "", f"error: {words}\n")


def test_help_says_what_arguments_are(gramfold):
    code, out, _ = gramfold("predict", "--help")
    assert code == 0
    assert "A head's file" in out


def test_a_card_lies_beside_every_head(gramfold, colours, tmp_path):
    write_photos(tmp_path / "photos", 60, clients=("north", "south"))
    gramfold("run", "photos", "--backbone", colours, "--methods", "pace,afl", "--heads", "heads")
    card = json.loads((tmp_path / "heads" / "pace" / "north.card.json").read_text())
    assert (card["method"], card["whose"], card["classes"]) == ("pace", "client north", ["blue", "green", "red"])
    assert card["data"]["training_samples"] + card["data"]["test_samples"] == 30
    assert card["figures"]["test_accuracy"] is not None
    assert card["figures"]["leave_one_out_accuracy"] is not None
    assert card["figures"]["test_calibration_error"] is not None
    assert "exact moments" in card["privacy"]
    other = json.loads((tmp_path / "heads" / "pace" / "south.card.json").read_text())
    assert card["federation"]["version"] == other["federation"]["version"]
    assert card["origin"]["name"] == colours
    page = (tmp_path / "heads" / "afl" / "south.card.md").read_text()
    assert page.startswith("# A head for client south\n")
    assert "| privacy | exact moments" in page


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict_writes_classes_and_probabilities(ending, gramfold, colours, tmp_path):
    write_photos(tmp_path / "photos", 60)
    gramfold("run", "photos", "--backbone", colours, "--clients", "2", "--methods", "pace", "--heads", "h")
    write_photos(tmp_path / "new", 9)
    (tmp_path / "new" / "red" / "broken.png").write_bytes(b"")
    ask = ["predict", "h/pace/0.safetensors", "new", "--backbone", colours, "--out", f"p.{ending}"]
    code, _, err = gramfold(*ask)
    assert code == 2
    assert "broken.png cannot be read as an image" in err
    code, out, err = gramfold(*ask, "--unreadable", "skip", "--every-class")
    assert (code, out) == (0, f"p.{ending}: 9 samples\n"), err
    assert "it is skipped" in err
    if ending == "csv":
        rows = rows_of(tmp_path / "p.csv")
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "p.parquet").to_pylist()
    assert sum(row["class"] in row["sample"] for row in rows) >= 8, "the folder's name is the class"
    for row in rows:
        shares = [float(row[f"probability of {name}"]) for name in ("red", "green", "blue")]
        assert sum(shares) == pytest.approx(1)
        assert max(shares) == float(row["probability"])


def test_predict_of_features_and_features_of_another_backbone(gramfold, colours, tmp_path):
    write_photos(tmp_path / "photos", 30)
    gramfold("extract", "photos", "--backbone", colours, "--out", "f.npz")
    gramfold("run", "f.npz", "--clients", "2", "--partition", "iid", "--methods", "pace", "--heads", "h")
    assert gramfold("predict", "h/pace/0.safetensors", "f.npz")[0] == 0
    head, data = gf.load_head(tmp_path / "h" / "pace" / "0.safetensors"), load_npz(tmp_path / "f.npz")
    assert [row["class"] for row in rows_of(tmp_path / "predictions.csv")] == head.predict(data.inputs).tolist()
    changed = tmp_path / "own_backbone.py"
    changed.write_text(changed.read_text().replace("/ 255", "/ 256"))
    gramfold("extract", "photos", "--backbone", colours, "--out", "other.npz")
    code, _, err = gramfold("predict", "h/pace/0.safetensors", "other.npz")
    assert code == 2
    assert err.splitlines()[-1].startswith("error: other.npz comes from backbone python:")
    assert "but this head was made for backbone python:" in err
    code, _, err = gramfold("predict", "h/pace/0.safetensors", "photos", "--backbone", colours)
    assert "as it is here comes from" in err
    assert "come from code" in gramfold("predict", "h/pace/0.safetensors", "photos")[2]
    np.savez(tmp_path / "narrow.npz", features=np.zeros((2, 5)), labels=np.zeros(2))
    assert "expected rows of 54 numbers" in gramfold("predict", "h/pace/0.safetensors", "narrow.npz")[2]


def test_a_table_needs_no_backbone(gramfold, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["age,sex,hospital,sick"]
    for i in range(90):
        age, sex = rng.normal(50, 12), "fm"[rng.integers(2)]
        sick = "yes" if age + 8 * (sex == "m") > 54 else "no"
        lines.append(f"{'' if i % 9 == 0 else round(age, 1)},{sex},{'abc'[i % 3]},{sick}")
    (tmp_path / "patients.csv").write_text("\n".join(lines))
    usual = ["--label-column", "sick", "--methods", "pace,afl", "--heads", "h"]
    code, _, err = gramfold("run", "patients.csv", *usual)
    assert code == 0, err
    result = json.loads((tmp_path / "gramfold-run" / "result.json").read_text())
    assert result["partition"] == {"kind": "natural", "clients": 3, "dropped": 0, "min_size": 2}
    assert result["data"]["inputs"] == 4, "age, whether it is missing, and two of sex"
    assert result["methods"][0]["mean_accuracy"] > 0.75
    (tmp_path / "new.csv").write_text("sex,age,label,client\nm,80,,\nf,30,,\n,,,\n")  # what is not known yet is not looked at
    code, _, err = gramfold("predict", "h/pace/a.safetensors", "new.csv")
    assert code == 0, err
    assert [row["class"] for row in rows_of(tmp_path / "predictions.csv")][:2] == ["yes", "no"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["extract", "photos"], "name a backbone for them, such as --backbone dinov2s"),
        (["extract", "photos", "--backbone", "vgg"], "unknown backbone 'vgg'; known: dinov2s"),
        (["extract", "empty", "--backbone", "COLOURS"], "empty holds no images"),
        (["extract", "photos", "--backbone", "COLOURS", "--out", "f.csv"], "must end in .npz"),
        (["extract", "photos", "--backbone", "COLOURS", "--unreadable", "maybe"], "unreadable must be 'fail' or 'skip'"),
        (["predict", "nowhere", "photos"], "cannot read nowhere"),
        (["run", "t.csv", "--label-column", "nope"], "t.csv has no column 'nope'; it has: x, label"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_mistakes_are_one_line(arguments, words, gramfold, colours, tmp_path):
    write_photos(tmp_path / "photos", 6)
    (tmp_path / "empty").mkdir()
    (tmp_path / "t.csv").write_text("x,label\n1,a\n")
    code, _, err = gramfold(*[colours if word == "COLOURS" else word for word in arguments])
    assert code == 2
    assert words in err.splitlines()[-1]


def test_importing_gramfold_imports_none_of_it():
    script = """
import sys, gramfold
print([name for name in sys.modules if name.startswith(("gramfold.backbones", "gramfold.extraction"))])
import gramfold.cli.main
heavy = {"PIL", "onnx", "onnxruntime", "transformers", "torch", "pyarrow", "pandas", "starlette", "uvicorn", "sklearn",
         "scipy.stats", "scipy.optimize"}
print(sorted(heavy & set(sys.modules)))
fresh = [name for name in sys.modules if name.startswith(("gramfold.export", "gramfold.serving"))]
print(fresh)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]", "[]"]
