"""Figures of a float64 prototype on real features, reached again. No paper prints them: published figures are of other features,
and stand in gramfold/bench/published.py. Skipped where the development data is not beside the project."""

from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold.federation import load_npz

DATA = Path(__file__).parents[2] / "shared" / "data" / "cifar100-dinov2s.npz"
pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.exists(), reason="development data (shared/data/cifar100-dinov2s.npz) is not beside the project"),
]

# Mean client accuracy, 100 clients, dirichlet:0.1. The prototype picked alpha, lambda and gamma on the test data; ours are chosen
# without it, which is why a point and a half is allowed.
PROTOTYPE = {"afl": 60.3, "fedhip": 76.7, "apfl": 78.1}


@pytest.fixture(scope="module")
def federation() -> gf.Federation:
    return gf.Federation.from_dataset(load_npz(DATA), clients=100, partition="dirichlet:0.1", random_state=0)


@pytest.mark.parametrize("method", [gf.AFL(), gf.FedHiP(), gf.APFL()], ids=lambda method: method.name)
def test_the_analytic_methods_reach_the_prototype(method, federation):
    result = gf.run(method, federation, keep_heads=False)
    assert 100 * result.mean_accuracy == pytest.approx(PROTOTYPE[method.name], abs=1.5)


def test_pace_beats_apfl_by_far_estimates_its_accuracy_and_is_calibrated(federation):
    result = gf.run(gf.PACE(features="bias+linear"), federation, keep_heads=False)
    assert 100 * result.mean_accuracy > PROTOTYPE["apfl"] + 4
    same_shares = [client.chosen["leave_one_out_accuracy_same_shares"] for client in result.clients.values()]
    assert abs(np.mean(same_shares) - result.mean_accuracy) < 0.01  # test images are cut in the shares of the training images
    assert result.calibration_error < 0.05


def test_the_uplink_is_a_fraction_of_the_released_protocols(federation):
    """AFL's released code sends W (m x C), R and C (m x m each) in float64."""
    m, classes = 769, 100
    released = 8 * (m * classes + 2 * m * m)
    result = gf.run(gf.AFL(penalty=1.0), federation, keep_heads=False)
    assert result.uplink_bytes / len(federation) <= released / 4
