"""A client's own kernel ridge: what it says of left-out samples, of weights, and of its gradients."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gramfold.solve import own_kernel
from gramfold.solve.own_kernel import PENALTIES, KernelFit, fit_kernel, squared_distances


def samples(seed: int, n: int, d: int = 3, outputs: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d))
    targets = np.sin(2 * points[:, :1]) + rng.standard_normal((n, outputs)) * 0.3
    return points, targets


def ridge_at(points: np.ndarray, targets: np.ndarray, fit: KernelFit, at: np.ndarray) -> np.ndarray:
    """Kernel ridge with a free intercept by its saddle-point system, with the width and penalty of another fit."""
    n = len(points)
    kernel = np.exp(-squared_distances(points, points) / fit.scale)
    system = np.block([[kernel + fit.penalty * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.concatenate([targets, np.zeros((1, targets.shape[1]))]))
    return np.exp(-squared_distances(at, points) / fit.scale) @ solved[:n] + solved[n]


@pytest.fixture(autouse=True)
def _sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Penalties for which the plain ways of computing the same have ten digits."""
    monkeypatch.setattr(own_kernel, "PENALTIES", PENALTIES[PENALTIES > 1e-4])


TELLING = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.integers(0, 1000), st.integers(6, 20), st.integers(1, 3))
@TELLING
def test_left_out_is_fitted_without(seed: int, n: int, outputs: int) -> None:
    points, targets = samples(seed, n, outputs=outputs)
    fit = fit_kernel(points, targets)
    for i in range(n):
        others = np.arange(n) != i
        alone = ridge_at(points[others], targets[others], fit, points[[i]])[0]
        assert fit.left_out[i] == pytest.approx(alone, rel=1e-7, abs=1e-9)
    assert fit.error == pytest.approx(((targets - fit.left_out) ** 2).sum() / n)


@given(st.integers(0, 1000))
@TELLING
def test_predictions_are_those_of_a_free_intercept(seed: int) -> None:
    points, targets = samples(seed, 15)
    fit, new = fit_kernel(points, targets), np.random.default_rng(seed + 1).standard_normal((5, 3))
    expected = ridge_at(points, targets, fit, new)
    np.testing.assert_allclose(fit(new), expected, atol=1e-9)
    moved = fit_kernel(points + 3.0, targets + 7.0)
    np.testing.assert_allclose(moved(new + 3.0), fit(new) + 7.0, atol=1e-7)


@given(st.integers(0, 1000))
@TELLING
def test_gradients_are_differences(seed: int) -> None:
    points, targets = samples(seed, 20, outputs=2)
    fit = fit_kernel(points, targets)
    steep = max(abs(fit.coefficients).max(), 1.0)
    gradients = fit.gradients(points)
    for j in range(points.shape[1]):
        step = np.eye(points.shape[1])[j] * 1e-5
        difference = (fit(points + step) - fit(points - step)) / 2e-5
        np.testing.assert_allclose(gradients[:, :, j].T, difference, atol=1e-7 * steep)


@given(st.integers(0, 1000))
@TELLING
def test_a_weight_of_two_is_two_samples(seed: int) -> None:
    points, targets = samples(seed, 12)
    weights = np.ones(12)
    weights[:4] = 2.0
    weighted = fit_kernel(points, targets, weights)
    twice = np.concatenate([points, points[:4]])
    doubled = own_kernel._Spectrum.of(
        squared_distances(twice, twice), twice, weighted.scale, np.full(16, 1 / 16), np.ones((16, 1))
    )
    both = np.concatenate([targets, targets[:4]])
    coefficients = doubled.coefficients(both - both.mean(0), weighted.penalty)
    offset = both.mean(0) - (doubled.kernel @ coefficients).mean(0)
    plain = KernelFit(weighted.width, weighted.penalty, 0.0, 1.0, both, twice, coefficients, offset, weighted.scale)
    np.testing.assert_allclose(weighted(points), plain(points), atol=1e-9)


def test_landmarks_that_are_all_samples_change_nothing() -> None:
    points, targets = samples(5, 60)
    share, roots, scale = np.full(60, 1 / 60), np.ones((60, 1)), 4.0
    plain = own_kernel._Spectrum.of(squared_distances(points, points), points, scale, share, roots)
    order = np.concatenate([points, points[:1]])  # one landmark twice: as many as samples and one
    through = own_kernel._Spectrum.of(squared_distances(points, order), order, scale, share, roots)
    centred = targets - targets.mean(0)
    penalty = float(PENALTIES[12])
    expected = plain.kernel @ plain.coefficients(centred, penalty)
    found = through.kernel @ through.coefficients(centred, penalty)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-4)


def test_a_large_client_is_fitted_by_landmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    points, targets = samples(7, 300, d=1)
    whole = fit_kernel(points, targets)
    monkeypatch.setattr(own_kernel, "LANDMARKS", 60)
    few = fit_kernel(points, targets)
    assert len(few.landmarks) == 60
    assert few.error == pytest.approx(whole.error, rel=0.05)


def test_targets_that_are_all_alike_are_explained_by_nothing() -> None:
    points, _ = samples(1, 10)
    fit = fit_kernel(points, np.full((10, 1), 3.0))
    assert fit.gain == 0.0
    np.testing.assert_allclose(fit(points), 3.0)
