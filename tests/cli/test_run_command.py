"""`gramfold run` as a user meets it: what it writes, what it prints, and how it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf


def npz(path: Path, **content: np.ndarray) -> str:
    rng = np.random.default_rng(0)
    base = {"features": rng.standard_normal((60, 4)), "labels": np.arange(60) % 3}
    np.savez(path, **{key: value for key, value in {**base, **content}.items() if value is not None})
    return str(path)


def test_a_run_writes_the_documented_result_and_a_page(gramfold, tmp_path):
    code, out, _ = gramfold("run", "--clients", "6", "--methods", "local,afl,apfl", "--random-state", "3", "--out", "here")
    assert code == 0
    assert "apfl" in out
    assert "report.html" in out
    result = json.loads((tmp_path / "here" / "result.json").read_text())
    assert (result["gramfold"], result["seed"]) == (gf.__version__, 3)
    assert result["partition"]["clients"] == 6
    assert [method["name"] for method in result["methods"]] == ["local", "afl", "apfl"]
    for method in result["methods"]:
        assert {"name", "parameters", "rounds", "mean_accuracy", "weighted_accuracy", "worst_decile_accuracy", "global_accuracy",
                "uplink_bytes", "downlink_bytes", "seconds", "clients"} <= set(method)  # fmt: skip
        assert set(method["seconds"]) == {"features", "local", "aggregate", "personalize", "evaluate"}
        assert len(method["clients"]) == 6
        assert {"name", "train", "test", "accuracy", "uplink_bytes"} <= set(method["clients"][0])
        accuracies = [client["accuracy"] for client in method["clients"]]
        assert method["mean_accuracy"] == pytest.approx(np.mean(accuracies))
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["report.html", "result.json"]


def test_json_on_standard_output_is_the_file_and_nothing_else(gramfold, tmp_path):
    code, out, _ = gramfold("run", "--clients", "4", "--methods", "afl", "--json", "--out", "here")
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "here" / "result.json").read_text())


def test_the_same_command_gives_the_same_figures_and_may_overwrite_its_own_output(gramfold):
    def figures() -> list[float]:
        code, out, _ = gramfold("run", "--clients", "5", "--methods", "fedhip,apfl", "--json", "--out", "here")
        assert code == 0
        return [client["accuracy"] for method in json.loads(out)["methods"] for client in method["clients"]]

    assert figures() == figures()


def test_settings_reach_the_methods_and_saved_heads_can_be_loaded(gramfold, tmp_path):
    arguments = [
        "--clients",
        "3",
        "--methods",
        "afl,fedhip",
        "--set",
        "fedhip.alpha=0",
        "--features",
        "linear",
        "--heads",
        "heads",
    ]
    code, out, _ = gramfold("run", *arguments, "--json", "--out", "here")
    assert code == 0
    afl, fedhip = json.loads(out)["methods"]
    assert fedhip["parameters"]["alpha"] == 0
    assert afl["parameters"]["features"] == "linear"
    # alpha = 0 is AFL
    X = np.random.default_rng(0).standard_normal((5, 64))
    heads = [gf.load_head(tmp_path / "heads" / name / "0.safetensors") for name in ("afl", "fedhip")]
    np.testing.assert_allclose(heads[0].scores(X), heads[1].scores(X), rtol=1e-12)


def test_a_file_with_its_own_split_and_clients_is_cut_by_them(gramfold, tmp_path):
    train = np.arange(60) % 5 != 0
    owner = np.where(np.arange(60) < 30, "north", "south")
    path = npz(tmp_path / "sites.npz", train=train, client=owner)
    code, out, _ = gramfold("run", path, "--partition", "natural", "--methods", "afl", "--json", "--out", "here")
    assert code == 0
    clients = json.loads(out)["methods"][0]["clients"]
    assert [(client["name"], client["train"], client["test"]) for client in clients] == [("north", 24, 6), ("south", 24, 6)]


REFUSALS = {
    "missing file": (["nowhere.npz"], "no such data file"),
    "not an npz file": (["text.npz"], "not a readable .npz"),
    "wrong keys": (["keys.npz"], "needs `labels` and either"),
    "NaN features": (["nan.npz"], "sample 7 has NaN"),
    "negative label": (["negative.npz"], "labels out of range"),
    "label beyond the classes": (["beyond.npz"], "labels out of range"),
    "one class only": (["one.npz"], "at least two"),
    "images": (["images.npz", "--methods", "afl"], "extract features first"),
    "features for a network": (["--methods", "fedacnnl"], "digits holds features, which fedacnnl does not support"),
    "a network that does not fit": (
        ["digits-images", "--methods", "fedacnnl", "--set", "fedacnnl.network=conv:4:9"],
        "conv:4:9 does not fit",
    ),
    "images for one of the methods": (["images.npz", "--methods", "fedavg,afl"], "which afl does not support"),
    "features for heart-pfl": (["--methods", "heart-pfl"], "which heart-pfl does not support"),
    "checkpoint in a file": (["--methods", "fedavg", "--checkpoint", "text.npz"], "cannot make checkpoint folder"),
    "an empty client": (["good.npz", "--clients", "25", "--partition", "dirichlet:0.001"], "fewer than the minimum"),
    "a small natural client": (["single.npz", "--partition", "natural"], "client 'lonely' has 1 training sample"),
    "no client ids": (["good.npz", "--partition", "natural"], "needs the owner of each sample"),
    "more clients than samples": (["good.npz", "--clients", "61", "--min-size", "1"], "60 samples cannot give 61"),
    "no clients": (["--clients", "0"], "at least one client"),
    "unknown method": (["--methods", "afl,magic"], "unknown method 'magic'"),
    "no method": (["--methods", ","], "no method named"),
    "unknown partition": (["--partition", "pizza:8"], "unknown partition"),
    "bad partition value": (["--partition", "dirichlet:-1"], "cannot read partition"),
    "bad feature map": (["--features", "fourier:many"], "feature map term 'fourier:many'"),
    "unknown parameter": (["--methods", "afl", "--set", "afl.gamma=1"], "no parameter gamma"),
    "unreadable setting": (["--set", "afl"], "METHOD.NAME=VALUE"),
    "setting for an absent method": (["--methods", "afl", "--set", "apfl.lam=1"], "a method that is not run"),
    "unknown engine": (["--engine", "steam"], "unknown engine"),
    "unusable device": (["--device", "cuda:99"], "use device 'cpu'"),
    "test part": (["--test-size", "1.5"], "must lie in [0, 1)"),
    "unknown option": (["--speed", "9"], "No such option"),
    "not a number": (["--clients", "many"], "not a valid integer"),
    "output folder with other content": (["--out", "taken"], "contains other files (thesis.txt)"),
    "output is a file": (["--out", "text.npz"], "is a file"),
}


@pytest.fixture
def bad_inputs(tmp_path):
    rows, labels = np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 3
    npz(tmp_path / "good.npz")
    (tmp_path / "text.npz").write_text("hello")
    npz(tmp_path / "keys.npz", features=None, labels=None, x=rows)
    npz(tmp_path / "nan.npz", features=np.where(np.arange(60)[:, None] == 7, np.nan, rows))
    npz(tmp_path / "negative.npz", labels=labels - 1)
    npz(tmp_path / "beyond.npz", classes=np.array(["a", "b"]))
    npz(tmp_path / "one.npz", labels=labels * 0)
    npz(tmp_path / "images.npz", features=None, images=np.zeros((60, 8, 8, 3), np.uint8))
    npz(tmp_path / "single.npz", client=np.where(np.arange(60) == 0, "lonely", "many"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("years of work")


@pytest.mark.parametrize("what", REFUSALS)
@pytest.mark.usefixtures("bad_inputs")
def test_bad_input_gets_one_clear_line_and_exit_code_2(what, gramfold, tmp_path):
    arguments, message = REFUSALS[what]
    code, out, err = gramfold("run", *arguments, *([] if "--out" in arguments else ["--out", "fresh"]))
    lines = err.strip().splitlines()
    assert code == 2
    assert out == ""
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert not (tmp_path / "fresh").exists(), "nothing partial is left behind"


def test_the_installed_command_answers_as_a_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gramfold", "run", "nowhere.npz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: no such data file: nowhere.npz\n"


QUICK = ["--set", "fedavg.rounds=3", "--set", "fedavg.lr=0.1"]


def test_a_gradient_run_has_curves_and_goes_on_from_its_checkpoint(gramfold, tmp_path):
    pytest.importorskip("torch", reason="the gradient methods need PyTorch")
    arguments = ["run", "--clients", "4", "--methods", "afl,fedavg", *QUICK, "--evaluate-every", "1", "--checkpoint", "kept"]
    code, out, _ = gramfold(*arguments, "--json", "--out", "here", "--features", "linear")
    assert code == 0
    fedavg = json.loads(out)["methods"][1]
    assert [entry["round"] for entry in fedavg["history"]] == [1, 2, 3]
    assert "Round by round" in (tmp_path / "here" / "report.html").read_text()
    assert (tmp_path / "kept" / "fedavg.safetensors").exists()
    again = json.loads(gramfold(*arguments, "--json", "--out", "here", "--features", "linear")[1])["methods"][1]
    assert again["mean_accuracy"] == fedavg["mean_accuracy"]


def test_images_run_on_the_methods_that_take_them(gramfold, tmp_path):
    pytest.importorskip("torch", reason="the gradient methods need PyTorch")
    images = np.random.default_rng(0).integers(0, 255, (60, 8, 8, 3)).astype(np.uint8)
    path = npz(tmp_path / "images.npz", features=None, images=images)
    settings = [*QUICK, "--set", "fedavg.model=cnn:4"]
    code, out, _ = gramfold("run", path, "--clients", "3", "--methods", "fedavg", *settings, "--json", "--out", "here")
    assert code == 0
    assert json.loads(out)["methods"][0]["name"] == "fedavg"


def test_digits_as_images_run_on_all_methods_that_solve_networks(gramfold, tmp_path):
    pytest.importorskip("torch", reason="networks need PyTorch")
    network = "conv:4:3:6+relu+grid:2"
    settings = [f"{name}={network}" for name in ("fedacnnl.network", "pfedacnnl.network", "pacecnn.network")]
    arguments = [part for setting in settings for part in ("--set", setting)]
    code, out, _ = gramfold("run", "digits-images", "--clients", "3", *arguments, "--json", "--out", "here")
    assert code == 0
    ran = json.loads(out)["methods"]
    assert [(method["name"], method["rounds"]) for method in ran] == [("fedacnnl", 2), ("pfedacnnl", 3), ("pacecnn", 2)]
    assert all(method["mean_accuracy"] > 0.8 for method in ran)


def test_without_torch_gradient_methods_are_listed_and_refused_in_one_line(tmp_path):
    """A process in which torch cannot be imported."""
    script = """
import sys
class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
from gramfold.cli.main import main
main()
"""
    results = [
        subprocess.run([sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        for arguments in (["methods", "--json"], ["run", "--methods", "fedavg"])
    ]
    assert "fedavg" in {entry["name"] for entry in json.loads(results[0].stdout)}
    assert results[1].returncode == 2
    assert results[1].stderr.strip().splitlines()[-1] == "error: networks need PyTorch: install gramfold[torch]"


def test_importing_gramfold_does_not_import_torch():
    code = "import sys, gramfold; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_methods_lists_every_method_for_people_and_for_machines(gramfold):
    code, out, _ = gramfold("methods")
    assert code == 0
    assert "fedhip" in out
    code, out, _ = gramfold("methods", "--json")
    listed = {entry["name"]: entry for entry in json.loads(out)}
    assert listed["apfl"]["parameters"]["refinement"] == "relu:1024"
    assert all(entry["summary"] and entry["paper"] for entry in listed.values())


def test_help_and_version(gramfold):
    assert "closed form" in gramfold("--help")[1]
    assert gf.__version__ in gramfold("--version")[1]


def test_report_makes_the_page_again_and_refuses_what_is_no_result(gramfold, tmp_path):
    gramfold("run", "--clients", "3", "--methods", "afl", "--out", "here")
    page = (tmp_path / "here" / "report.html").read_text()
    assert gramfold("report", "here", "--out", "again.html")[0] == 0
    assert (tmp_path / "again.html").read_text() == page
    (tmp_path / "other.json").write_text('{"a": 1}')
    for wrong in ("other.json", "absent.json"):
        code, _, err = gramfold("report", wrong)
        assert code == 2
        assert len(err.strip().splitlines()) == 1


def test_a_private_run_says_so_and_refuses_what_cannot_be(gramfold, tmp_path):
    pytest.importorskip("cryptography", reason="a secure sum needs the package cryptography")
    common = ("run", "--clients", "5", "--partition", "iid", "--json")
    code, out, _ = gramfold(*common, "--methods", "afl,local", "--secure", "--dp-eps", "4", "--out", "here")
    assert code == 0
    private = json.loads(out)["methods"][0]["privacy"]
    assert (private["dp"]["eps"], private["dp"]["delta"], private["secure_sum"]["minimum"]) == (4, 1e-5, 3)
    for options, kind, why in (
        (("--secure", "--clients", "2"), "secure", "hide nobody"),
        (("--dp-eps", "0"), "privacy", "eps above 0"),
    ):
        code, out, err = gramfold(*common, "--methods", "afl", *options, "--out", "there")
        assert (code, json.loads(out)["error"]["code"]) == (2, kind)
        assert why in err


def test_label_counts_are_those_of_training_samples_and_hidden_by_protections(gramfold):
    arguments = ["run", "--clients", "3", "--methods", "afl", "--json", "--out", "here"]
    content = json.loads(gramfold(*arguments)[1])
    counted = {name: sum(mine.values()) for name, mine in content["labels"]["counts"].items()}
    assert counted == {client["name"]: client["train"] for client in content["methods"][0]["clients"]}
    assert json.loads(gramfold(*arguments, "--dp-eps", "5")[1])["labels"] is None
