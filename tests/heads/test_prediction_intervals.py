"""Prediction intervals: they cover what they promise, on tables that are not Gaussian, for clients large and small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman3

import gramfold as gf
from gramfold.errors import HeadError
from gramfold.heads import Errors

Split = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]


def sites(X: np.ndarray, y: np.ndarray, clients: int, seed: int = 0) -> Split:
    """Clients with an offset of their own each, half of their samples held out."""
    rng = np.random.default_rng(seed)
    site, held_out = rng.integers(0, clients, len(y)), rng.random(len(y)) < 0.5
    y = (y - y.mean()) / y.std() + rng.standard_normal(clients)[site]
    parts = [(site == k, (site == k) & held_out) for k in range(clients)]
    return {str(k): (X[a & ~b], y[a & ~b], X[b], y[b]) for k, (a, b) in enumerate(parts)}


def covered(result: gf.Result, clients: Split, coverage: float) -> float:
    inside = [(low <= y) & (y <= high) for name, (_, _, X, y) in clients.items()
              for low, high in [result.heads[name].predict_interval(X, coverage).T]]  # fmt: skip
    return float(np.concatenate(inside).mean())


@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize(
    ("X", "y", "clients"),
    [(*make_friedman1(4000, random_state=1, noise=1.0), 10), (*make_friedman3(4000, random_state=2, noise=0.1), 20),
     (20 * load_diabetes().data, load_diabetes().target, 5)],
    ids=["friedman 1", "friedman 3", "diabetes"],
)  # fmt: skip
def test_so_large_a_part_of_new_samples_lies_within(X, y, clients, coverage):
    split = sites(X, y, clients)
    result = gf.run("pace", gf.Federation.from_clients(split, regression=True))
    error = 2 * np.sqrt(coverage * (1 - coverage) / (len(y) / 2))  # two standard errors, of the test samples alone
    # of few samples the left-out errors are those of a model that knows less: wider than need be, never much narrower
    assert -0.01 - error < covered(result, split, coverage) - coverage < 0.01 + 2 * error


@given(st.integers(1, 200), st.floats(0.01, 0.99), st.integers(0, 99))
def test_half_widths_are_conformal_or_those_of_a_gaussian(n, coverage, seed):
    residuals = np.random.default_rng(seed).standard_normal((n, 2))
    errors = Errors.of(residuals, np.ones(2))
    half = errors.half_width(coverage)
    if coverage <= n / (n + 1) - 1e-6:
        inside = (np.abs(residuals) <= half).sum(0)
        assert (np.abs(inside - coverage * (n + 1)) <= 1 + 1e-6).all()
    else:
        np.testing.assert_allclose(half, half[0])


def test_many_errors_are_thinned_and_the_quantiles_stay():
    residuals = np.random.default_rng(0).standard_normal((50_000, 1))
    assert Errors.of(residuals, np.ones(1)).half_width(0.9)[0] == pytest.approx(1.645, abs=0.02)


def test_heads_of_every_client_the_shared_one_files_and_the_estimator_give_them(tmp_path):
    X, y = make_friedman1(400, random_state=0)
    Y = np.column_stack([y, -2 * y])
    site = np.arange(400) % 4
    clients = {str(k): (X[site == k], Y[site == k]) for k in range(4)} | {"tiny": (X[:3], Y[:3])}
    result = gf.run("pace", gf.Federation.from_clients(clients, regression=True, test_size=0.0))
    for head in (*result.heads.values(), result.global_head):
        intervals = head.predict_interval(X[:5], 0.5)
        assert intervals.shape == (5, 2, 2)
        assert (intervals[..., 0] < intervals[..., 1]).all()
        np.testing.assert_allclose(intervals.mean(-1), head.predict(X[:5]))
    result.heads["0"].save(tmp_path / "head")
    np.testing.assert_array_equal(gf.load_head(tmp_path / "head").predict_interval(X), result.heads["0"].predict_interval(X))
    model = gf.PersonalizedRegressor().fit(X, y, groups=site)
    assert model.predict_interval(X[:7], groups=site[:7], coverage=0.8).shape == (7, 2)


def test_what_gives_none_says_so():
    X, y = make_friedman1(60, random_state=0)
    head = gf.run("afl", gf.Federation.split(X, y, clients=2, regression=True)).heads["0"]
    with pytest.raises(HeadError):
        head.predict_interval(X)
    head = gf.run("pace", gf.Federation.split(X, y, clients=2, regression=True)).heads["0"]
    with pytest.raises(HeadError):
        head.predict_interval(X, 90)


def test_every_client_has_an_offset_of_its_own_shrunk_where_it_has_few_samples():
    rng = np.random.default_rng(0)
    X, offsets = rng.standard_normal((650, 3)), np.array([3.0, -3.0, 3.0])
    site = np.repeat([0, 1, 2], [322, 322, 6])
    y = X.sum(1) + offsets[site] + 0.3 * rng.standard_normal(650)
    clients = {str(k): (X[site == k], y[site == k]) for k in range(3)}
    result = gf.run(gf.PACE(features="raw+bias+linear"), gf.Federation.from_clients(clients, regression=True, test_size=0.0))
    off = [abs((y[site == k] - result.heads[str(k)].predict(X[site == k])).mean()) for k in range(3)]
    assert max(off[:2]) < 0.05
    assert off[2] < 1.5  # six samples: at least half the way from the shared model's 3


def test_a_few_samples_cover_as_much_as_was_asked_for_on_average(rng):
    """Whatever n: the next larger of 15 errors would cover 93.75 % where 90 % were asked for."""
    inside = []
    for _ in range(4000):
        *known, new = np.abs(rng.standard_normal(16))
        inside.append(new <= Errors.of(np.array(known)[:, None], np.ones(1)).half_width(0.9)[0])
    assert np.mean(inside) == pytest.approx(0.905, abs=0.015)


def test_values_have_no_probabilities_and_classes_no_intervals(rng, federation):
    X = rng.standard_normal((40, 3))
    values = gf.run("pace", gf.Federation.split(X, X[:, 0], clients=2, regression=True)).heads["0"]
    with pytest.raises(HeadError):
        values.predict_proba(X)
    with pytest.raises(HeadError):
        gf.run("afl", federation).heads["0"].predict_interval(np.zeros((1, 8)))
