"""An intercept is free and columns are standardised: that is scikit-learn's ridge, at the server and at a client."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

import gramfold as gf
from benchmarks import sensors
from gramfold.features import draw, parse
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.spaces import Space
from gramfold.origin import Origin
from gramfold.solve.own import OwnRidge
from gramfold.solve.units import Units
from strategies import PENALTIES, Problem, problems, relative

SOLVED = 1e-8  # conditions below 1e5 (PENALTIES), and digits lost to means a few times the spread
TABLE, PHOTOS = Origin("table", "columns", "0"), Origin("backbone", "dino", "0")
BOTH = pytest.mark.parametrize("shared", [True, False], ids=["one unit", "standardised"])


def offset(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The problem's rows as columns with means and scales of their own, and values that go with them."""
    rng = np.random.default_rng(seed)
    X = problem.X * 10.0 ** rng.uniform(-2, 2, problem.X.shape[1])
    X = X + X.std(0) * rng.uniform(-5, 5, X.shape[1])
    return X, 3.0 + rng.standard_normal((len(X), 2)) + problem.X[:, :1]


def with_one(X):
    return np.hstack([np.ones((len(X), 1)), X])


def expected(X, Y, penalty, shared, weights=None):
    """scikit-learn's coefficients and intercepts, in the columns' own units."""
    share = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    spread = np.sqrt(share @ (X - share @ X) ** 2)
    scale = np.ones(X.shape[1]) if shared else np.where(spread > 1e-9 * abs(X).max(0), 1 / np.maximum(spread, 1e-300), 0.0)
    fit = Ridge(alpha=penalty, solver="svd").fit(X * scale, Y, sample_weight=weights)
    return np.vstack([fit.intercept_, (fit.coef_ * scale).T])


@BOTH
@given(problem=problems(samples=(4, 40), width=(1, 8), clients=(1, 5)), penalty=PENALTIES, seed=st.integers(0, 99))
def test_the_folded_ridge_is_that_of_pooled_standardised_columns(shared, problem, penalty, seed):
    X, Y = offset(problem, seed)
    total = sum(
        (gf.Moments.from_features(with_one(X[problem.owners == k]), Y[problem.owners == k]) for k in range(1, problem.clients)),
        gf.Moments.from_features(with_one(X[problem.owners == 0]), Y[problem.owners == 0]),
    )
    found = PooledRidge.of(total, penalty, Units(0, shared))
    wanted = with_one(X) @ expected(X, Y, penalty, shared)
    assert relative(with_one(X) @ found.weights, wanted) < SOLVED
    # what a client's leverages are made of, and their mean, with the one degree of freedom of the intercept
    hat = with_one(X) @ found.factor.solve(with_one(X).T)
    assert found.leverage == pytest.approx(np.trace(hat) / len(X), rel=1e-6)
    assert relative(hat @ np.ones((len(X), 1)), np.ones((len(X), 1))) < SOLVED


@given(problem=problems(samples=(8, 40), width=(1, 6)), seed=st.integers(0, 99), place=st.integers(0, 6))
def test_shifting_and_scaling_columns_changes_no_prediction(problem, seed, place):
    """Whatever else is chosen: the penalty too."""
    place = min(place, problem.X.shape[1])
    wanted = None
    for X in (problem.X, offset(problem, seed)[0]):
        Y = offset(problem, 0)[1]
        rows = np.insert(X, place, 1.0, axis=1)
        found = PooledRidge.of(gf.Moments.from_features(rows, Y), None, Units(place, False))
        wanted = rows @ found.weights if wanted is None else wanted
        assert relative(rows @ found.weights, wanted) < 1e-6  # some columns differ in scale by 1e4, and lie 5 spreads off


@BOTH
@given(problem=problems(samples=(2, 24), width=(1, 30)), penalty=PENALTIES, seed=st.integers(0, 99), weighted=st.booleans())
def test_a_clients_own_ridge_is_the_same_in_primal_and_dual(shared, problem, penalty, seed, weighted):
    X, Y = offset(problem, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(X)) if weighted else None
    roots = None if weights is None else np.sqrt(weights)[:, None]
    own = OwnRidge(with_one(X), roots, Units(0, shared))
    wanted = with_one(X) @ expected(X, Y, penalty, shared, weights)
    assert relative(with_one(X) @ own.solve(Y, penalty), wanted) < SOLVED
    solved, fit = own.solve_with_left_out(Y, penalty)
    assert relative(with_one(X) @ solved, wanted) < SOLVED
    assert relative(fit, own.left_out(Y, penalty)) < 1e-6


@BOTH
@given(problem=problems(samples=(3, 14), width=(1, 20)), penalty=PENALTIES, seed=st.integers(0, 99), weighted=st.booleans())
def test_leaving_a_sample_out_is_solving_without_it(shared, problem, penalty, seed, weighted):
    """In the units of all samples: those are part of the penalty."""
    X, Y = offset(problem, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, len(X)) if weighted else np.ones(len(X))
    fit = OwnRidge(with_one(X), np.sqrt(weights)[:, None] if weighted else None, Units(0, shared)).left_out(Y, penalty)
    mean = weights @ X / weights.sum()
    units = np.ones(X.shape[1]) if shared else np.sqrt(weights @ (X - mean) ** 2 / weights.sum())
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        ridge = Ridge(alpha=penalty, solver="svd").fit(X[rest] / units, Y[rest], sample_weight=weights[rest])
        np.testing.assert_allclose(fit[i], ridge.predict(X[[i]] / units)[0], rtol=0, atol=1e-6 * max(1, abs(Y).max()))


def test_a_column_that_never_varies_has_no_weight(rng):
    X = np.hstack([rng.standard_normal((30, 2)), np.full((30, 1), 1e6), np.zeros((30, 1))])
    Y = X[:, :1] + 5.0
    for weights in (
        PooledRidge.of(gf.Moments.from_features(with_one(X), Y), None, Units(0, False)).weights,
        OwnRidge(with_one(X), None, Units(0, False)).solve(Y, 1e-6),
    ):
        assert abs(weights[3:]).max() * 1e6 < 1e-6
        np.testing.assert_allclose(with_one(X) @ weights, Y, atol=1e-4)


def test_one_sample_is_its_own_mean_and_nothing_is_left_without_it():
    own = OwnRidge(np.array([[1.0, 3.0, 4.0]]), None, Units(0, False))
    weights, fit = own.solve_with_left_out(np.array([[7.0]]), 0.1)
    assert (weights.tolist(), fit.tolist(), own.left_out(np.array([[7.0]]), 0.1).tolist()) == (
        [[7.0], [0.0], [0.0]],
        [[0.0]],
        [[0.0]],
    )


def test_papers_without_an_intercept_are_as_they_were_published(rng):
    X, Y = rng.standard_normal((20, 3)) + 2.0, rng.standard_normal((20, 1))
    total = gf.Moments.from_features(X, Y)
    for ridge in (PooledRidge.of(total, 0.5).weights, OwnRidge(X).solve(Y, 0.5)):
        np.testing.assert_allclose(ridge, np.linalg.solve(X.T @ X + 0.5 * np.eye(3), X.T @ Y), rtol=1e-10)


@pytest.mark.parametrize(
    ("text", "origin", "units"),
    [
        ("bias+linear", None, Units(0, True)), ("bias+linear", TABLE, Units(0, True)),
        ("raw+bias+linear", None, Units(0, None)), ("raw+bias+linear", TABLE, Units(0, False)),
        ("raw+bias+linear", PHOTOS, Units(0, True)), ("raw+linear+bias", TABLE, Units(3, False)),
        ("raw+linear", TABLE, Units(None, False)), ("raw+bias+fourier:4", TABLE, Units(0, True)),
        ("raw+bias+relu:4", TABLE, Units(0, False)), ("raw+bias+linear+fourier:4", None, Units(0, None)),
    ],
)  # fmt: skip
def test_units_follow_from_the_map_and_the_origin(text, origin, units):
    task = gf.federation.Task(3, None, 1, 0, origin=origin)
    assert Space.of(draw(parse(text), 3, 0), task).units() == units


@pytest.mark.parametrize(
    ("origin", "bounded", "features"),
    [
        (TABLE, False, "bias+columns"),
        (None, False, "bias+columns"),
        (PHOTOS, False, "bias+linear"),
        (None, True, "bias+linear"),
    ],
)
def test_whether_rows_are_scaled_follows_from_the_origin(origin, bounded, features):
    for inputs in (3, 4000):
        task = gf.federation.Task(inputs, None, 1, 0, origin=origin)
        kinds = gf.AFL, gf.Local, gf.FedHiP, gf.APFL
        assert {kind().settled(task, bounded=bounded).parameters()["features"] for kind in kinds} == {features}


def test_where_nobody_says_units_follow_from_left_out_evidence(rng):
    X, scale = rng.standard_normal((200, 30)), 10.0 ** rng.uniform(-4, 4, 30)
    y = X @ rng.standard_normal(30) + 0.1 * rng.standard_normal(200)
    total = gf.Moments.from_features(with_one(X * scale), y)
    errors = [
        np.mean((with_one(X * scale) @ PooledRidge.of(total, None, Units(0, s)).weights - y[:, None]) ** 2) for s in (None, False)
    ]
    assert errors[0] == errors[1] < 0.1  # in the columns' own units no penalty would do


def test_a_head_that_is_worse_than_the_mean_says_so(rng):
    data = {}
    for k in range(4):
        X = rng.standard_normal((60, 3))
        data[str(k)] = (X[:40], X[:40, 0] + 100.0 * k, X[40:], X[40:, 0] + 100.0 * k)
    federation = gf.Federation.from_clients(data, regression=True)
    shared, alone = gf.run(gf.AFL(), federation), gf.run(gf.Local(), federation)
    assert all(client.chosen["leave_one_out_r2"] < 0 for client in shared.clients.values())
    assert all(client.chosen["leave_one_out_r2"] > 0.9 for client in alone.clients.values())


@pytest.mark.parametrize("kind", [gf.Local, gf.AFL, gf.FedHiP, gf.APFL, gf.PACE])
def test_many_sensors_with_units_and_offsets_of_their_own_need_no_preparing(kind):
    """Beside scikit-learn's pipeline at each machine; more of it: benchmarks/sensors.py."""
    data = sensors.machines(0, columns=120)
    result = gf.run(kind(), gf.Federation.from_clients(data, regression=True))
    assert result.mean_rmse < 1.1 * sensors.alone(data)
