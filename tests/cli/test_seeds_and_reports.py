"""`gramfold run --seeds`, and `gramfold report` on several runs."""

import json

import numpy as np
import pytest

import gramfold as gf

QUICK = ("--clients", "4", "--partition", "dirichlet:0.5", "--methods", "afl,local")


def test_seeds_are_run_and_compared(gramfold, tmp_path):
    code, out, _ = gramfold("run", *QUICK, "--random-state", "2", "--seeds", "3", "--out", "here")
    assert code == 0
    assert "95 % CI" in out
    assert "comparison.tex" in out
    written = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert written == ["comparison.csv", "comparison.md", "comparison.tex", "report.html", "result.json"]
    content = json.loads((tmp_path / "here" / "result.json").read_text())
    assert [page["seed"] for page in content["seeds"]] == content["comparison"]["seeds"] == [2, 3, 4]
    afl = content["comparison"]["methods"][0]
    assert afl["values"] == [page["methods"][0]["mean_accuracy"] for page in content["seeds"]]
    assert afl["mean"] == pytest.approx(np.mean(afl["values"]))
    page = (tmp_path / "here" / "report.html").read_text()
    assert '"kind":"intervals"' in page
    assert "Seed 4" in page
    assert gramfold("report", "here", "--out", "again.html")[0] == 0
    assert (tmp_path / "again.html").read_text() == page


def test_each_seed_is_the_run_with_that_seed(gramfold, tmp_path):
    several = json.loads(gramfold("run", *QUICK, "--seeds", "2", "--json", "--out", "here")[1])
    one = json.loads(gramfold("run", *QUICK, "--random-state", "1", "--json", "--out", "here")[1])
    for left, right in zip(several["seeds"][1]["methods"], one["methods"], strict=True):
        assert left["clients"] == right["clients"]
    # the tables of the comparison that was there before are gone with it
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["report.html", "result.json"]


def test_heads_of_each_seed_are_apart(gramfold, tmp_path):
    assert gramfold("run", *QUICK, "--seeds", "2", "--heads", "heads", "--out", "here")[0] == 0
    assert gf.load_head(tmp_path / "heads" / "afl" / "seed-1" / "0.safetensors").labels == tuple(range(10))


def test_several_runs_on_one_page(gramfold, tmp_path):
    gramfold("run", *QUICK, "--out", "first")
    gramfold("run", *QUICK, "--seeds", "2", "--out", "second")
    code, out, _ = gramfold("report", "first", "second/result.json")
    assert (code, out) == (0, "wrote comparison.html\n")
    page = (tmp_path / "comparison.html").read_text()
    assert "first" in page
    assert "second" in page
    assert "\N{PLUS-MINUS SIGN}" in page
    assert page.count("<tr") == 1 + 4
    assert page.count('"kind":"strips"') == 2, "their clients are others"
    gramfold("run", *QUICK[:-1], "pace", "--out", "third")
    gramfold("report", "first", "third")
    page = (tmp_path / "comparison.html").read_text()
    assert page.count('"kind":"strips"') == 1, "the same clients: all methods in one figure"
    assert "third: pace" in page


def test_accuracies_and_errors_do_not_stand_side_by_side(gramfold, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    federation = gf.Federation.split(X, X @ rng.standard_normal(4), clients=3, partition="iid", regression=True)
    from gramfold.results.folder import page, write_page

    write_page(tmp_path / "errors", page([gf.run(gf.AFL(), federation)], seed=0, engine="inprocess", **federation.description))
    gramfold("run", *QUICK, "--out", "first")
    code, out, err = gramfold("report", "first", "errors")
    assert (code, out) == (2, "")
    assert err == "error: first has accuracies and errors errors of a regression; they cannot stand side by side\n"
    assert not (tmp_path / "comparison.html").exists()
    assert gramfold("report", "errors", "errors", "--out", "both.html")[0] == 0


@pytest.mark.parametrize("arguments", [("--seeds", "0"), ("--seeds", "many")])
def test_no_seeds_are_refused(gramfold, arguments):
    code, _, err = gramfold("run", *arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
