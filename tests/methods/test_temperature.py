"""Probabilities from ridge scores: a temperature of greatest left-out likelihood, which never changes what is predicted."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import gramfold as gf
from gramfold.federation import digits
from gramfold.methods import ClientData
from gramfold.solve.leave_one_out import mean_leverage
from gramfold.solve.ridge import factorise
from gramfold.solve.temperature import FLATTEST, fit_temperature, temperature_of_moments
from gramfold.wire import Packet

METHODS = {
    "local": gf.Local(), "local, beta given": gf.Local(penalty=1.0), "local, no penalty": gf.Local(penalty=0.0),
    "afl": gf.AFL(), "localclasses": gf.LocalClasses(),
    "fedhip": gf.FedHiP(), "fedhip, alpha given": gf.FedHiP(alpha=3.0), "fedhip, no alpha": gf.FedHiP(alpha=0.0),
    "fedhip, at the server": gf.FedHiP(at="server"), "fedhip, alpha given, at the server": gf.FedHiP(alpha=3.0, at="server"),
    "apfl": gf.APFL(), "apfl, given": gf.APFL(refinement_penalty=100.0, lam=0.3),
    "apfl, one map": gf.APFL(refinement="bias+linear"),
}  # fmt: skip


def drawn(seed: int, n: int = 60, classes: int = 4, right: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    return rng.standard_normal((n, classes)) * 0.5 + right * np.eye(classes)[codes], codes


@given(st.integers(0, 999), st.integers(1, 80), st.integers(2, 6), st.floats(-1, 4), st.booleans())
def test_it_has_the_greatest_likelihood_of_the_samples_and_one_doubt(seed, n, classes, right, masked):
    scores, codes = drawn(seed, n, classes, right)
    running = np.isin(np.arange(classes), codes) if masked else np.ones(classes, bool)
    offset = np.where(running, 0.0, -np.inf)

    def loss(log_sharpness):
        told = log_softmax(np.exp(log_sharpness) * scores[:, running], axis=1)
        doubt = told.mean(1)
        return -(n * log_softmax(np.exp(log_sharpness) * scores + offset, axis=1)[np.arange(n), codes] + doubt).mean()

    temperature = fit_temperature(scores, codes, offset)
    assert 0 < temperature < np.inf
    if running.sum() > 1:
        centred = scores[:, running] - scores[:, running].mean(1, keepdims=True)
        flattest = np.log(FLATTEST / np.sqrt((centred**2).mean()))
        best = minimize_scalar(loss, bounds=(flattest, 8), method="bounded")
        assert loss(-np.log(temperature)) <= best.fun + 1e-6 * abs(best.fun)  # the bounded search is good to about 1e-5


@given(st.integers(0, 99), st.floats(1e-6, 1e6), st.floats(-5, 5))
def test_units_do_not_matter(seed, scale, shift):
    scores, codes = drawn(seed)
    plain = fit_temperature(scores, codes)
    assert fit_temperature(scale * (scores + shift), codes) == pytest.approx(scale * plain, rel=1e-5)  # shift / scale rounding


@given(st.integers(0, 999), st.integers(1, 60), st.booleans())
def test_a_sample_of_weight_two_counts_as_two(seed, n, masked):
    scores, codes = drawn(seed, n)
    counts = np.random.default_rng(seed).integers(0, 4, n)
    counts[0] = 2
    again = np.repeat(np.arange(n), counts)
    offset = np.where(np.isin(np.arange(4), codes), 0.0, -np.inf) if masked else 0.0
    weighted = fit_temperature(scores, codes, offset, counts=counts.astype(float))
    assert weighted == pytest.approx(fit_temperature(scores[again], codes[again], offset), rel=1e-6)  # steps end at 1e-9


def test_scores_that_are_always_wrong_say_nothing_rather_than_the_opposite():
    scores = np.array([[0.0, 1.0], [1.0, 0.0]] * 10)
    temperature = fit_temperature(scores, np.array([0, 1] * 10))
    assert temperature == pytest.approx(0.5 / FLATTEST)


def test_nothing_to_go_by_is_no_mistake():
    assert fit_temperature(np.zeros((5, 3)), np.zeros(5, int)) == 1.0
    assert fit_temperature(np.zeros((0, 3)), np.zeros(0, int)) == 1.0
    sure = fit_temperature(np.eye(3)[np.zeros(9, int)], np.zeros(9, int))
    probability = np.exp(1 / sure) / (np.exp(1 / sure) + 2)
    assert probability == pytest.approx((9 + 1 / 3) / 10, rel=1e-6)  # the rule of succession, the one doubt split by three


@pytest.fixture(scope="module")
def federation() -> gf.Federation:
    return gf.Federation.from_dataset(digits(), 20, "dirichlet:0.1", random_state=0)


@pytest.mark.filterwarnings("ignore::gramfold.errors.IllConditionedWarning")  # digits have empty pixels: no penalty, no inverse
@pytest.mark.parametrize("name", METHODS)
def test_every_head_gives_calibrated_probabilities_and_predicts_as_before(name, federation):
    method = METHODS[name]
    result = gf.run(method, federation)
    assert method.probabilistic
    # 450 test samples: the error of a calibrated model is about 0.02 by chance alone; scores as they are have 0.5 and more
    assert result.calibration_error < 0.06
    X = digits().inputs[:200]
    shared = [] if result.global_head is None else [result.global_head]
    for head in [*result.heads.values(), *shared]:
        probabilities = head.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(np.asarray(head.labels)[probabilities.argmax(1)], head.predict(X))
    for late in (slice(0, 40), slice(0, 2), slice(0, 1)):
        joined = result.join(X[late], digits().targets[:200][late])
        assert np.isfinite(joined.predict_proba(X)).all()


def test_parameters_that_are_given_choose_nothing(federation):
    for name in ("local, beta given", "fedhip, alpha given", "apfl, given"):
        head = gf.run(METHODS[name], federation).heads["0"]
        assert not {"leave_one_out_accuracy", "alpha", "lam"} & set(head.chosen), name


def test_the_shared_temperature_is_told_from_moments_alone(federation):
    result = gf.run(gf.AFL("linear", penalty=1.0), federation)
    broadcast: Any = result.run.broadcast
    space, weights = broadcast.space, broadcast.weights
    total = sum((space.fold(ClientData(client.name, client.train())) for client in list(federation)[1:]),
                space.fold(ClientData("0", federation.clients[0].train())))  # fmt: skip
    leverage = mean_leverage(factorise(total.lower_gram, 1.0), 1.0, total.n)
    told = temperature_of_moments(weights, total.cross, 1.0, total.counts, leverage)
    assert told == pytest.approx(result.global_head.temperature, rel=1e-9)
    parts = [client.train() for client in federation]
    rows, codes = space.map(np.concatenate([part.inputs for part in parts])), np.concatenate([part.targets for part in parts])
    hot = np.eye(10)[codes]
    exact = fit_temperature(hot - (hot - rows @ weights) / (1 - leverage), codes)
    assert exact / 2 < told < exact * 2  # scores are no Gaussians, but not far from them


def test_values_are_no_probabilities(federation):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    continuous = gf.Federation.split(X, X[:, 0], regression=True, clients=3)
    for method in METHODS.values():
        head = gf.run(method, continuous).heads["0"]
        assert not head.probabilistic
        with pytest.raises(gf.GramfoldError, match="predicts values, not classes"):
            head.predict_proba(X)


def test_a_file_keeps_the_temperature_and_may_lack_one(federation, tmp_path):
    head = gf.run("apfl", federation).heads["0"]
    head.save(tmp_path / "head")
    X = digits().inputs[:20]
    np.testing.assert_array_equal(gf.load_head(tmp_path / "head").predict_proba(X), head.predict_proba(X))
    packet = head.pack()
    older = {key: value for key, value in packet.meta.items() if key != "temperature"}
    (tmp_path / "older").write_bytes(Packet(packet.arrays, older).to_bytes())
    assert gf.load_head(tmp_path / "older").temperature == 1.0
    for wrong in (0.0, -1.0, float("nan"), "warm"):
        (tmp_path / "wrong").write_bytes(Packet(packet.arrays, {**packet.meta, "temperature": wrong}).to_bytes())
        with pytest.raises(gf.GramfoldError):
            gf.load_head(tmp_path / "wrong")


@pytest.mark.parametrize("method", ["local", "afl", "localclasses", "fedhip", "apfl"])
def test_the_estimator_gives_them_too(method):
    data = digits()
    site = np.arange(400) % 3
    model = gf.PersonalizedClassifier(method=method).fit(data.inputs[:400], data.targets[:400], groups=site)
    probabilities = model.predict_proba(data.inputs[:50], groups=site[:50])
    np.testing.assert_allclose(probabilities.sum(1), 1.0, rtol=1e-12)
