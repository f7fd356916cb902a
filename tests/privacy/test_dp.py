"""Noise is of the calibrated size, eps and delta are those of the published table, releases compose, and moments stay usable."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import gramfold as gf
from gramfold.errors import GramfoldError
from gramfold.features import draw, parse
from gramfold.federation import Samples
from gramfold.moments import Implied
from gramfold.privacy import DP, Privacy, SecureSum, composed, dp, graph

pytest.importorskip("cryptography", reason="noise is drawn from a cipher's stream")

MAP = draw(parse("bias+linear"), 8, 0)


@pytest.fixture
def moments(blobs):
    X, y = blobs
    return gf.Moments.from_features(MAP(X), y, 4, MAP.fingerprint)


@pytest.mark.parametrize(("eps", "ratio"), [(0.5, 7.03), (1, 3.73), (2, 1.99), (4, 1.08), (8, 0.60)])
def test_the_calibration_is_that_of_the_published_table(eps, ratio):
    assert round(1 / DP(eps, 1e-5).mu, 2) == ratio


@given(st.floats(0.01, 50), st.floats(1e-12, 0.3))
def test_eps_delta_and_mu_belong_together(eps, delta):
    mu = dp.mu_of(eps, delta)
    assert dp.delta_of(eps, mu) == pytest.approx(delta, rel=1e-6)
    assert dp.eps_of(mu, delta) == pytest.approx(eps, rel=1e-6)


@given(st.floats(0.1, 8), st.integers(1, 30))
def test_releases_compose_as_one_with_their_mu_added_in_squares(eps, count):
    total = composed([DP(eps)] * count, 1e-5)
    assert total == pytest.approx(dp.eps_of(math.sqrt(count) * DP(eps).mu, 1e-5), rel=1e-9)
    assert eps * (1 - 1e-9) <= total <= eps * count * (1 + 1e-9)  # never better than one, never worse than the plain sum


def test_the_budget_is_spent_and_not_exceeded():
    """The blocks' mu, each at its own sensitivity, are in squares the whole."""
    policy, length = DP(2.0), 65.0
    noise = policy.noise(length)
    parts = (length / noise.gram, math.sqrt(length) / noise.cross, 1 / noise.counts)
    assert math.sqrt(sum(mu**2 for mu in parts)) == pytest.approx(policy.mu, rel=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_one_sample_changes_moments_by_no_more_than_their_sensitivity(seed):
    rng = np.random.default_rng(seed)
    length = MAP.implied.length(MAP.dim)
    row = MAP(rng.standard_normal((1, 8)) * rng.choice([1e-3, 1, 1e3], 8))
    vector = gf.Moments.from_features(row, np.array([rng.integers(4)]), 4).vector()
    gram, cross, counts = np.split(vector[:-2], [45, 45 + 36])
    assert np.linalg.norm(gram) <= length * (1 + 1e-12)
    assert np.linalg.norm(cross) <= math.sqrt(length) * (1 + 1e-12)
    assert np.linalg.norm(counts) == 1


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_noise_is_normal_symmetric_and_of_the_calibrated_size(moments, share):
    noise = DP(1.0).noise(MAP.implied.length(MAP.dim))
    drawn = [noise.add(moments, share, bytes([k]) * 32) for k in range(100)]
    assert all((one.gram == one.gram.T).all() for one in drawn)
    expected = {"gram": noise.gram, "cross": noise.cross, "squares": noise.counts}
    for name, deviation in expected.items():
        parts = [np.tril(getattr(one, name) - getattr(moments, name)) if name == "gram" else
                 getattr(one, name) - getattr(moments, name) for one in drawn]  # fmt: skip
        sample = np.concatenate([part[part != 0] for part in parts]) / (deviation * math.sqrt(share))
        assert stats.kstest(sample, "norm").pvalue > 1e-3, name
    assert all(one.exact_n == pytest.approx(one.squares.sum()) for one in drawn)  # n is made of the noisy counts


@pytest.mark.parametrize("clients", [5, 40])
def test_shared_noise_has_the_calibrated_variance_even_with_the_fewest_left(moments, clients):
    policy = Privacy(SecureSum(), DP(1.0))
    fewest = graph.needed(clients, SecureSum().threshold)
    noise = DP(1.0).noise(MAP.implied.length(MAP.dim))
    empty = gf.Moments(MAP.dim, 4, labels=(0, 1, 2, 3), fingerprint=MAP.fingerprint)
    drawn = [sum(policy.noisy(empty, MAP.implied, clients).vector()[:45] for _ in range(fewest)) for _ in range(40)]
    sample = np.concatenate(drawn) / noise.gram
    assert stats.kstest(sample, "norm").pvalue > 1e-6  # drawn anew each time: a red one in a million


@pytest.mark.parametrize("eps", [0.1, 1.0, 100.0])
def test_repaired_moments_are_those_of_some_samples(moments, eps):
    policy = Privacy(dp=DP(eps))
    total = policy.release(policy.noisy(moments, MAP.implied, 1), MAP.implied, 1, 1)
    joint = np.block([[total.gram, total.cross], [total.cross.T, np.diag(total.squares)]])
    values = np.linalg.eigvalsh(joint)
    assert values.min() > -1e-9 * values.max()
    assert total.squares.min() >= 0.5
    assert total.exact_n == total.squares.sum()


def test_noise_is_another_every_time(moments):
    policy = Privacy(dp=DP(1.0))
    one, other = (policy.noisy(moments, MAP.implied, 1).vector()[:-1] for _ in range(2))
    assert not (one == other).any()


def test_what_has_no_bound_or_no_classes_is_refused(moments, rng):
    with pytest.raises(GramfoldError, match="length is bounded"):
        Privacy(dp=DP(1.0)).noisy(moments, Implied(), 1)
    weighted = gf.Moments.from_features(np.eye(3), np.arange(3), 3, weights=np.array([0.5, 1, 2]))
    numbers = gf.Moments.from_features(np.eye(3), rng.standard_normal(3))
    for upload in (weighted, numbers):
        with pytest.raises(GramfoldError, match="for classes"):
            DP(1.0).noise(1.0).add(upload)
    for eps, delta in ((0, 1e-5), (-1, 1e-5), (math.inf, 1e-5), (1, 0), (1, 1)):
        with pytest.raises(GramfoldError, match="eps above 0"):
            DP(eps, delta)


def test_weights_that_sum_to_the_number_of_samples_do_not_pass(blobs):
    """A sample that counts sixty times moves the moments sixty times as far as the noise is made for; n does not tell."""
    X, y = blobs
    weights = np.full(len(y), (len(y) - 60) / (len(y) - 1))
    weights[0] = 60.0
    weighted = gf.Moments.from_features(MAP(X), y, 4, MAP.fingerprint, weights=weights)
    assert abs(weighted.extra_weight) < 1e-9, "the moments alone do not show it"
    policy = Privacy(dp=DP(1.0))
    with pytest.raises(GramfoldError, match="samples without weights"):
        policy.noisy(weighted, MAP.implied, 1, weights)
    federation = gf.Federation.split(X, y, clients=4, partition="iid", random_state=0)

    def weighted_train(client):
        inputs, targets = client.train()
        return lambda: Samples(inputs, targets, np.ones(len(targets)))

    clients = [gf.federation.Client(client.name, weighted_train(client), client.test) for client in federation]
    for secure in (None, SecureSum()):
        with pytest.raises(GramfoldError, match="samples without weights"):
            gf.run(gf.AFL(), gf.Federation(clients, federation.task), secure=secure, dp=DP(1.0))


def test_noise_is_not_added_to_what_was_rounded_before(moments, federation):
    """One sample more may move rounded moments by a whole step: far more than what the noise is made for."""
    for precision in ("int8", "float16", "float32"):
        with pytest.raises(GramfoldError, match="precision='float64'"):
            Privacy(dp=DP(1.0)).noisy(moments.rounded(precision), MAP.implied, 1)
        with pytest.raises(GramfoldError, match=f"these travel in {precision}; leave out precision, or set it to float64"):
            gf.run(gf.PACE(features="bias+linear", precision=precision), federation, dp=DP(1.0))


@pytest.mark.parametrize("known", [5, 3000, None])
def test_a_sites_share_of_the_noise_goes_by_the_sites_that_it_knows(known):
    policy = Privacy(SecureSum(), DP(1.0))
    assert policy.share(known) == (1.0 if known is None else 1 / graph.needed(known, 2 / 3))
    assert Privacy(dp=DP(1.0)).share(known) == 1.0


def test_noise_of_which_some_add_all_is_taken_for_what_it_is(moments):
    """The floor of the repaired moments follows the noise that is in the sum, not what would be if all knew each other."""
    policy = Privacy(SecureSum(), DP(1.0))
    total = sum((policy.noisy(moments, MAP.implied, None) for _ in range(3)), policy.noisy(moments, MAP.implied, 4))
    low, high = (np.linalg.eigvalsh(policy.release(total, MAP.implied, 4, 4, variance).gram)[0] for variance in (None, 3 + 1 / 3))
    assert high > low
