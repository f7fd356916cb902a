"""PACE whose numbers travel in fewer bits: close to itself, the same on every engine, and within its budget."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.federation import Task

PRECISIONS = ("float32", "float16", "int8")


@pytest.fixture(scope="module")
def federation() -> gf.Federation:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, 900)
    X = rng.standard_normal((12, 24))[y] + 0.8 * rng.standard_normal((900, 24))
    return gf.Federation.split(X, y, clients=6, partition="dirichlet:0.5", random_state=0)


@pytest.mark.parametrize("features", ["bias+linear+fourier:256:0.5", "rows+bias+linear+fourier:256@learned"])
def test_fewer_bits_change_little_and_are_reported(federation, features):
    def run(precision: str | None) -> gf.Result:
        return gf.run(gf.PACE(features=features, regime="sketch", precision=precision), federation)

    exact = run(None)
    assert "rounding" not in exact.chosen
    samples = np.concatenate([client.test().inputs for client in federation])
    bytes_, wanted = exact.uplink_bytes + exact.downlink_bytes, exact.global_head.predict_proba(samples)
    for precision, close in zip(PRECISIONS, (1e-5, 0.01, 0.05), strict=True):
        less = run(precision)
        assert 0 < less.chosen["rounding"] < 0.1
        assert np.abs(less.global_head.predict_proba(samples) - wanted).mean() < close
        assert abs(less.mean_accuracy - exact.mean_accuracy) < 0.02
        sent = less.uplink_bytes + less.downlink_bytes
        assert sent < bytes_
        bytes_ = sent


def test_rounded_samples_do_not_come_and_go(federation):
    result = gf.run(gf.PACE(features="bias+linear", precision="float16"), federation)
    first = federation.clients[0]
    with pytest.raises(gf.GramfoldError, match="exactly"):
        result.forget(first.train().inputs, first.train().targets, first.name)


def test_a_budget_is_kept_by_rounding_before_features_are_given_up():
    task = Task(768, tuple(range(100)), 100, 0, 50_000)
    budgets = ("1MB", "5MB", "20MB", "100MB", "2GB", "6GB")
    found = {budget: gf.PACE(budget=budget, memory=2**35).settled(task) for budget in budgets}
    assert "learned" not in found["1MB"].features
    assert "learned" in found["5MB"].features
    sizes = [int(found[b].features.split(":")[1].split("@")[0]) for b in ("5MB", "20MB", "100MB", "2GB", "6GB")]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 25_000
    assert (found["5MB"].precision, found["2GB"].precision, found["6GB"].precision) == ("int8", "float32", "float64")
    assert gf.PACE(budget="20MB", precision="float64").settled(task).precision == "float64"
    assert gf.PACE(budget="20MB").settled(task, once=True).precision == "float64", "a sum that is kept is exact"
    with pytest.raises(gf.GramfoldError, match="float16"):
        gf.PACE(precision="half")
