"""Singular and nearly singular systems: a warning that names the fallback, a finite least-norm answer, never NaN."""

import contextlib
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.solve.dual import ridge_from_rows, ridge_with_left_out
from gramfold.solve.leave_one_out import Kernel
from gramfold.solve.ridge import LeastNorm, Spectrum, factorise, ridge
from gramfold.solve.update import update_solution, update_solution_by_moments
from strategies import problems

FALLBACK = pytest.warns(gf.IllConditionedWarning, match="solved by eigendecomposition")


@contextlib.contextmanager
def quietly():
    """For systems that may or may not be singular: whether they warn is not the point, and nothing else may."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", gf.IllConditionedWarning)
        yield


@given(problems(samples=(6, 30), width=(1, 5)), st.integers(1, 3))
def test_duplicate_columns_give_the_least_norm_solution(problem, copies):
    F = np.hstack([problem.X] * (copies + 1))
    with FALLBACK:
        solution = ridge(F.T @ F, F.T @ problem.Y, 0.0)
    # a gram squares the condition number, so pinv of F is the better half; 1e-6 is sqrt(epsilon) times 1e2
    np.testing.assert_allclose(solution, np.linalg.pinv(F, rcond=1e-7) @ problem.Y, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 10])
def test_features_that_are_all_zero_give_a_zero_head(n):
    rows, targets = np.zeros((n, 4)), np.eye(2)[np.arange(n) % 2]
    with FALLBACK:
        np.testing.assert_array_equal(ridge_from_rows(rows, targets, 0.0), np.zeros((4, 2)))
    with FALLBACK:
        np.testing.assert_array_equal(ridge(rows.T @ rows, rows.T @ targets, 0.0), np.zeros((4, 2)))
    np.testing.assert_array_equal(ridge_from_rows(rows, targets, 1.0), np.zeros((4, 2)))
    kernel = Kernel.of(rows)
    assert kernel.mean_diagonal == 1.0
    np.testing.assert_array_equal(kernel.left_out_residuals(targets, 0.5), targets)


@pytest.mark.parametrize("kind", ["zero", "square", "tall", "wide", "twins"])
@pytest.mark.parametrize("roots", [None, np.sqrt(np.arange(1.0, 7.0))[:, None]], ids=["plain", "weighted"])
def test_a_left_out_fit_without_penalty_is_that_of_the_least_norm(kind, roots):
    rng = np.random.default_rng(0)
    shape = {"square": (6, 6), "tall": (6, 3), "wide": (6, 9)}.get(kind, (6, 4))
    rows = np.zeros(shape) if kind == "zero" else rng.standard_normal(shape)
    rows, targets = np.repeat(rows[:3], 2, 0) if kind == "twins" else rows, rng.standard_normal((6, 2))
    once = np.ones((6, 1)) if roots is None else roots
    with quietly():
        _, fit = ridge_with_left_out(rows * once, targets * once, 0.0, roots)
    for i in range(6):
        others = np.delete(np.arange(6), i)
        expected = rows[i] @ np.linalg.pinv((rows * once)[others]) @ (targets * once)[others]
        np.testing.assert_allclose(fit[i], expected, atol=1e-4)  # a penalty of 1e-12 that stands for none, and rounding over it


def test_one_sample_without_penalty_is_interpolated():
    f, y = np.array([[3.0, 4.0]]), np.array([[1.0]])
    np.testing.assert_allclose(ridge_from_rows(f, y, 0.0), f.T / 25, rtol=1e-15)
    with FALLBACK:
        np.testing.assert_allclose(ridge(f.T @ f, f.T @ y, 0.0), f.T / 25, rtol=1e-12)


def test_the_warning_says_which_system_and_what_to_do():
    with pytest.warns(gf.IllConditionedWarning, match=r"size 3 with penalty 0 .*condition about inf.*[Aa] larger penalty"):
        factorise(np.diag([1.0, 1.0, 0.0]))
    with pytest.warns(gf.IllConditionedWarning, match=r"condition about [1-9]e\+1[5-9]"):
        factorise(np.diag([1.0, 1e-16]))


@given(st.integers(1, 12), st.floats(-20, 0), st.integers(0, 2**32 - 1))
def test_any_spectrum_gives_finite_solutions(m, exponent, seed):
    rng = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(rng.standard_normal((m, m)))
    gram = (vectors * np.logspace(exponent, 0, m)) @ vectors.T
    with quietly():
        solution = ridge(gram, gram @ rng.standard_normal((m, 2)), 0.0)
    assert np.isfinite(solution).all()
    assert np.abs(solution).max() < 1e3  # the true one is of order one; noise over a vanishing eigenvalue would be 1e10


@given(problems(samples=(2, 12), width=(1, 6), clients=(2, 2)), st.floats(0.1, 10))
def test_updating_a_singular_system_stays_the_least_norm_solution(problem, weight):
    # a client's rows are among those of the singular base system, as they always are
    F, Y = np.hstack([problem.X, problem.X]), problem.Y
    own = problem.owners == 0
    with quietly():
        base = factorise(F.T @ F)
        assert isinstance(base, LeastNorm)
        before = base.solve(F.T @ Y)
        after = update_solution(base, before, F[own], Y[own], weight)
        root = np.sqrt(1 + weight * own)[:, None]
        expected = np.linalg.pinv(root * F, rcond=1e-7) @ (root * Y)
        gram, cross = F[own].T @ F[own], F[own].T @ Y[own]
        by_moments = update_solution_by_moments(base, before, gram, cross, weight)
    scale = max(1.0, np.abs(expected).max() ** 2)  # least norms of nearly square problems are as large as they are fragile
    np.testing.assert_allclose(after, expected, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(by_moments, expected, rtol=0, atol=1e-5 * scale)


def degenerate() -> dict[str, gf.Federation]:
    rng = np.random.default_rng(0)
    y, X = np.arange(12) % 2, rng.standard_normal((12, 3))
    split = {"a": slice(0, 7), "b": slice(7, 11), "c": slice(11, 12)}  # the last has one sample

    def federation(X: np.ndarray) -> gf.Federation:
        return gf.Federation.from_clients({k: (X[s], y[s], X, y) for k, s in split.items()}, labels=(0, 1))

    return {
        "duplicate columns": federation(np.hstack([X, X])),
        "all zero": federation(np.zeros((12, 3))),
        "constant": federation(np.ones((12, 3))),
        "identical samples": federation(np.repeat(X[:1], 12, 0)),
        "more features than samples": federation(rng.standard_normal((12, 40))),
        "one client": gf.Federation.from_clients({"a": (X, y, X, y)}),
        "one sample": gf.Federation.from_clients({"a": (X[:1], y[:1], X, y)}, labels=(0, 1)),
    }


METHODS = [
    gf.Local(), gf.AFL(), gf.LocalClasses(), gf.FedHiP(), gf.FedHiP(at="server"), gf.APFL(refinement="relu:8"),
    gf.APFL(refinement="bias+linear"), gf.Local(penalty=0.0), gf.AFL(penalty=0.0), gf.FedHiP(penalty=0.0),
    gf.FedHiP(alpha=1.0, penalty=0.0),
    gf.FedHiP(alpha=1.0, penalty=0.0, at="server"), gf.FedHiP(penalty=0.0, at="server"),
    gf.APFL(penalty=0.0, refinement_penalty=0.0, lam=0.5),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("kind", degenerate())
def test_every_method_gives_finite_heads_on_degenerate_data(method, kind):
    federation = degenerate()[kind]
    with quietly():
        result = gf.run(method, federation)
    for client in federation:
        scores = result.heads[client.name].scores(client.test().inputs)
        assert not np.isnan(scores).any()
        assert np.abs(scores[np.isfinite(scores)]).max() < 1e4  # targets are 0 and 1


@pytest.mark.parametrize("kind", degenerate())
def test_a_refinement_without_penalty_can_still_have_its_weight_chosen(kind):
    with quietly():
        heads = gf.run(gf.APFL(refinement="relu:8", refinement_penalty=0.0), degenerate()[kind]).heads
    assert all(np.isfinite(stream.weights).all() for head in heads.values() for stream in head.streams)


def test_a_spectrum_has_no_negative_eigenvalues():
    rows = np.random.default_rng(0).standard_normal((3, 30))
    assert float(Spectrum.of(rows.T @ rows).values.min()) >= 0.0
