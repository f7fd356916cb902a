"""Runs under a secure sum give the heads of plain ones; with noise they say how much; methods that cannot refuse in words."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.errors import GramfoldError, OptionError, ResultError
from gramfold.federation import load_dataset
from gramfold.privacy import Privacy
from gramfold.sklearn_api.weights import weighted
from strategies import relative

pytest.importorskip("cryptography", reason="a secure sum needs the package cryptography")

SECURE = gf.SecureSum()
SMALL = {"refinement": "relu:64"}
ANALYTIC = {
    "afl": gf.AFL(),
    "localclasses": gf.LocalClasses(),
    "fedhip": gf.FedHiP(),
    "apfl": gf.APFL(**SMALL),
    "pace": gf.PACE(**SMALL),
    "pace-sketch": gf.PACE(**SMALL, features="bias+linear+fourier:256", regime="sketch"),
    "pace-raw": gf.PACE(**SMALL, features="raw+bias+linear"),
    "deepafl": gf.DeepAFL(depth=1, features="bias+linear+gelu:32", **SMALL),
}


def apart(one: gf.Result, other: gf.Result, federation: gf.Federation) -> float:
    """How far the clients' scores are apart, relative to the largest."""
    found = []
    for client in federation:
        X = client.test().inputs
        mine, theirs = (np.nan_to_num(np.asarray(result.heads[client.name].scores(X))) for result in (one, other))
        found.append(relative(mine, theirs))
    return max(found)


@pytest.mark.parametrize("name", ANALYTIC)
def test_heads_under_a_secure_sum_are_the_plain_ones(name, federation):
    method = ANALYTIC[name].settled(federation.task, masked=True)  # under masks the default has fewer features
    plain, secure = gf.run(method, federation), gf.run(method, federation, secure=SECURE)
    assert apart(secure, plain, federation) < 1e-9
    assert secure.mean_accuracy == plain.mean_accuracy
    assert secure.privacy == {"secure_sum": {"threshold": 2 / 3, "minimum": 3}}
    assert plain.privacy == {}
    assert min(client.uplink_bytes for client in secure.clients.values()) > 0
    assert len({client.uplink_bytes for client in secure.clients.values()}) <= 2  # bytes say nothing of samples, but for names


@pytest.mark.parametrize("method", [gf.FedAvg, gf.FedProx, gf.Ditto, gf.FedALA])
def test_methods_of_many_rounds_have_a_sum_in_every_round(method, federation):
    pytest.importorskip("torch", reason="gradient methods need PyTorch")
    made = method(rounds=3, lr=0.1, epochs=1, **({"mu": 0.1} if method is gf.FedProx else {}))
    made = method(**{**dict(made.parameters()), **{name: made.grids[name][0] for name in made.undecided}})
    plain, secure = gf.run(made, federation), gf.run(made, federation, secure=SECURE)
    assert apart(secure, plain, federation) < 1e-4  # float32 models; sums in float64 and in fixed point
    assert len(secure.history) == 3


def test_a_network_of_convolutions_is_solved_under_a_secure_sum():
    pytest.importorskip("torch", reason="convolutions need PyTorch")
    images = load_dataset("digits-images")
    few = gf.Federation.from_dataset(images, 4, "iid", 0.25, 0)
    method = gf.FedACnnL(network="conv:4:3:8+split:0.4+grid:2")
    assert apart(gf.run(method, few, secure=SECURE), gf.run(method, few), few) < 1e-9
    with pytest.raises(GramfoldError, match="needs each client's upload"):
        gf.run(gf.PFedACnnL(network="conv:4:3:8+split:0.4+grid:2"), few, secure=SECURE)


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (gf.FedHiP(at="server"), "from its own upload"),
        (gf.FedAvg(rounds=2), "would tune lr"),
    ],
)
def test_methods_that_need_more_than_a_sum_refuse_in_words(method, why, federation):
    with pytest.raises(GramfoldError, match=why):
        gf.run(method, federation, secure=SECURE)


def test_two_clients_cannot_hide_from_each_other(blobs):
    two = gf.Federation.split(*blobs, clients=2, partition="iid", random_state=0)
    with pytest.raises(GramfoldError, match="hide nobody"):
        gf.run(gf.AFL(), two, secure=SECURE)


def test_weights_are_in_the_sum_too(federation, rng):
    made = weighted(federation, {client.name: rng.uniform(0.5, 3, client.train().n) for client in federation})
    plain, secure = gf.run(gf.AFL(), made), gf.run(gf.AFL(), made, secure=SECURE)
    assert apart(secure, plain, made) < 1e-9
    assert secure.run.total.weight == pytest.approx(plain.run.total.weight, rel=1e-12) != secure.run.total.n


def test_a_sum_of_fewer_samples_than_features_is_warned_of(federation):
    with pytest.warns(UserWarning, match="can be taken apart"):
        gf.run(gf.AFL(features="bias+linear+fourier:512"), federation, secure=SECURE)


# --- noise ---


@pytest.mark.parametrize("secure", [None, SECURE])
@pytest.mark.parametrize("method", [gf.AFL(), gf.PACE(features="bias+linear", **SMALL), gf.FedHiP(), gf.APFL(**SMALL)])
def test_noise_is_stated_and_vanishes_as_eps_grows(method, secure, federation):
    plain, noisy = gf.run(method, federation), gf.run(method, federation, secure=secure, dp=gf.DP(eps=1e7))
    assert noisy.mean_accuracy == pytest.approx(plain.mean_accuracy, abs=0.05)
    stated = noisy.privacy["dp"]
    assert (stated["eps"], stated["delta"]) == (1e7, 1e-5)
    assert "not the figures" in stated["covers"]
    assert stated["noise"] == ("each client's upload" if secure is None else "the sum of the uploads")
    X, y = federation.clients[0].train()[:2]
    with pytest.raises(ResultError):
        noisy.forget(X, y, federation.clients[0].name)


def test_a_plain_run_is_not_gone_on_with_as_a_secure_one(federation, tmp_path):
    gf.run(gf.AFL(), federation, checkpoint=tmp_path)
    with pytest.raises(GramfoldError, match="other data or settings"):
        gf.run(gf.AFL(), federation, checkpoint=tmp_path, secure=SECURE)
    with pytest.raises(OptionError):
        gf.run(gf.AFL(), federation, device="meta", secure=SECURE)


def test_pace_stays_calibrated_under_noise():
    digits = gf.Federation.from_dataset(load_dataset("digits"), 10, "dirichlet:0.5", 0.25, 0)
    method = gf.PACE(features="bias+linear", **SMALL)
    errors = [gf.run(method, digits, secure=SECURE, dp=gf.DP(eps=eps)).calibration_error for eps in (2, 8)]
    assert max(errors) < 0.1  # of some 450 test samples, noise drawn anew each time; measured from 0.02 to 0.05


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (gf.DeepAFL(depth=1), "has 3 rounds"),
        (gf.FedHiP(at="server"), "from its own upload"),
        (gf.AFL(features="raw+bias+linear"), "length is bounded"),
    ],
)
def test_what_cannot_be_private_refuses_in_words(method, why, federation):
    with pytest.raises(GramfoldError, match=why):
        gf.run(method, federation, dp=gf.DP(eps=1))


def test_continuous_targets_have_no_bound(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    numbers = gf.Federation.split(X, y, clients=4, partition="iid", regression=True)
    with pytest.raises(GramfoldError, match="no bound"):
        gf.run(gf.AFL(), numbers, dp=gf.DP(eps=1))
    assert gf.run(gf.AFL(), numbers, secure=SECURE).mean_rmse == pytest.approx(gf.run(gf.AFL(), numbers).mean_rmse, rel=1e-9)


def test_the_result_keeps_its_word_on_disk(federation, tmp_path):
    result = gf.run(gf.AFL(), federation, secure=SECURE, dp=gf.DP(eps=4))
    result.save(tmp_path / "run")
    assert gf.load_result(tmp_path / "run").privacy == result.privacy
    assert result.to_dict()["privacy"]["dp"]["eps"] == 4
    assert repr(result).splitlines()[-2:] == [
        "the server saw the sum of the uploads only",
        "noise on the sum of the uploads: eps 4, delta 1e-05 for every training sample",
    ]


def test_a_plain_run_says_nothing_of_privacy(federation):
    assert not Privacy()
    assert "privacy" not in gf.run(gf.AFL(), federation).to_dict()
