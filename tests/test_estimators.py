"""The scikit-learn face behaves as scikit-learn's own estimators do."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramfold as gf

SITES = 3


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three sites whose labels mean different things: site k shifts the class by k for half the samples."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((4, 6)) * 2
    y = rng.integers(0, 4, 600)
    site = rng.integers(0, SITES, 600)
    X = centres[(y + site) % 4] + rng.standard_normal((600, 6))
    return X, np.array(["ash", "birch", "cedar", "dogwood"])[y], site


@parametrize_with_checks([gf.PersonalizedClassifier(), gf.PersonalizedClassifier("apfl"), gf.PersonalizedRegressor(),
                          gf.PersonalizedRegressor("fedhip")])  # fmt: skip
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_groups_get_heads_of_their_own_and_strangers_the_shared_one(data):
    X, y, site = data
    model = gf.PersonalizedClassifier().fit(X[::2], y[::2], groups=site[::2])
    personal = model.score(X[1::2], y[1::2], groups=site[1::2])
    shared = model.score(X[1::2], y[1::2])
    assert personal > shared + 0.2, "no shared head can serve sites that mean different things"
    np.testing.assert_array_equal(model.predict(X, groups=np.full(len(X), "unseen")), model.predict(X))
    assert set(model.heads_) == {"0", "1", "2"}
    assert model.predict_proba(X[:5], groups=site[:5]).shape == (5, 4)


def test_a_grid_search_compares_methods_with_groups_routed(data):
    X, y, site = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = gf.PersonalizedClassifier().set_fit_request(groups=True).set_score_request(groups=True)
        grid = {"method": ["afl", "apfl", "pace", gf.FedHiP(alpha=50.0)]}
        search = GridSearchCV(model, grid, cv=KFold(3, shuffle=True, random_state=0)).fit(X, y, groups=site)
        scores = cross_val_score(model, X, y, cv=KFold(3), params={"groups": site})
    assert search.best_params_["method"] != "afl"
    assert scores.min() > 0.6


def test_cross_validation_over_unseen_groups_uses_the_shared_head(data):
    X, y, site = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = gf.PersonalizedClassifier("afl").set_fit_request(groups=True).set_score_request(groups=True)
        scores = cross_val_score(model, X, y, cv=GroupKFold(3), params={"groups": site})
    assert np.isfinite(scores).all()


def test_it_pickles_clones_and_sits_in_a_pipeline(data):
    X, y, site = data
    model = gf.PersonalizedClassifier(gf.APFL(lam=0.4), seed=2).fit(X, y, groups=site)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X, groups=site), model.predict(X, groups=site))
    fresh = clone(model)
    assert (fresh.method, fresh.seed) == (gf.APFL(lam=0.4), 2)
    assert not hasattr(fresh, "heads_")
    assert make_pipeline(StandardScaler(), gf.PersonalizedClassifier()).fit(X, y).score(X, y) > 0.3


def test_probabilities_are_offered_only_where_they_are_probabilities():
    assert hasattr(gf.PersonalizedClassifier("pace"), "predict_proba")
    assert not hasattr(gf.PersonalizedClassifier("fedacnnl"), "predict_proba")


def test_an_unseen_group_without_a_shared_model_is_an_error_that_says_so(data):
    X, y, site = data
    model = gf.PersonalizedClassifier("local").fit(X, y, groups=site)
    with pytest.raises(gf.GramfoldError, match="no shared model"):
        model.predict(X, groups=np.full(len(X), "stranger"))
    with pytest.raises(gf.GramfoldError, match="one group per sample"):
        model.predict(X, groups=site[:3])


def test_a_regressor_with_groups_and_several_targets():
    rng = np.random.default_rng(1)
    X, site = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    slopes = rng.standard_normal((3, 5, 2))
    Y = np.einsum("nd,ndt->nt", X, slopes[site]) + 0.05 * rng.standard_normal((300, 2))
    method = gf.FedHiP(features="raw+bias+linear")
    model = gf.PersonalizedRegressor(method).fit(X, Y, groups=site)
    assert model.predict(X, groups=site).shape == (300, 2)
    assert model.score(X, Y, groups=site) > 0.95 > model.score(X, Y)
