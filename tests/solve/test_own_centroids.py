"""Where the classes lie at a client: a conjugate posterior, and each sample left out of it."""

import numpy as np
import pytest

from gramfold.solve.discriminant import Discriminant
from gramfold.solve.own_centroids import SCATTER, LeftOut, OwnCentroids, Sums

CLASSES, SAMPLES = 4, 60
COUNTS = np.array([30, 20, 25, 25])
WORTH = 30.0


@pytest.fixture
def shared():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((100, 6))
    targets = np.eye(CLASSES)[np.repeat(np.arange(CLASSES), COUNTS)]
    rows += targets @ rng.standard_normal((CLASSES, 6))
    gram = rows.T @ rows + np.eye(6)
    weights = np.linalg.solve(gram, rows.T @ targets)
    return Discriminant.from_moments(weights, rows.T @ targets, 1.0, COUNTS, 0.05)


def told(shared: Discriminant, seed: int = 0) -> LeftOut:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, CLASSES, (1, SAMPLES))
    scores = 0.3 * rng.standard_normal((1, SAMPLES, CLASSES)) + 0.7 * np.eye(CLASSES)[codes]
    once = rng.integers(1, 3, (1, SAMPLES)).astype(float)
    found = LeftOut.without(shared, scores, np.eye(CLASSES)[codes], codes, once)
    q = found.places.shape[-1]
    return LeftOut(scores, found.targets, codes, once, found.places, np.zeros((1, SAMPLES, CLASSES + q)), np.zeros((1, SAMPLES)))


def posterior(shared: Discriminant, places: np.ndarray, codes: np.ndarray, once: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centroids and covariance, from the definition."""
    prior = shared.centroids
    means = np.array(
        [(once[codes == j] @ places[codes == j] + WORTH * prior[j]) / (once[codes == j].sum() + WORTH) for j in range(CLASSES)]
    )
    left, moved = places - means[codes], means - prior
    scatter = SCATTER * WORTH * np.eye(places.shape[1]) + (left.T * once) @ left + WORTH * moved.T @ moved
    return means, scatter / (once.sum() + SCATTER * WORTH)


def test_centroids_and_scatter_are_the_conjugate_posterior(shared):
    samples = told(shared)
    own = OwnCentroids.of(shared, COUNTS, samples.sums, np.array([WORTH]))
    means, covariance = posterior(shared, samples.places[0], samples.codes[0], samples.once[0])
    np.testing.assert_allclose(own.scatter.solve(covariance[None])[0], np.eye(len(covariance)), rtol=1e-9, atol=1e-9)
    found, scores = own.discriminants([0])[0], samples.scores[0]
    gaussian = found.place(scores).products - 0.5 * found.place(scores).squares
    inverse = np.linalg.inv(covariance)
    wanted = samples.places[0] @ inverse @ means.T - 0.5 * np.einsum("jq,qr,jr->j", means, inverse, means)
    apart = gaussian - wanted  # but for a constant of each sample
    np.testing.assert_allclose(apart, apart[:, :1] + 0 * apart, atol=1e-8)


def test_a_sample_is_left_out_exactly_where_it_moved_no_other(shared):
    samples = told(shared)
    own = OwnCentroids.of(shared, COUNTS, samples.sums, np.array([WORTH]))
    at, places, codes, once = own.place(samples), samples.places[0], samples.codes[0], samples.once[0]
    told_so = at.products[0] - 0.5 * at.squares[0]
    for i in (0, 17, 42):
        rest = np.arange(SAMPLES) != i
        means, covariance = posterior(shared, places[rest], codes[rest], once[rest])
        # of the scatter about the prior nothing is lost but its share: the posterior's k / (k - 1) d d' says all of it
        inverse = np.linalg.inv(covariance)
        wanted = places[i] @ inverse @ means.T - 0.5 * np.einsum("jq,qr,jr->j", means, inverse, means)
        np.testing.assert_allclose(told_so[i] - told_so[i, 0], wanted - wanted[0], rtol=1e-6, atol=1e-8)


def test_a_client_that_keeps_to_the_shared_centroids_has_the_shared_places(shared):
    samples = told(shared)
    own = OwnCentroids.of(shared, np.ones(CLASSES), samples.sums, np.array([1e12]))
    found, at = own.place(samples), shared.place(samples.scores[0])
    gaussian, wanted = found.products[0] - 0.5 * found.squares[0], at.products - 0.5 * at.squares
    apart = gaussian - wanted
    np.testing.assert_allclose(apart, apart[:, :1] + 0 * apart, atol=1e-6)


def test_sums_of_moments_are_those_of_left_out_scores(shared):
    rng = np.random.default_rng(3)
    rows, codes = rng.standard_normal((SAMPLES, 6)), rng.integers(0, CLASSES, SAMPLES)
    targets, weights, leverage = np.eye(CLASSES)[codes], rng.standard_normal((6, CLASSES)), 0.2
    left_out = (rows @ weights - leverage * targets) / (1 - leverage)
    alone = LeftOut.without(shared, left_out[None], targets[None], codes[None], np.ones((1, SAMPLES))).sums
    folded = Sums.of_moments(shared, weights, rows.T @ rows, rows.T @ targets, targets.sum(0), leverage)
    for name in ("counts", "of_class", "products"):
        np.testing.assert_allclose(getattr(folded, name), getattr(alone, name), rtol=1e-8, atol=1e-8)


def test_class_means_differ_only_where_they_do(shared):
    rng = np.random.default_rng(1)

    def apart(shift: float) -> float:
        codes = rng.integers(0, CLASSES, 400)
        places = shared.centroids[codes] + rng.standard_normal((400, shared.centroids.shape[1]))
        places += shift * np.random.default_rng(5).standard_normal(shared.centroids.shape)[codes]
        weighed = np.eye(CLASSES)[codes].T
        sums = Sums(weighed.sum(1)[None], (weighed @ places)[None], (places.T @ places)[None])
        return float(sums.differ(shared)[0])

    assert np.mean([apart(0.0) for _ in range(20)]) < 1.0
    assert apart(1.0) > 10.0
