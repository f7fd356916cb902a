"""A sample left out of the shared discriminant, beside the discriminant that was made without it."""

import numpy as np
import pytest

from gramfold.solve.discriminant import Discriminant, Place
from gramfold.solve.evidence import Cosine, Gaussian
from gramfold.solve.leave_one_out import mean_leverage
from gramfold.solve.left_out_discriminant import LeftOutDiscriminant
from gramfold.solve.ridge import factorise

CLASSES, PENALTY = 12, 3.0


@pytest.fixture
def samples(rng):
    codes = rng.integers(0, CLASSES, 400)
    rows = rng.normal(size=(CLASSES, 30))[codes] * 0.5 + rng.normal(size=(400, 30))
    return np.column_stack([np.ones(400), rows]), codes


def solved(rows: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, Discriminant, np.ndarray]:
    """The ridge's weights, the discriminant of its scores, and every row's leverage."""
    factor, targets = factorise(rows.T @ rows, PENALTY), np.eye(CLASSES)[codes]
    weights, counts = factor.solve(rows.T @ targets), np.bincount(codes, minlength=CLASSES)
    leverage = mean_leverage(factor, PENALTY, len(rows))
    found = Discriminant.from_moments(weights, rows.T @ targets, PENALTY, counts, leverage)
    return weights, found, (factor.solve_lower(rows.T) ** 2).sum(0)


def left_out_scores(rows: np.ndarray, codes: np.ndarray, weights: np.ndarray, leverages: np.ndarray) -> np.ndarray:
    targets = np.eye(CLASSES)[codes]
    return targets - (targets - rows @ weights) / (1.0 - leverages)[:, None]


def left_out(
    shared: Discriminant, counts: np.ndarray, scores: np.ndarray, codes: np.ndarray, once: np.ndarray, leverages: np.ndarray
) -> LeftOutDiscriminant:
    return LeftOutDiscriminant.of(shared, counts.astype(float), scores, np.eye(CLASSES)[codes], codes, once, leverages)


def said(place: Place) -> np.ndarray:
    """The evidence of many classes (2 x n x C)."""
    return np.stack([Cosine()(place), Gaussian()(place)])


def test_it_is_close_to_the_discriminant_made_without_the_sample(samples):
    rows, codes = samples
    weights, shared, leverages = solved(rows, codes)
    scores, counts = left_out_scores(rows, codes, weights, leverages), np.bincount(codes, minlength=CLASSES)
    place = left_out(shared, counts, scores, codes, np.ones(len(codes)), leverages).place(scores)
    quick, kept = said(place), said(shared.place(scores))
    off, off_kept, off_scored = [], [], []
    for i in range(0, len(codes), 4):
        others = np.arange(len(codes)) != i
        fewer, without, _ = solved(rows[others], codes[others])
        exact = said(without.place((rows[i] @ fewer)[None]))[:, 0]
        # evidence counts up to a constant: that of its class against the mean of all
        against = [part[:, codes[i]] - part.mean(1) for part in (exact, quick[:, i], kept[:, i])]
        off.append(against[1] - against[0])
        off_kept.append(against[2] - against[0])
        off_scored.append(against[0])
    bias, bias_kept, size = (np.abs(np.mean(parts, axis=0)) for parts in (off, off_kept, off_scored))
    assert (bias < 0.25 * bias_kept).all()
    assert (bias < 0.02 * size).all()
    assert (np.abs(off).mean(0) < 0.5 * np.abs(off_kept).mean(0)).all()


def test_a_sample_that_counts_twice_is_two_samples(samples):
    rows, codes = samples
    _, shared, leverages = solved(rows, codes)
    scores, counts = np.eye(CLASSES)[codes] * 0.4 + 0.05, np.bincount(codes, minlength=CLASSES)
    twice = left_out(shared, counts, scores, codes, np.full(len(codes), 2.0), leverages)
    once = left_out(shared, counts, scores, codes, np.ones(len(codes)), leverages)
    own = shared.centroids[codes]
    mine = counts[codes][:, None]
    # with all their weight: the sum of the class loses twice as much
    np.testing.assert_allclose((mine - 2) * twice.without - mine * own, 2 * ((mine - 1) * once.without - mine * own), atol=1e-8)
    np.testing.assert_allclose(twice.moves, 2 * once.moves)


def test_of_a_class_that_nobody_else_has_nothing_is_known(samples):
    rows, codes = samples
    codes = np.where(codes == 3, 4, codes)
    codes[7] = 3
    weights, shared, leverages = solved(rows, codes)
    scores, counts = left_out_scores(rows, codes, weights, leverages), np.bincount(codes, minlength=CLASSES)
    place = left_out(shared, counts, scores, codes, np.ones(len(codes)), leverages).place(scores)
    found = said(place)
    assert np.isfinite(found).all()
    assert found[0, 7, 3] == 0.0
