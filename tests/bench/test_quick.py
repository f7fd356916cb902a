"""Smoke runs of the benches, through the command."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from gramfold.bench import open_bench, published

pytest.importorskip("torch")


def test_apfl(gramfold):
    code, out, _ = gramfold("bench", "apfl", "--quick", "--json", "--set", 'rivals=["fedavg", "fedavg-ft", "ditto"]')
    assert code == 0
    content = json.loads(out)
    titles = [table["title"] for table in content["tables"]]
    assert titles[:4] == ["Accuracy, 5 clients", "Accuracy of the worst tenth of the clients, 5 clients",
                          "Ahead of the best rival", "Primary against dual stream"]  # fmt: skip
    assert {"APFL as published by lam", "Time that APFL saves", "Traffic that APFL saves"} <= set(titles)
    accuracy = {row[0]: row[1]["mean"] for row in content["tables"][0]["rows"]}
    assert accuracy["apfl as published"] > 80
    assert set(accuracy) == {"fedavg", "fedavg-ft", "ditto", "local", "afl", "fedhip", "apfl as published", "apfl", "pace"}
    lead = {row[0]: row[1]["mean"] for row in content["tables"][2]["rows"]}
    best = max(accuracy[name] for name in ("fedavg", "fedavg-ft", "ditto"))
    assert lead == {name: pytest.approx(accuracy[name] - best) for name in lead}
    assert len(lead) == 6
    heat = next(plot for plot in content["plots"] if plot["kind"] == "heat")
    assert heat["columns"] == ["relu", "tanh"]
    assert all(value > 50 for row in heat["values"] for value in row)
    # without the refinement's weight, the dual stream is the primary one
    streams = content["cells"]["sensitivity/lam/0"]
    assert streams["mean_accuracy"] == pytest.approx(streams["primary_accuracy"], abs=1e-12)


def test_fedhip(gramfold):
    code, out, err = gramfold("bench", "fedhip", "--quick", "--out", "here")
    assert code == 0
    assert "How far to personalise" in out
    assert "How far to personalise" in Path("here/report.html").read_text()
    assert "[23/23] rival/ditto/seed 0" in err
    code, out, err = gramfold("bench", "fedhip", "--quick", "--out", "here", "--json")
    assert (code, err) == (0, "")  # nothing is measured twice
    content = json.loads(out)
    cells = content["cells"]
    both = "mean_accuracy", "everywhere_accuracy"
    for figure in both:  # alpha 0 is AFL
        assert cells["alpha/0.0/seed 0"][figure] == pytest.approx(cells["alpha/afl/seed 0"][figure], abs=0.01)
    assert cells["alpha/100000.0/seed 0"]["everywhere_accuracy"] < cells["alpha/0.0/seed 0"]["everywhere_accuracy"] - 0.1
    assert [table["title"] for table in content["tables"]] == [
        "How far to personalise", "Gradient methods, at home and everywhere", "Clients that come late",
        "Labels that nobody shares", "Weaker features", "What FedHiP saves",
    ]  # fmt: skip


def test_heart_pfl(gramfold):
    code, out, _ = gramfold("bench", "heart-pfl", "--quick", "--json")
    assert code == 0
    content = json.loads(out)
    assert [table["title"] for table in content["tables"]] == [
        "HEART-PFL and its rivals, from the same network", "Its parts, seed 0",
        "Frozen features of the same network, in closed form",
    ]  # fmt: skip
    assert [row[0] for row in content["tables"][0]["rows"]] == [
        "heart-pfl", "heart-pfl without HDA, AKT", "local-sgd", "fedavg-ft",
    ]  # fmt: skip
    whole = content["cells"]["heart-pfl/seed 0"]
    assert whole["hda_gradient"] > 0
    assert whole["akt_kept"] in (0, 1)
    assert content["cells"]["heart-pfl -HDA -AKT/seed 0"]["hda_gradient"] is None
    frozen = {row[0]: row[1]["mean"] for row in content["tables"][2]["rows"]}
    assert frozen["pace"] > frozen["afl"]


def test_parts_are_compared_over_seeds_that_all_rows_have():
    made = open_bench("heart-pfl")
    options = made.options({}, (0, 1), quick=True)
    accuracies = {
        "heart-pfl/seed 0": 0.8, "heart-pfl/seed 1": 0.9, "heart-pfl -HDA -AKT/seed 0": 0.7, "heart-pfl -HDA -AKT/seed 1": 0.6,
        "heart-pfl -adapters/seed 0": 0.5,
    }  # fmt: skip
    found = {key: {"mean_accuracy": share, "history": []} for key, share in accuracies.items()}
    both, first = (table for table in made.tables(found, options) if table["title"].startswith("Its parts"))
    assert (both["title"], first["title"]) == ("Its parts, seeds 0, 1", "Its parts, seed 0")
    assert [row[:3] for row in both["rows"]] == [["yes", "yes", "yes"], ["no", "no", "yes"]]
    assert both["rows"][0][4]["mean"] == pytest.approx(20)
    assert both["rows"][1][4] is None
    assert [row[3]["mean"] for row in first["rows"]] == pytest.approx([80, 50, 70])


def test_leaderboard(gramfold):
    code, out, _ = gramfold("bench", "leaderboard", "--quick", "--json")
    assert code == 0
    first, *_, table = json.loads(out)["tables"]
    assert (first["title"], table["title"]) == ("digits: 20 clients, dirichlet:0.1", "breast cancer: 8 clients, dirichlet:1")
    assert {row[0] for row in table["rows"]} == {"local", "afl", "pace", "fedavg"}
    means = [row[1]["mean"] for row in first["rows"]]
    assert means == sorted(means, reverse=True)
    assert first["rows"][0][0] == "pace"


def test_fedacnnl(gramfold):
    pytest.importorskip("torch", reason="networks need PyTorch")
    code, out, _ = gramfold("bench", "fedacnnl", "--quick", "--seeds", "1", "--json")
    assert code == 0
    whole, shared, personal, saved = json.loads(out)["tables"]
    assert "1,348 training and 449 test images" in whole["note"]
    assert "200 training and 100 test images" in shared["note"]
    accuracy = {name: cell["mean"] for name, cell in shared["rows"]}
    assert accuracy["fedacnnl conv:4:3+relu+max:2+dense:8+relu"] > 60
    assert {"fedacnnl convex", "fedavg", "fedzo"} < set(accuracy)
    assert [row[0].partition(" ")[0] for row in personal["rows"]] == ["pacecnn", "pfedacnnl", "pfedacnnl"]
    assert len(saved["rows"]) == 4


def test_mistakes_are_one_line(gramfold):
    for arguments, message in (
        (["apfl"], "error: give the data: FILE.npz"),
        (["fedacnnl"], "error: give the data: mnist=FOLDER"),
        (["fedacnnl", "mnist=."], "error: . holds neither IDX files (MNIST, Fashion-MNIST) nor data_batch_1.png"),
        (["nothing"], "error: no bench is called 'nothing'"),
        (["apfl", "--set", "rounds"], "error: cannot read --set 'rounds'"),
        (["apfl", "--quick", "a.npz"], "error: no such data file: a.npz"),
        (["apfl", "a.npz", "b.npz"], "error: the data is given twice"),
        (["leaderboard", "--quick", "--only", "moon"], "error: no cell's key is like moon; there are "),
    ):
        code, _, err = gramfold("bench", *arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert err.startswith(message)


def test_published_figures_are_where_they_belong():
    assert all(len(row) == len(published.APFL_CELLS) for row in published.APFL_TABLE.values())
    assert published.apfl("apfl", 100, 1.0) == 58.38
    assert published.apfl("apfl", 20, 1.0) is None


def test_scale(gramfold):
    code, out, _ = gramfold("bench", "scale", "--quick", "--json", "--set", "growth=true", "--set", "clients=[200]")
    assert code == 0
    content = json.loads(out)
    assert [table["title"] for table in content["tables"]] == ["Clients", "By samples", "By features", "By classes"]
    for figures in content["cells"].values():
        assert figures["clients"] == 200
        assert figures["bytes_per_head"] > 500
        assert 0 < figures["read_milliseconds"] <= figures["slow_read_milliseconds"]
        assert figures["peak_megabytes"] > 50
        assert figures["cpu_seconds"] > 0
        assert figures["commit"]
    few, more = (content["cells"][f"samples/{n}"]["bytes_per_head"] for n in (5, 20))
    assert few < more


def test_speed(gramfold, tmp_path):
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(5), 30)
    np.savez(tmp_path / "schools.npz", features=rng.standard_normal((150, 4)), targets=rng.standard_normal(150), client=who)
    asked = ["bench", "speed", "--quick", "--out", "here", "--json"]
    code, out, _ = gramfold(*asked, f"schools={tmp_path / 'schools.npz'}")
    assert code == 0
    content = json.loads(out)
    cells = content["cells"]
    assert list(cells) == ["machine", "apfl", "pace linear", "pace", "small clients", "schools"]
    for name in ("apfl", "pace linear", "pace", "schools"):
        found = cells[name]
        assert found["ratio"] == pytest.approx(found["seconds"] / found["rival_seconds"])
        assert found["limit_share"] > 0
        assert found["fold_ratio"] > 1
        assert found["work"]["features"] > 0
    assert cells["small clients"]["clients_per_second"] == pytest.approx(8 / cells["small clients"]["seconds"])
    assert [row[0] for row in content["tables"][0]["rows"]] == list(cells)[1:]
    # work that was counted is compared, too
    before = copy.deepcopy(content)
    before["cells"]["apfl"]["work"]["factorisations"] //= 2
    Path("before.json").write_text(json.dumps(before))
    code, out, _ = gramfold(*asked[:-1], f"schools={tmp_path / 'schools.npz'}", "--compare", "before.json")
    assert code == 0
    assert "apfl, counted factorisations: " in out
    assert "pace, " not in out.partition("Compared with")[2]


def test_memory(gramfold):
    code, out, _ = gramfold("bench", "memory", "--quick", "--json")
    assert code == 0
    cells = json.loads(out)["cells"]
    assert list(cells) == ["afl", "pace linear"]
    for found in cells.values():
        assert found["data_megabytes"] == pytest.approx(400 * 16 * 4 / 1e6, rel=0.01)
        assert 0 <= found["run_megabytes"] < found["peak_megabytes"]


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])  # the latter is PyTorch's
def test_gpu(gramfold, device):
    code, out, _ = gramfold("bench", "gpu", "--quick", "--json", "--device", device)
    assert code == 0
    content = json.loads(out)
    fold = content["cells"]["fold"]
    assert fold["width"] == 1 + 12 + 50
    assert fold["limit_share"] > 0
    assert [row[0] for row in content["tables"][0]["rows"]] == ["apfl", "pace linear", "fold"]
    assert len(content["tables"][1]["rows"]) == 8
    assert all(difference < 1e-9 for _, difference in content["tables"][1]["rows"])
