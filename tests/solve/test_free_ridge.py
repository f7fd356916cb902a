"""A ridge whose intercept is free: what it says of a sample that is left out is what it says without it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramfold.solve.free_ridge import FreeRidge


def fitted(rows: np.ndarray, targets: np.ndarray, once: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights and intercept from the normal equations of [1, f]."""
    full = np.column_stack([np.ones(len(rows)), rows])
    system = (full.T * once) @ full + penalty * np.diag([0.0, *np.ones(rows.shape[1])])
    solved = np.linalg.solve(system, (full.T * once) @ targets)
    return solved[1:], solved[0]


@settings(max_examples=25, deadline=None)
@given(n=st.integers(3, 14), m=st.integers(1, 12), gamma=st.floats(0.01, 100.0), weighted=st.booleans(), seed=st.integers(0, 99))
def test_a_left_out_sample_is_told_by_the_others(n, m, gamma, weighted, seed):
    rng = np.random.default_rng(seed)
    rows, targets = rng.standard_normal((n, m)) + 3, rng.standard_normal((n, 2)) - 5
    once = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    ridge = FreeRidge(rows, np.sqrt(once)[:, None] if weighted else None)
    told, coordinates = ridge.fit(targets, gamma)
    weights, intercept = ridge.solution(coordinates)
    expected = fitted(rows, targets, once, gamma * ridge.unit)
    np.testing.assert_allclose(weights, expected[0], atol=1e-8)
    np.testing.assert_allclose(intercept, expected[1], atol=1e-8)
    for i in range(n):
        others = np.arange(n) != i
        w, b = fitted(rows[others], targets[others], once[others], gamma * ridge.unit)
        np.testing.assert_allclose(told[i], rows[i] @ w + b, atol=1e-7)  # residuals over 1 - h


def test_coordinates_are_linear_in_targets(rng):
    ridge = FreeRidge(rng.standard_normal((9, 4)))
    one, other = rng.standard_normal((2, 9, 3))
    both = ridge.fit(2 * one - other, 0.3)
    for part, a, b in zip(both, ridge.fit(one, 0.3), ridge.fit(other, 0.3), strict=True):
        np.testing.assert_allclose(part, 2 * a - b, atol=1e-12)


@pytest.mark.parametrize("rows", [np.zeros((5, 3)), np.ones((5, 3))])
def test_rows_that_say_nothing_leave_the_mean_of_the_others(rows):
    targets = np.arange(5.0)[:, None]
    told, _ = FreeRidge(rows).fit(targets, 1.0)
    np.testing.assert_allclose(told, (10.0 - targets) / 4)
