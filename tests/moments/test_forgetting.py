"""Forgetting is subtraction: it says when too many digits are gone, and refuses what was never there where that shows."""

import warnings

import numpy as np
import pytest

import gramfold as gf
from gramfold.errors import MomentsError


def moments(X: np.ndarray, codes: np.ndarray, classes: int = 3) -> gf.Moments:
    return gf.Moments.from_features(X, codes, classes=classes)


def some(seed: int, n: int = 40, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return scale * rng.standard_normal((n, 5)), rng.integers(0, 3, n)


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e10])
def test_a_client_that_was_far_larger_leaves_a_warning_that_says_what_to_do(scale):
    whole, large = moments(*some(0)) + moments(*some(1, scale=scale)), moments(*some(1, scale=scale))
    with pytest.warns(gf.PrecisionWarning, match=r"cancelled \d+ of 16 digits.*normalise the features"):
        _ = whole - large


def test_one_feature_alone_can_lose_its_digits():
    X, codes = some(1)
    X[:, 2] *= 1e5
    with pytest.warns(gf.PrecisionWarning):
        _ = (moments(*some(0)) + moments(X, codes)) - moments(X, codes)


def test_no_warning_where_nothing_is_lost():
    words = np.eye(6)[[0, 1, 2, 3, 4, 5]]  # each in one sample only: forgotten, the feature is gone for good
    counts = np.array([0, 1, 2, 0, 1, 2])
    pairs = [
        (moments(*some(0)), moments(*some(1, n=4000))),
        (moments(*some(0)), moments(*some(1, scale=100.0))),
        (moments(words[:2], counts[:2]), moments(words[2:], counts[2:])),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for stays, goes in pairs:
            rest = (stays + goes) - goes
            np.testing.assert_allclose(rest.gram, stays.gram, atol=1e-8 * goes.gram.max())


@pytest.mark.parametrize("method", [gf.AFL(features="raw+linear"), gf.PACE(features="raw+linear")], ids=repr)
def test_a_result_that_forgets_warns_too(method):
    clients = {"small": some(0), "huge": some(1, scale=1e6), "other": some(2)}
    result = gf.run(method, gf.Federation.from_clients(clients, test_size=0.0))
    with pytest.warns(gf.PrecisionWarning):
        result.forget(*clients["huge"], "huge")


def test_samples_that_were_never_added_are_refused_though_no_count_and_no_diagonal_shows_it():
    X, codes = some(0)
    turned = X.copy()
    turned[:20, 0] *= -1.0  # the same counts and the same squares
    turned[:20, 1] = X[19::-1, 1]
    with pytest.raises(MomentsError):
        _ = moments(X, codes) - moments(turned[:38], codes[:38])


def test_labels_that_were_never_added_are_refused():
    X, codes = some(0)
    with pytest.raises(gf.GramfoldError, match=r"never added|not part"):
        _ = moments(X, codes) - moments(X[:38], codes[37::-1])
