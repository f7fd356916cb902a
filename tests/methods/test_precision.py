"""Runs whose numbers travel in fewer bits: close to themselves, the same on every engine, and within a budget."""

from dataclasses import replace

import numpy as np
import pytest

import gramfold as gf
from gramfold.federation import Task
from gramfold.wire import Packet
from gramfold.wire.digits import narrowed

PRECISIONS = ("float32", "float16", "int8")


@pytest.fixture(scope="module")
def federation() -> gf.Federation:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, 900)
    X = rng.standard_normal((12, 24))[y] + 0.8 * rng.standard_normal((900, 24))
    return gf.Federation.split(X, y, clients=6, partition="dirichlet:0.5", random_state=0)


METHODS = [
    gf.PACE(features="bias+linear+fourier:512:0.5", regime="sketch"),
    gf.PACE(features="rows+bias+linear+fourier:512@learned", regime="sketch"),
    gf.AFL(features="bias+linear+fourier:512:0.5"),
    gf.FedHiP(features="bias+linear+fourier:512:0.5", alpha=10.0),
]


@pytest.mark.parametrize("method", METHODS, ids=["PACE", "learned", "AFL", "FedHiP"])
def test_fewer_bits_change_little_and_are_reported(federation, method):
    def run(precision: str | None) -> gf.Result:
        return gf.run(method, federation, precision=precision)

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
    method = gf.PACE(features="bias+linear")
    result = gf.run(method, federation, precision="float16")
    first = federation.clients[0]
    with pytest.raises(gf.GramfoldError, match="float16"):
        result.forget(first.train().inputs, first.train().targets, first.name)
    for asked in ({"keep_total": True}, {"keep_clients": True}, {"secure": gf.SecureSum()}, {"dp": gf.DP(eps=8.0)}):
        with pytest.raises(gf.GramfoldError, match="precision"):
            gf.run(method, federation, precision="int8", **asked)


def test_a_precision_is_one_of_four(federation):
    with pytest.raises(gf.GramfoldError, match="float16"):
        gf.run(gf.AFL(), federation, precision="half")


def test_the_last_head_is_the_same_however_it_got_here(federation):
    """A head made of what a client has received, from the bytes, is the one made in process."""
    result = gf.run(METHODS[0], federation, precision="int8")
    client, run = federation.clients[0], result.run
    received = Packet.from_bytes(narrowed(run.broadcast.pack(), "int8").to_bytes())
    head = replace(run, broadcast=type(run.broadcast).unpack(received)).head(client.name, client.train())
    X = client.test().inputs
    np.testing.assert_array_equal(head.predict_proba(X), result.heads[client.name].predict_proba(X))


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
