"""What clients take out of their targets before they are folded."""

import numpy as np
import pytest

import gramfold as gf
from gramfold.methods.parts import own_part
from gramfold.methods.parts.influence import OfSketch, Sketch
from gramfold.methods.parts.pace_regressor import Regression


def sites(rng, slopes=0.0, n=1800, count=6):
    """A curve that all share, an offset of each site, and perhaps a slope of its own."""
    X = rng.standard_normal((n, 4)) * [1.0, 10.0, 0.1, 5.0]
    site = np.arange(n) % count
    y = np.sin(2 * X[:, 0]) + X[:, 1] / 10 + 3 * rng.standard_normal(count)[site]
    y += slopes * rng.standard_normal(count)[site] * X[:, 3] / 5 + 0.3 * rng.standard_normal(n)
    return X, y, site


def off(method, X, y, site):
    """The error of personal heads on every third sample."""
    test = np.arange(len(X)) // len(np.unique(site)) % 3 == 0
    parts = {str(s): (X[(site == s) & ~test], y[(site == s) & ~test]) for s in np.unique(site)}
    result = gf.run(method, gf.Federation.from_clients(parts, regression=True, test=0.0))
    left = [y[(site == s) & test] - result.heads[str(s)].predict(X[(site == s) & test]) for s in np.unique(site)]
    return float(np.sqrt(np.mean(np.concatenate(left) ** 2))), result


@pytest.mark.parametrize("slopes", [0.0, 2.0])
def test_what_sites_share_is_found_better_without_what_they_do_not(rng, slopes):
    data = sites(rng, slopes)
    taken, result = off(gf.PACE(), *data)
    left_in, _ = off(gf.PACE(own_parts=False), *data)
    assert taken < left_in
    assert taken < 0.45  # the noise is 0.3
    # strangers have no offset that is known: what they are told is off by as much as sites differ
    assert float(result.global_head.errors.spread[0]) > 1.0


def test_without_it_no_head_depends_on_how_the_others_are_cut(rng):
    X, y, site = sites(rng, count=3)
    method = gf.PACE(own_parts=False)
    heads = []
    for cut in (site, np.where(site == 2, 1, site)):
        parts = {str(s): (X[cut == s], y[cut == s]) for s in np.unique(cut)}
        heads.append(gf.run(method, gf.Federation.from_clients(parts, regression=True, test=0.0)).heads["0"])
    np.testing.assert_allclose(heads[0].predict(X), heads[1].predict(X), atol=1e-8)


def test_noise_is_no_part_of_ones_own(rng):
    plain = np.column_stack([np.ones(60), rng.standard_normal((60, 5))])
    parts = [own_part.fitted(plain, rng.standard_normal((60, 1)), None) for _ in range(50)]
    assert all((part[1:] == 0).all() for part in parts)
    assert np.mean([part[0, 0] ** 2 for part in parts]) < 1 / 60
    certain = own_part.fitted(plain, plain @ np.arange(6.0)[:, None] + 0.1 * rng.standard_normal((60, 1)), None)
    np.testing.assert_allclose(certain[:, 0], np.arange(6.0), atol=0.2)


def test_weights_of_samples_count_as_often(rng):
    plain, left = np.column_stack([np.ones(30), rng.standard_normal((30, 2))]), 1 + rng.standard_normal((30, 1))
    twice = own_part.fitted(np.repeat(plain, 2, 0), np.repeat(left, 2, 0), None)
    np.testing.assert_allclose(own_part.fitted(plain, left, np.full((30, 1), np.sqrt(2))), twice, atol=1e-9)


def test_a_client_of_few_samples_adds_a_mean_and_one_of_many_the_best(rng):
    for n, most in ((8, 0.9), (400, 1.0)):
        rows = rng.standard_normal((n, 3))
        targets = rows[:, :1] + 0.5 * rng.standard_normal((n, 1))
        regression = Regression(rows, targets, targets * 0, None)
        found = regression.choose(OfSketch(Sketch(np.zeros((3, 1))), rows), targets, True, None)
        assert found.refinement is not None
        assert abs(found.refinement[0][0, 0]) <= most + 0.2
        assert found.left_out.shape == (n, 1)
