"""Whoever is forgotten is gone: out of the sum, the files and later runs, with a receipt."""

import json
from typing import Any

import pytest

import gramfold as gf
from flower_cases import PACE, Sites
from gramfold.errors import GramfoldError
from gramfold.remote.erasure import forget

GONE = "2"


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def others(sites: Sites) -> dict[str, Any]:
    return {name: sites.node(name) for name in sites.names if name != GONE}


@pytest.mark.parametrize("method", [gf.AFL(), gf.FedHiP(at="server")], ids=repr)
def test_a_site_that_is_forgotten_is_in_nothing_that_follows(method, sites):
    sites.run(method)
    out = sites.folder / "out"
    receipt = forget(out, GONE)
    samples = next(client for client in sites.federation if client.name == GONE).train().n
    assert (receipt["site"], len(receipt["sha256"]), receipt["samples"]) == (GONE, 64, samples)
    written = json.loads((out / "forgotten.jsonl").read_text())
    assert {key: written[key] for key in receipt} == receipt
    anew = "made anew" if method.keeps_uploads else "begun anew"
    assert anew in receipt["sum"]
    left = {path.name for path in out.iterdir()}
    assert not left & {"run.safetensors", "shared.safetensors", "result.json", "report.html"}
    if method.keeps_uploads:
        assert len(list((out / "uploads").iterdir())) == 6
    result = sites.run(method, others(sites))
    assert GONE not in result["sites"]["folded"]
    assert sites.distance(method, gf.run(method, sites.without(GONE))) < 1e-9
    # nor is it taken in again
    again = sites.run(method)
    assert "it was forgotten on 20" in again["sites"]["excluded"][GONE]
    assert sites.distance(method, gf.run(method, sites.without(GONE))) < 1e-9


def test_after_forgetting_one_the_next_sum_is_released_only_if_the_operator_says_so(sites):
    """The two differ by what was forgotten."""
    sites.run(PACE)
    forget(sites.folder / "out", GONE)
    with pytest.raises(GramfoldError, match="has changed by 2 only"):
        sites.run(PACE, others(sites), **{"release-sites": 3})


def test_a_site_that_is_not_there_cannot_be_forgotten(sites, tmp_path):
    sites.run(gf.AFL())
    with pytest.raises(GramfoldError, match=r"nothing of site 'north' is in .*; there are: 0, 1, 2"):
        forget(sites.folder / "out", "north")
    with pytest.raises(GramfoldError, match="no folder"):
        forget(tmp_path / "nowhere", "2")


def test_the_command_prints_the_receipt(sites, gramfold):
    sites.run(gf.AFL())
    code, out, _ = gramfold("flower", "forget", GONE, "--out", str(sites.folder / "out"))
    assert (code, json.loads(out)["site"]) == (0, GONE)
    assert gramfold("flower", "forget", GONE, "--out", str(sites.folder / "out"))[0] == 2


def test_the_outcome_of_a_run_is_an_exit_code(sites, gramfold):
    out = sites.folder / "out"
    sites.run(gf.AFL())
    code, text, _ = gramfold("flower", "outcome", str(out))
    assert (code, text) == (0, "7 sites have their heads: 0, 1, 2, 3, 4, 5, 6\n")
    with pytest.raises(GramfoldError):
        sites.run(gf.AFL(), **{"minimum-sites": 8, "deadline-seconds": 0.1, "sites": "north"})
    code, _, error = gramfold("flower", "outcome", str(out))
    assert code == 2
    assert "not connected: north" in error


def test_a_run_that_was_killed_has_not_succeeded(sites, gramfold, monkeypatch):
    sites.run(gf.AFL())

    def killed(*_: object) -> None:
        raise SystemExit

    monkeypatch.setattr("gramfold.remote.run.write_page", killed)
    with pytest.raises(SystemExit):
        sites.run(gf.AFL())
    code, _, error = gramfold("flower", "outcome", str(sites.folder / "out"))
    assert code == 2
    assert "ended without a word" in error
