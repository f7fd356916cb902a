"""Figures: calibration against a direct computation, accuracies, and how clients are summed up."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

import gramfold as gf
from gramfold import features
from gramfold.evaluation import Calibration, Scored, mean, score_head, weighted_mean, worst_decile
from gramfold.evaluation.calibration import BINS
from gramfold.federation import Samples
from gramfold.heads import Stream


def predictions(n: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(classes), n), rng.integers(0, classes, n)


@given(st.integers(1, 80), st.integers(2, 5), st.integers(0, 999))
def test_calibration_error_is_its_definition(n, classes, seed):
    probabilities, codes = predictions(n, classes, seed)
    top, right = probabilities.max(1), probabilities.argmax(1) == codes
    expected = 0.0
    for b in range(BINS):
        inside = (b / BINS <= top) & (top < (b + 1) / BINS)
        if inside.any():
            expected += inside.mean() * abs(top[inside].mean() - right[inside].mean())
    assert Calibration.of(probabilities, codes).expected_error == pytest.approx(expected, abs=1e-12)


@given(st.integers(2, 80), st.integers(2, 5), st.integers(0, 999))
def test_calibrations_add_up_over_clients(n, classes, seed):
    probabilities, codes = predictions(n, classes, seed)
    parts = [Calibration.of(probabilities[rows], codes[rows]) for rows in (slice(0, 1), slice(1, n // 2), slice(n // 2, n))]
    whole = Calibration.of(probabilities, codes)
    total = sum(parts, Calibration())
    for name in ("count", "confidence", "right"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-12)
    assert total.expected_error == pytest.approx(whole.expected_error, abs=1e-12)


def test_certainty_falls_into_the_last_bin_and_no_samples_have_no_error():
    assert Calibration.of(np.array([[1.0, 0.0]]), np.array([0])).count[-1] == 1
    assert Calibration().expected_error == 0.0


def linear_head(outputs: int = 2, **changes) -> gf.Head:
    labels = None if outputs == 1 else tuple(range(outputs))
    return gf.Head([Stream(features.draw(features.Linear(), 2, seed=0), np.eye(2)[:, :outputs])], labels, **changes)


def test_a_head_is_scored_by_what_it_gets_right():
    inputs = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [3.0, 4.0]])
    scored = score_head(linear_head(), Samples(inputs, np.array([0, 1, 1, 1])))
    assert (scored.n, scored.right, scored.accuracy, scored.calibration) == (4, 3, 0.75, None)
    probable = score_head(linear_head(probabilistic=True), Samples(inputs, np.array([0, 1, 1, 1])))
    assert probable.calibration.count.sum() == 4


@given(st.integers(2, 60), st.integers(2, 5), st.integers(0, 999))
def test_ranking_balance_and_log_loss_are_scikit_learns(n, classes, seed):
    probabilities, codes = predictions(n, classes, seed)
    probabilities = probabilities.round(1) + 0.01  # ties
    probabilities /= probabilities.sum(1, keepdims=True)
    eye = gf.Head([Stream(features.draw(features.Linear(), classes, seed=0), np.eye(classes))], tuple(range(classes)),
                  probabilistic=True)  # fmt: skip
    linear = replace(eye, streams=[Stream(eye.streams[0].map, np.eye(classes))])
    scored = score_head(linear, Samples(np.log(probabilities), codes))
    told = linear.predict_proba(np.log(probabilities))
    assert scored.log_loss == pytest.approx(log_loss(codes, told, labels=range(classes)), rel=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is predicted and not there
        assert scored.balanced_accuracy == pytest.approx(balanced_accuracy_score(codes, told.argmax(1)))
    known = [c for c in range(classes) if 0 < (codes == c).sum() < n]
    expected = [roc_auc_score(codes == c, told[:, c]) for c in known]
    assert scored.auc == (pytest.approx(np.mean(expected), abs=1e-9) if known else None)
    assert Scored.from_dict(scored.to_dict()).to_dict() == scored.to_dict()


def test_a_regressor_is_scored_by_its_error():
    scored = score_head(linear_head(outputs=1), Samples(np.array([[1.0, 9.0], [3.0, 9.0]]), np.array([[0.0], [1.0]])))
    assert scored.squared_error == 1 + 4
    assert scored.rmse == pytest.approx(np.sqrt(2.5))
    assert scored.r2 == pytest.approx(1 - 5 / 0.5)


def test_no_samples_have_no_figures():
    scored = score_head(linear_head(), Samples(np.zeros((0, 2)), np.zeros(0, int)))
    assert (scored, scored.accuracy, scored.rmse) == (Scored(0), None, None)
    assert mean([]) is None
    assert weighted_mean([], []) is None
    assert worst_decile([]) is None


def test_clients_are_summed_up_plainly_by_size_and_by_their_worst():
    assert mean([0.5, 1.0]) == 0.75
    assert weighted_mean([0.5, 1.0], [3, 1]) == 0.625
    assert worst_decile([0.9, 0.1, 0.8]) == 0.1  # at least one
    values = np.random.default_rng(0).permutation(np.arange(20) / 20)
    assert worst_decile(values) == pytest.approx((0 + 0.05) / 2)
    assert worst_decile(values[:19]) == values[:19].min()
