"""How far a client believes its own class counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gramfold.solve.class_prior import ClassPrior

POOLED = np.array([400, 300, 200, 100, 0])
COUNTS = arrays(np.int64, 5, elements=st.integers(0, 40)).filter(lambda counts: counts.sum() > 0)


def shares(counts: np.ndarray, pooled: np.ndarray = POOLED) -> np.ndarray:
    return np.exp(ClassPrior.of(counts[None], pooled).log_shares[0])


def left_out(counts: np.ndarray, code: int, weight: float = 1.0, fresh: bool = False) -> np.ndarray:
    """The shares that a sample of that class is expected to follow by the others."""
    prior = ClassPrior.of(counts[None], POOLED)
    return np.exp(prior.left_out(np.zeros(1, int), np.array([code]), np.array([weight]), fresh)[0][0])


@given(COUNTS)
def test_it_is_a_distribution_between_its_own_shares_and_everybodys(counts):
    found, own, everybodys = shares(counts), counts / counts.sum(), POOLED / POOLED.sum()
    assert found.sum() == pytest.approx(1.0)
    assert (found > 0).all()
    assert (found >= np.minimum(own, everybodys) - 1e-3).all()  # a pseudo-sample among a thousand
    assert (found <= np.maximum(own, everybodys) + 1e-3).all()


@given(COUNTS, st.integers(0, 4))
def test_leaving_a_sample_out_is_having_one_less(counts, code):
    counts[code] += 1
    fewer = counts - np.eye(5, dtype=int)[code]
    np.testing.assert_allclose(left_out(counts, code), shares(fewer), rtol=1e-8)


@given(COUNTS, st.integers(1, 3))
def test_a_sample_of_weight_w_is_left_out_as_w_samples(counts, weight):
    counts[2] += weight
    np.testing.assert_allclose(left_out(counts, 2, float(weight)), shares(counts - weight * np.eye(5, dtype=int)[2]), rtol=1e-8)


def test_everybodys_mix_is_believed_to_be_that_and_a_mix_of_ones_own_to_stay():
    mixed = shares(POOLED // 10)
    np.testing.assert_allclose(mixed, POOLED / 1000, atol=0.01)
    alone = shares(np.array([0, 0, 0, 100, 0]))
    assert alone[3] > 0.98
    few = shares(np.array([0, 0, 0, 2, 0]))
    assert 0.05 < few[1] < few[3] < 0.9


def test_classes_come_as_often_as_it_says():
    """Clients of 20 samples each, drawn as the prior believes: it foresees their next samples better than counts or shares do."""
    rng = np.random.default_rng(0)
    everybodys, losses = np.ones(10) / 10, []
    for alike in (0.3, 1.0, 30.0):
        for _ in range(60):
            own = rng.dirichlet(alike * np.ones(10))
            counts, later = rng.multinomial(20, own), rng.multinomial(200, own) / 200
            told = [shares(counts, 1000 * everybodys), (counts + 0.1) / 21, everybodys]
            losses.append([-(later * np.log(guess)).sum() for guess in told])
    mean = np.mean(losses, axis=0)
    assert mean[0] < mean[1] - 0.1
    assert mean[0] < mean[2] - 0.1


def test_a_fresh_draw_is_believed_less_than_ones_own_past():
    """Left out of its class, a client's only sample of it: the honest prior gives it more than one that clings to the counts."""
    fresh, clinging = (left_out(np.array([40, 30, 1, 10, 0]), 2, fresh=fresh) for fresh in (True, False))
    assert fresh.sum() == pytest.approx(1.0)
    assert fresh[2] > 1.5 * clinging[2]


@given(st.lists(COUNTS, min_size=1, max_size=4), st.booleans())
def test_clients_side_by_side_are_clients_alone(clients, fresh):
    together = ClassPrior.of(np.stack(clients), POOLED)
    for k, counts in enumerate(clients):
        np.testing.assert_allclose(np.exp(together.log_shares[k]), shares(counts), rtol=1e-12)
    places = [(k, int(code)) for k, counts in enumerate(clients) for code in np.flatnonzero(counts)]
    whose, codes = np.array(places).T
    known, case = together.left_out(whose, codes, np.ones(len(codes)), fresh)
    for i, (k, code) in enumerate(places):
        np.testing.assert_allclose(np.exp(known[case[i]]), left_out(clients[k], code, fresh=fresh), rtol=1e-12)
