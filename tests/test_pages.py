"""What pages say of figures: a lead counts with the prior, an estimate stands where it was kept, and what is missing is said."""

import pytest

from benchmarks import kept
from benchmarks.pages import data, fair, natural


@pytest.fixture
def cells(monkeypatch):
    """Two rivals and PACE on one cut, in two seeds of which PACE's estimate was kept in one."""
    start = "shares/50/0.1"
    ours = {0: {"plain": 0.80, "estimate_shares": 0.81}, 1: {"plain": 0.82}}
    rows = [
        {"cell": f"{start}/afl", "method": "afl", "by_seed": {0: {"plain": 0.6, "masked": 0.7, "with_prior": 0.75}}},
        {"cell": f"{start}/fedavg", "method": "fedavg", "by_seed": {0: {"plain": 0.7, "with_prior": 0.79}}},
        {"cell": f"{start}/pace", "method": "pace", "by_seed": ours},
    ]
    monkeypatch.setattr(fair, "load", lambda: {"rows": rows})


def test_a_lead_is_over_the_best_rival_with_the_prior_in_the_seeds_that_both_have(cells):
    assert fair.lead("shares", 50, 0.1) == (pytest.approx(1.0), "fedavg")
    assert fair.lead("shares", 50, 0.1, among=fair.CLOSED) == (pytest.approx(5.0), "afl")
    assert fair.lead("fresh", 50, 0.1) is None


def test_an_estimate_stands_below_its_model_in_the_cells_that_have_one(cells):
    lines = fair.table("shares", ("plain", "with_prior")).splitlines()
    assert lines[-2].startswith("| PACE | **81.0** | - |")
    assert lines[-1] == "| PACE's own estimate, without test images | 81.0 |  |  |  |  |  |"
    assert "estimate" not in fair.table("shares", names=("afl", "pace"), columns=[(100, 1.0)])


def test_what_no_rival_was_measured_on_says_so(monkeypatch):
    rows = [{"data": "a", "model": "AFL", "seed": 0, "rmse": 1.0, "release": "1"}]
    monkeypatch.setattr(kept, "load", lambda name: rows)
    assert natural.front().count("PACE is not measured yet.") == 2
    rows.append({"data": "a", "model": "PACE", "seed": 0, "rmse": 0.9, "release": "1"})
    assert "within 1 % / higher by more: Local 0 / 0 / 0, AFL 1 / 0 / 0," in natural.front()


def test_a_table_without_a_rival_that_belongs_there_says_so():
    row = {"data": "d", "cut": "iid", "clients": 2, "pace": 0.9, "estimate": 0.9}
    assert "LocalClasses was not among them" in data._missing_rivals([{**row, "rivals": {"AFL": {"mean": 0.8}}}])[0]
    assert data._missing_rivals([{**row, "rivals": {"LocalClasses": {"mean": 0.8}}}]) == []
    assert "the lead is +10.0 to +10.0" in data._by_kind([{**row, "rivals": {"AFL": {"mean": 0.8}}}])
