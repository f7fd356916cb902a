"""`gramfold flower` and `gramfold run --engine flower` as a user meets them."""

import json
import subprocess
import sys
import tempfile
import tomllib

import numpy as np
import pytest

import gramfold as gf
from gramfold.report import render_page

REFUSALS = {
    "a folder that is there": (["flower", "new", "taken"], "taken exists; choose a new folder"),
    "no sites": (["flower", "new", "fresh", "--sites", ","], "name at least one site"),
    "a site twice": (["flower", "new", "fresh", "--sites", "a,b,a"], "none twice"),
    "a site that is no file name": (["flower", "new", "fresh", "--sites", "../a"], "is not a valid site name"),
    "no host": (["flower", "new", "fresh", "--server", "two words"], "not a host name"),
    "no port": (["flower", "new", "fresh", "--server", "host:none"], "write HOST or HOST:PORT"),
    "up in a folder that is there": (["flower", "up", "--out", "taken"], "taken exists; choose a new folder"),
    "up with too many sites": (["flower", "up", "--clients", "17"], "at most 16"),
    "up without data": (["flower", "up", "nowhere.npz"], "no such data file"),
    "a run with too many sites": (["run", "--engine", "flower"], "at most 16"),
    "a run on a GPU": (["run", "--engine", "flower", "--clients", "2", "--device", "cuda"], "does not support device"),
    "a run that would sweep": (
        ["run", "--engine", "flower", "--clients", "2", "--methods", "fedavg"],
        "fedavg would tune lr by trial",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_be_done_is_refused_in_one_line_before_anything_starts(what, gramfold, tmp_path):
    pytest.importorskip("flwr", reason="needs Flower")
    if "fedavg" in REFUSALS[what][0]:
        pytest.importorskip("torch", reason="FedAvg needs PyTorch")
    (tmp_path / "taken").mkdir()
    arguments, message = REFUSALS[what]
    code, out, err = gramfold(*arguments)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1, err
    assert err.startswith("error: ")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_new_writes_what_the_readme_speaks_of(gramfold, tmp_path):
    pytest.importorskip("flwr", reason="needs Flower")
    code, out, _ = gramfold("flower", "new", "ours", "--sites", "a,b", "--server", "federation.example.org")
    assert code == 0
    assert "README.md" in out
    project = tmp_path / "ours"
    readme = (project / "README.md").read_text()
    assert "flower-supernode --superlink federation.example.org:443 " in readme
    app = tomllib.loads((project / "server/app/pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert app["config"]["sites"] == "a,b"
    assert app["components"]["clientapp"] == "gramfold.engines.flower.client_app:app"
    site = tomllib.loads((project / "sites/b/site.toml").read_text())
    assert site == {"name": "b", "server": "federation.example.org:443", "loader": "loader.py:load", "state-dir": "state"}
    assert (project / "sites/b/ca.crt").read_text() == (project / "server/keys/ca.crt").read_text()
    nginx = (project / "server/nginx.conf").read_text()
    assert "listen 443 ssl;" in nginx
    assert f'ssl_certificate     "{project}/server/keys/server.crt";' in nginx


def test_a_sites_identity_is_made_once_and_only_its_public_half_is_printed(gramfold, tmp_path):
    pytest.importorskip("cryptography", reason="needs the extra secure")
    (code, one, _), (_, two, _) = (gramfold("flower", "identity", "state") for _ in range(2))
    assert (code, one) == (0, two)
    assert one == (tmp_path / "state" / "identity.pub").read_text()
    assert one.strip() != (tmp_path / "state" / "identity.key").read_bytes().hex()
    assert (tmp_path / "state" / "identity.key").stat().st_mode & 0o777 == 0o600


def test_without_flower_there_is_one_line(tmp_path):
    """A process in which flwr cannot be found."""
    script = """
import sys, importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "flwr" else find(name, *more)
from gramfold.cli.main import main
main()
"""
    for arguments in (["flower", "up"], ["flower", "new", "x"], ["run", "--engine", "flower", "--clients", "2"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.strip() == "error: this needs Flower: pip install 'gramfold[flower]'"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_on_flower_has_the_form_of_any_other_and_leaves_nothing(gramfold, tmp_path, monkeypatch):
    pytest.importorskip("flwr", reason="needs Flower")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    arguments = ["run", "--clients", "2", "--methods", "afl", "--random-state", "5", "--json"]
    code, out, _ = gramfold(*arguments, "--engine", "flower", "--out", "there", "--heads", "heads")
    assert code == 0
    assert list((tmp_path / "temporary").iterdir()) == []
    there, here = json.loads(out), json.loads(gramfold(*arguments, "--out", "here")[1])
    assert there["engine"] == "flower"
    assert there == json.loads((tmp_path / "there" / "result.json").read_text())
    assert set(there) == set(here)
    mine, theirs = here["methods"][0], there["methods"][0]
    assert set(mine) - {"bootstrap"} == set(theirs)  # resampled figures stay where the samples are
    # figures are a release: they leave a site rounded to their standard error, of a few hundred samples less than 0.02
    for sent, known in zip(theirs["clients"], mine["clients"], strict=True):
        assert [sent[key] for key in ("name", "train", "test")] == [known[key] for key in ("name", "train", "test")]
        assert sent["accuracy"] == pytest.approx(known["accuracy"], abs=0.02)
    assert theirs["global_accuracy"] == pytest.approx(mine["global_accuracy"], abs=0.02)
    assert (tmp_path / "there" / "report.html").read_text() == render_page(there)
    X = np.random.default_rng(0).uniform(0, 16, (5, 64))
    federation = gf.Federation.from_dataset(gf.federation.digits(), clients=2, random_state=5)
    heads = gf.run(gf.AFL(), federation).heads
    for name, head in heads.items():
        saved = gf.load_head(tmp_path / "heads" / "afl" / f"{name}.safetensors")
        np.testing.assert_allclose(saved.scores(X), head.scores(X), rtol=1e-9, atol=1e-9)
