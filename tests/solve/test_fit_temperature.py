"""One number turns scores into probabilities: that of greatest likelihood, and finite however right or wrong the scores are."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from gramfold.solve.temperature import fit_temperature


def scored(n: int, classes: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of which softmax(sharpness * score) is the truth."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n, classes))
    truth = np.exp(log_softmax(sharpness * scores, axis=1))
    return scores, np.array([rng.choice(classes, p=row) for row in truth])


@pytest.mark.parametrize("sharpness", [0.5, 2.0, 8.0])
def test_it_is_the_optimum(sharpness):
    scores, codes = scored(4000, 5, sharpness)
    found = fit_temperature(scores, codes, doubt=0.0)

    def loss(log_sharpness: float) -> float:
        return -float(log_softmax(np.exp(log_sharpness) * scores, axis=1)[np.arange(len(codes)), codes].sum())

    best = minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-8})
    assert found == pytest.approx(np.exp(-best.x), rel=1e-4)  # where a likelihood is flat, so is its minimiser
    assert found == pytest.approx(1 / sharpness, rel=0.1)  # 4,000 draws


def test_units_of_scores_do_not_matter():
    scores, codes = scored(200, 3, 2.0)
    assert fit_temperature(1e6 * scores, codes) == pytest.approx(1e6 * fit_temperature(scores, codes), rel=1e-6)


@pytest.mark.parametrize("codes", [np.arange(20) % 3, (np.arange(20) + 1) % 3], ids=["always right", "always wrong"])
def test_scores_without_a_mistake_or_without_a_hit_give_a_finite_temperature(codes):
    scores = 5.0 * np.eye(3)[np.arange(20) % 3]
    found = fit_temperature(scores, codes)
    assert 0 < found < np.inf


def test_no_samples_and_no_spread():
    assert fit_temperature(np.zeros((0, 3)), np.zeros(0, int)) == 1.0
    assert fit_temperature(np.ones((4, 3)), np.zeros(4, int)) == 1.0
