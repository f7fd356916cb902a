"""The scikit-learn face behaves as scikit-learn's own estimators do."""

import pickle
import warnings
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramfold as gf
from gramfold.errors import InputError

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


SELECTED = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
    "penalties are chosen by leave-one-out, which leaves a sample out with all its weight; of a repeated sample it leaves the "
    "twin in, and chooses what learns it by heart",
)
"""That data has fewer samples than columns, and classifiers fit all of it perfectly: most of them pass all the same, but APFL's
left-out scores, and with them its temperature, differ in the sixth digit."""
CHECKED = [gf.PersonalizedClassifier(), gf.PersonalizedClassifier("apfl"), gf.PersonalizedClassifier("afl"),
           gf.PersonalizedRegressor(), gf.PersonalizedRegressor("fedhip"), gf.PersonalizedRegressor("apfl"),
           gf.PersonalizedRegressor("local"), gf.PersonalizedRegressor(gf.APFL(refinement_penalty=0.5, lam=0.5)),
           gf.PersonalizedRegressor(gf.Local(penalty=0.5))]  # fmt: skip


def known_to_fail(estimator) -> dict[str, str]:
    selects = ("pace", "apfl", "local") if isinstance(estimator, gf.PersonalizedRegressor) else ("pace", "apfl")
    return SELECTED if estimator.method in selects else {}


@parametrize_with_checks(CHECKED, expected_failed_checks=known_to_fail)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([gf.PersonalizedClassifier("afl"), gf.PersonalizedRegressor("afl")])
def test_scikit_learns_own_checks_with_routing(estimator, check):
    with sklearn.config_context(enable_metadata_routing=True):
        check(estimator)


def test_groups_get_heads_of_their_own_and_strangers_the_shared_one(data):
    X, y, site = data
    model = gf.PersonalizedClassifier().fit(X[::2], y[::2], groups=site[::2])
    personal = model.score(X[1::2], y[1::2], groups=site[1::2])
    with pytest.warns(gf.SharedHeadWarning, match="use group_column="):
        shared = model.score(X[1::2], y[1::2])
    assert personal > shared + 0.2, "no shared head can serve sites that mean different things"
    with pytest.warns(gf.SharedHeadWarning):
        np.testing.assert_array_equal(model.predict(X), model.predict(X, groups=np.full(len(X), "unseen")))
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
    model = gf.PersonalizedClassifier(gf.APFL(lam=0.4), random_state=2).fit(X, y, groups=site)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X, groups=site), model.predict(X, groups=site))
    fresh = clone(model)
    assert (fresh.method, fresh.random_state) == (gf.APFL(lam=0.4), 2)
    assert not hasattr(fresh, "heads_")
    assert make_pipeline(StandardScaler(), gf.PersonalizedClassifier()).fit(X, y).score(X, y) > 0.3


def test_probabilities_are_offered_only_where_they_are_probabilities():
    assert hasattr(gf.PersonalizedClassifier("pace"), "predict_proba")
    assert hasattr(gf.PersonalizedClassifier(gf.AFL(penalty=1.0)), "predict_proba")
    assert not hasattr(gf.PersonalizedClassifier("fedacnnl"), "predict_proba")


def test_an_unseen_group_without_a_shared_model_is_an_error_that_says_so(data):
    X, y, site = data
    model = gf.PersonalizedClassifier("local").fit(X, y, groups=site)
    with pytest.raises(gf.GramfoldError, match="no shared model"):
        model.predict(X, groups=np.full(len(X), "stranger"))
    with pytest.raises(InputError):
        model.predict(X, groups=site[:3])


def test_a_regressor_with_groups_and_several_targets():
    rng = np.random.default_rng(1)
    X, site = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    slopes = rng.standard_normal((3, 5, 2))
    Y = np.einsum("nd,ndt->nt", X, slopes[site]) + 0.05 * rng.standard_normal((300, 2))
    method = gf.FedHiP(features="raw+bias+linear")
    model = gf.PersonalizedRegressor(method).fit(X, Y, groups=site)
    assert model.predict(X, groups=site).shape == (300, 2)
    with pytest.warns(gf.SharedHeadWarning):
        assert model.score(X, Y, groups=site) > 0.95 > model.score(X, Y)


# --- weights ---


def test_weights_in_fit_and_score(data):
    X, y, site = data
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), weights)
    weighted = gf.PersonalizedClassifier("afl").fit(X, y, groups=site, sample_weight=weights)
    repeated = gf.PersonalizedClassifier("afl").fit(X[again], y[again], groups=site[again])
    np.testing.assert_array_equal(weighted.predict(X, groups=site), repeated.predict(X, groups=site))
    assert weighted.score(X, y, site, weights) == pytest.approx(repeated.score(X[again], y[again], site[again]))


def test_a_weight_of_zero_takes_group_and_class_with_it(data):
    X, y, site = data
    weights = ((site != 2) & (y != "ash")).astype(float)
    model = gf.PersonalizedClassifier("pace").fit(X, y, groups=site, sample_weight=weights)
    assert (set(model.heads_), list(model.classes_)) == ({"0", "1"}, ["birch", "cedar", "dogwood"])


def test_a_regressor_with_one_group_is_scikit_learns_ridge_with_weights():
    rng = np.random.default_rng(3)
    X, w = rng.standard_normal((40, 5)), rng.uniform(0.1, 3, 40)
    y = X @ rng.standard_normal(5) + rng.standard_normal(40)
    method = gf.Local(features="raw+linear", penalty=2.0)
    ours = gf.PersonalizedRegressor(method).fit(X, y, sample_weight=w).predict(X)
    theirs = Ridge(alpha=2.0, fit_intercept=False).fit(X, y, sample_weight=w).predict(X)
    np.testing.assert_allclose(ours.ravel(), theirs, rtol=1e-9)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (np.ones(3), "one number per sample"),
        (-np.ones(600), "none of them negative"),
        (np.full(600, np.nan), "finite"),
        (np.zeros(600), "zero for all"),
        (["heavy"] * 600, "must hold numbers"),
    ],
)
def test_weights_that_are_none(data, weights, says):
    with pytest.raises(ValueError, match=says):
        gf.PersonalizedClassifier("afl").fit(data[0], data[1], sample_weight=weights)


def test_gradient_methods_refuse_weights(data):
    X, y, site = data
    pytest.importorskip("torch", reason="gradient methods need torch")
    with pytest.raises(gf.GramfoldError, match="'fedavg' knows no sample weights"):
        gf.PersonalizedClassifier(gf.FedAvg(rounds=2, lr=0.1)).fit(X, y, groups=site, sample_weight=np.arange(len(y)) + 1)


# --- sparse samples ---


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_array])
def test_sparse_samples_are_as_dense_ones(data, kind):
    X, y, site = data
    X, weights = np.where(X > 0.5, X, 0.0), np.arange(len(y)) % 4
    dense = gf.PersonalizedClassifier().fit(X, y, groups=site, sample_weight=weights)
    sparse = gf.PersonalizedClassifier().fit(kind(X), y, groups=site, sample_weight=weights)
    expected = dense.predict_proba(X, groups=site)
    np.testing.assert_allclose(sparse.predict_proba(kind(X), groups=site), expected, atol=1e-9)
    whole = kind(np.column_stack([X[:, :2], site, X[:, 2:]]))
    inside = gf.PersonalizedClassifier(group_column=2).fit(whole, y, sample_weight=weights)
    np.testing.assert_allclose(inside.predict_proba(whole), expected, atol=1e-9)
    with pytest.raises(gf.InputError, match="no column 9"):
        gf.PersonalizedClassifier(group_column=9).fit(whole, y)


def test_gradient_methods_refuse_sparse_samples(data):
    X, y, site = data
    pytest.importorskip("torch", reason="gradient methods need torch")
    with pytest.raises(gf.InputError, match=r"sparse samples.*use \.toarray\(\)"):
        gf.PersonalizedClassifier(gf.FedAvg(rounds=2, lr=0.1)).fit(scipy.sparse.csr_array(X), y, groups=site)


# --- groups that are routed ---


@pytest.mark.parametrize("routing", [True, False])
def test_a_pipeline_scores_with_routing_on_and_off(data, routing):
    X, y, _ = data
    with sklearn.config_context(enable_metadata_routing=routing):
        pipeline = make_pipeline(StandardScaler(), gf.PersonalizedClassifier("apfl"))
        assert np.isfinite(cross_val_score(pipeline, X, y, cv=3)).all()
        assert np.isfinite(
            GridSearchCV(pipeline, {"personalizedclassifier__method__lam": [0.0, 0.5]}, cv=3).fit(X, y).best_score_
        )


def test_groups_and_weights_are_routed_through_a_pipeline(data):
    X, y, site = data
    requests = {"groups": True, "sample_weight": True}
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error", gf.SharedHeadWarning)
        model = gf.PersonalizedClassifier().set_fit_request(**requests).set_score_request(**requests)
        model = model.set_predict_request(groups=True).set_predict_proba_request(groups=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), model)
        pipeline.fit(X, y, groups=site, sample_weight=np.ones(len(y)))
        alone = clone(model).fit(StandardScaler().fit_transform(X), y, groups=site)
        np.testing.assert_array_equal(
            pipeline.predict(X, groups=site), alone.predict(StandardScaler().fit_transform(X), groups=site)
        )
        assert pipeline.predict_proba(X, groups=site).shape == (len(X), 4)
        params = {"groups": site, "sample_weight": np.arange(len(y)) % 3 + 1}
        assert cross_val_score(pipeline, X, y, cv=KFold(3), params=params).min() > 0.6
        search = GridSearchCV(pipeline, {"personalizedclassifier__method": ["afl", "pace"]}, cv=KFold(3)).fit(X, y, **params)
    assert search.best_params_["personalizedclassifier__method"] == "pace"


# --- groups that travel in X ---


@pytest.fixture
def pandas() -> ModuleType:
    return pytest.importorskip("pandas", reason="pandas is not installed; frames are not tried")


@pytest.fixture
def frame(data, pandas):
    X, _, site = data
    made = pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    made.insert(2, "site", np.array(["north", "south", "west"])[site])
    return made


@pytest.mark.parametrize("routing", [True, False])
def test_every_scorer_personalises_where_groups_are_a_column(data, frame, routing):
    X, y, _ = data
    model = gf.PersonalizedClassifier(group_column="site")
    with sklearn.config_context(enable_metadata_routing=routing), warnings.catch_warnings():
        warnings.simplefilter("error", gf.SharedHeadWarning)
        scores = cross_validate(model, frame, y, cv=KFold(3), scoring=["accuracy", "roc_auc_ovr", "neg_log_loss"])
        grid = {"method": ["afl", "pace"], "group_column": ["site"]}
        search = GridSearchCV(model, grid, cv=KFold(3), scoring="balanced_accuracy").fit(frame, y)
        others = [f"x{i}" for i in range(X.shape[1])]
        first = make_column_transformer((StandardScaler(), others), ("passthrough", ["site"]))
        in_a_pipeline = cross_val_score(make_pipeline(first, clone(model).set_params(group_column=-1)), frame, y, cv=KFold(3))
    assert scores["test_accuracy"].min() > 0.6
    assert scores["test_roc_auc_ovr"].min() > 0.8
    assert in_a_pipeline.min() > 0.6
    assert search.best_params_["method"] == "pace"


def test_a_column_of_groups_is_as_groups_beside_x(data, frame):
    X, y, site = data
    names = frame["site"]
    beside = gf.PersonalizedClassifier().fit(X, y, groups=names)
    whole = np.column_stack([X[:, :2], site, X[:, 2:]])
    mixed = np.column_stack([X[:, :2].astype(object), names, X[:, 2:].astype(object)])
    for column, table in (("site", frame), (2, mixed), (-5, mixed), (2, mixed.tolist()), (2, frame)):
        inside = gf.PersonalizedClassifier(group_column=column).fit(table, y)
        np.testing.assert_array_equal(inside.predict_proba(table), beside.predict_proba(X, groups=names))
        assert (inside.n_features_in_, set(inside.heads_)) == (7, {"north", "south", "west"})
        assert hasattr(inside, "feature_names_in_") == (table is frame)
    numbered = gf.PersonalizedClassifier(group_column=2).fit(whole, y)
    assert set(numbered.heads_) == {"0", "1", "2"}, "whole numbers are called alike in a table of floats"
    np.testing.assert_array_equal(numbered.predict_proba(whole), beside.predict_proba(X, groups=names))
    named = gf.PersonalizedClassifier(group_column="site").fit(frame, y)
    assert list(named.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame.rename(columns={"x0": "renamed"}))


def test_a_frame_of_polars(data):
    polars = pytest.importorskip("polars", reason="polars is not installed; its frames are not tried")
    X, y, site = data
    table = polars.DataFrame({**{f"x{i}": X[:, i] for i in range(6)}, "site": site.astype(str)})
    assert gf.PersonalizedClassifier(group_column="site").fit(table, y).score(table, y) > 0.6


class Frame:
    """What polars and pandas have in common, and no more."""

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self._columns = columns
        self.columns, self.shape = list(columns), (len(next(iter(columns.values()))), len(columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which):
        return Frame({name: self._columns[name] for name in which}) if isinstance(which, list) else self._columns[which]

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.column_stack(list(self._columns.values())).astype(dtype)


def test_a_frame_of_anybodys(data):
    X, y, site = data
    table = Frame({**{f"x{i}": X[:, i] for i in range(6)}, "site": np.array(["n", "s", "w"])[site]})
    assert gf.PersonalizedClassifier(group_column="site").fit(table, y).score(table, y) > 0.6


def test_a_regressor_with_a_column_of_groups():
    rng = np.random.default_rng(4)
    X, site = rng.standard_normal((300, 5)), rng.integers(0, 3, 300)
    Y = np.einsum("nd,ndt->nt", X, rng.standard_normal((3, 5, 2))[site])
    model = gf.PersonalizedRegressor(gf.FedHiP(features="raw+bias+linear"), group_column=5)
    assert cross_val_score(model, np.column_stack([X, site]), Y, cv=3, scoring="r2").min() > 0.9


def test_mistakes_with_groups_are_one_line(data, frame, pandas):
    X, y, site = data
    named = gf.PersonalizedClassifier("afl", group_column="site")
    plain = gf.PersonalizedClassifier("afl")
    missing = np.where(np.arange(len(y)) == 7, None, site)
    nothing = pandas.Series(site, dtype="Int64").mask(site == 1)
    for says, attempt in (
        (
            "no column 'ward' to take groups from; it has: x0, x1, site",
            lambda: named.set_params(group_column="ward").fit(frame, y),
        ),
        ("X has no column 9 to take groups from; it has 6", lambda: clone(named).set_params(group_column=9).fit(X, y)),
        ("names a column, but X has no column names", lambda: clone(named).set_params(group_column="site").fit(X, y)),
        ("groups are given twice", lambda: clone(named).set_params(group_column="site").fit(frame, y, groups=site)),
        ("1 of 600 samples have no group .* the first at row 7", lambda: plain.fit(X, y, groups=missing)),
        ("have no group", lambda: plain.fit(X, y, groups=np.where(site == 1, np.nan, site))),
        ("have no group", lambda: plain.fit(X, y, groups=nothing)),
        ("one group per sample", lambda: plain.fit(X, y, groups=site[:5])),
    ):
        with pytest.raises(gf.InputError, match=says) as caught:
            attempt()
        assert isinstance(caught.value, ValueError)
        assert "\n" not in str(caught.value)


def test_targets_that_are_not_one_class_each_are_told_where_to_go(data):
    X, y, _ = data
    times = np.array([(True, 3.0)] * len(y), dtype=[("event", "?"), ("time", "f8")])
    for estimator in (gf.PersonalizedClassifier("afl"), gf.PersonalizedRegressor("afl")):
        with pytest.raises(gf.InputError, match=r"survival times .* are not served yet"):
            estimator.fit(X, times)
    several = np.column_stack([y == y[0], y != y[-1]]).astype(int)
    for given in (several, [["a", "b"][: k + 1] for k in several[:, 0]]):
        with pytest.raises(gf.InputError, match=r"y has several labels; .*gf\.Federation\.split"):
            gf.PersonalizedClassifier("afl").fit(X, given)


def test_asked_without_groups_where_there_is_no_shared_model(data):
    X, y, site = data
    model = gf.PersonalizedClassifier("local").fit(X, y, groups=site)
    with pytest.raises(gf.GramfoldError, match="fitted with groups and is asked without"):
        model.predict(X)


def test_no_warning_where_nothing_was_grouped(data):
    X, y, site = data
    model = gf.PersonalizedClassifier("afl").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", gf.SharedHeadWarning)
        np.testing.assert_array_equal(model.predict(X), model.predict(X, groups=site))


# --- parameters of the method ---


def test_parameters_of_the_method_are_reached_by_name():
    model = gf.PersonalizedClassifier("apfl").set_params(method__lam=0.3)
    assert model.method == gf.APFL(lam=0.3)
    assert model.get_params()["method__lam"] == 0.3
    given = gf.FedHiP(alpha=2.0)
    changed = gf.PersonalizedClassifier(given).set_params(method__penalty=1.0, random_state=3)
    assert (changed.method, changed.random_state, given) == (gf.FedHiP(alpha=2.0, penalty=1.0), 3, gf.FedHiP(alpha=2.0))
    assert changed.set_params(method="pace", method__penalty=0.5).method == gf.PACE(penalty=0.5)
    assert clone(changed).get_params() == changed.get_params()


def test_parameters_that_are_none_of_the_methods():
    for says, params in (
        ("has no parameter lamb; it has: features, penalty", {"method__lamb": 1}),
        ("lam must be a number or none, got 'much'", {"method__lam": "much"}),
        ("lam must be a number from 0 up", {"method__lam": -1.0}),
        ("Invalid parameter 'sead'", {"sead": 1}),
        ("unknown method 'aplf'", {"method": "aplf", "method__lam": 1.0}),
    ):
        with pytest.raises(ValueError, match=says):
            gf.PersonalizedClassifier("apfl").set_params(**params)
    assert "method__lam" not in gf.PersonalizedClassifier("aplf").get_params()


def test_parameters_of_a_strangers_method():
    stranger = pytest.importorskip("stranger")
    kind = next(value for value in vars(stranger).values() if isinstance(value, type) and issubclass(value, gf.methods.Method)
                and value is not gf.methods.Method)  # fmt: skip
    model = gf.PersonalizedClassifier(kind())
    nested = [name for name in model.get_params() if name.startswith("method__")]
    with pytest.raises(ValueError, match="has no parameter nonsense"):
        model.set_params(method__nonsense=1)
    assert model.set_params(**{name: model.get_params()[name] for name in nested}).method == kind()


def test_a_search_over_parameters_of_the_method(data):
    X, y, site = data
    grid = {"method__lam": [0.0, 1.0], "method__refinement_penalty": [1.0]}
    search = GridSearchCV(gf.PersonalizedClassifier("apfl", group_column=-1), grid, cv=KFold(3)).fit(
        np.column_stack([X, site]), y
    )
    assert search.best_params_ == {"method__refinement_penalty": 1.0, "method__lam": 1.0}
    assert search.best_estimator_.method == gf.APFL(refinement_penalty=1.0, lam=1.0)


# --- frames with words, dates and gaps ---


@pytest.fixture(scope="module")
def patients():
    pd = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(0), 240
    frame = pd.DataFrame({
        "age": rng.normal(50, 10, n), "ward": rng.choice(["a", "b", "c"], n), "day": pd.to_datetime("2024-01-01")
        + pd.to_timedelta(rng.integers(0, 40, n), unit="D"), "site": rng.choice(["x", "y"], n),
    })  # fmt: skip
    target = np.where(frame["age"] + 8 * (frame["ward"] == "a") + rng.normal(0, 4, n) > 53, "ill", "well")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame, target


def test_a_frame_is_encoded_as_by_the_transformer_in_front(patients):
    X, y = patients
    alone = gf.PersonalizedClassifier(group_column="site").fit(X, y)
    piped = make_pipeline(gf.TableTransformer("site"), gf.PersonalizedClassifier(group_column="site")).fit(X, y)
    assert np.array_equal(alone.predict_proba(X), piped.predict_proba(X))
    assert alone.score(X, y) > 0.8
    assert cross_val_score(alone, X, y, cv=3).mean() > 0.7
    assert pickle.loads(pickle.dumps(alone)).predict(X).tolist() == alone.predict(X).tolist()


def test_groups_apart_are_the_groups_column(patients):
    X, y = patients
    within = gf.PersonalizedClassifier(group_column="site").fit(X, y).predict_proba(X)
    apart = gf.PersonalizedClassifier().fit(X.drop(columns="site"), y, groups=X["site"])
    assert np.array_equal(apart.predict_proba(X.drop(columns="site"), groups=X["site"]), within)


def test_samples_without_a_weight_are_not_in_the_encoder_either(patients):
    X, y = patients
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = np.flatnonzero(weights)
    weighted = gf.PersonalizedClassifier(group_column="site").fit(X, y, sample_weight=weights)
    alone = gf.PersonalizedClassifier(group_column="site").fit(X.iloc[kept], y[kept])
    assert np.array_equal(weighted.predict_proba(X), alone.predict_proba(X))


def test_regression_of_a_frame(patients):
    X, _ = patients
    target = X["age"].fillna(50.0)
    rows = X.drop(columns="age").assign(more=target.where(np.arange(len(X)) % 7 > 0))
    model = gf.PersonalizedRegressor(group_column="site").fit(rows, target)
    assert model.score(rows, target) > 0.5
    assert model.predict_interval(rows).shape == (len(rows), 2)


def test_its_heads_take_raw_rows(patients, tmp_path):
    X, y = patients
    model = gf.PersonalizedClassifier(group_column="site").fit(X, y)
    model.heads_["x"].save(tmp_path / "x.safetensors")
    mine = X[X["site"] == "x"]
    assert np.array_equal(gf.load_head(tmp_path / "x.safetensors").predict_proba(mine), model.predict_proba(mine))


def test_rare_words_are_said_of_new_rows_and_not_of_those_in_fit(patients, recwarn):
    X, y = patients
    X = X.assign(ward=X["ward"].where(np.arange(len(X)) > 0, "attic"))
    model = gf.PersonalizedClassifier(group_column="site").fit(X, y)
    assert not [each for each in recwarn if "does not know" in str(each.message)]
    with pytest.warns(UserWarning, match=r"X: in 1 of \d+ rows column 'ward' has a word that this head does not know"):
        model.predict(X)


def test_a_frame_that_lacks_columns_or_is_none(patients):
    X, y = patients
    model = gf.PersonalizedClassifier(group_column="site").fit(X, y)
    with pytest.warns(UserWarning, match="X: it has no column 'age', which is taken as missing"):
        lacking = model.predict(X.drop(columns="age"))
    assert lacking.tolist() == model.predict(X.assign(age=np.nan)).tolist()
    assert model.predict(X[["site", "ward", "age", "day"]].assign(phone="0")).tolist() == model.predict(X).tolist()
    with pytest.raises(gf.InputError, match="the model was fitted on a frame: give one with columns age, ward, day, site"):
        model.predict(np.zeros((3, 4)))
    with pytest.raises(gf.InputError, match="X has no column 'site' to take groups from; it has: age, ward, day"):
        model.predict(X.drop(columns="site"))


def test_frames_of_numbers_are_taken_as_they_are_and_gaps_then_said(patients):
    X, y = patients
    numbers = X[["age", "site"]].fillna({"age": 50.0}).assign(more=1.5)
    model = gf.PersonalizedClassifier(group_column="site").fit(numbers, y)
    assert model.encoder_ is None
    with pytest.raises(
        gf.InputError, match=r"NaN.*; in fit all columns were numbers without gaps: fill these, or fit on some gaps"
    ):
        model.predict(numbers.assign(more=np.nan))
    with pytest.raises(ValueError, match="NaN") as error:
        gf.PersonalizedClassifier(group_column="ward").fit(X[["age", "ward"]], [0.0, np.nan] * (len(y) // 2))
    assert "gaps" not in str(error.value), "it is y that is wrong"
