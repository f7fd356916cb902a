"""What a user names by FILE.py:NAME is run: data, a function that makes data, and a backbone."""

import json

import pytest

FILE = """
import gramfold as gf
import numpy as np
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 6))
images = torch.rand(60, 3, 2, 2)
labels = torch.arange(60) % 2
pictures = torch.utils.data.TensorDataset(images, labels)


def sites():
    half = images.flatten(1).numpy(), labels.numpy()
    return {"north": half, "south": half}


federation = gf.Federation.split(np.eye(20), np.arange(20) % 2, clients=2, partition="iid")


def broken():
    raise OSError("the disk is gone")
"""


@pytest.fixture
def mine(tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_data_and_backbone_by_their_place(gramfold, mine, tmp_path):
    out, cut = tmp_path / "out", ("--clients", "2", "--partition", "iid", "--cache", str(tmp_path / "cache"))
    code, _, err = gramfold("run", f"{mine}:pictures", "--backbone", f"{mine}:net", "--methods", "afl", *cut, "--out", str(out))
    assert code == 0, err
    data = json.loads((out / "result.json").read_text())["data"]
    assert data["inputs"] == 6
    assert "mine.py:net" in data["origin"]


def test_a_function_makes_clients(gramfold, mine, tmp_path):
    code, _, err = gramfold("run", f"{mine}:sites", "--methods", "afl", "--out", str(tmp_path / "out"))
    assert code == 0, err
    page = json.loads((tmp_path / "out/result.json").read_text())
    assert [client["name"] for client in page["methods"][0]["clients"]] == ["north", "south"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "cannot be imported: AttributeError"),
        ("broken", "failed: OSError: the disk is gone"),
        ("federation", "is a Federation, which is cut already"),
    ],
)
def test_what_goes_wrong_in_the_users_file_is_one_line(gramfold, mine, tmp_path, name, said):
    code, out, err = gramfold("run", f"{mine}:{name}", "--out", str(tmp_path / "out"))
    assert (code, out) == (2, "")
    assert err.startswith("error: data ")
    assert said in err
    assert err.count("\n") == 1


def test_a_file_without_a_name_in_it_is_told_to_name_one(gramfold, mine, tmp_path):
    code, _, err = gramfold("run", str(mine), "--out", str(tmp_path / "out"))
    assert code == 2
    assert f"{mine}:NAME" in err
