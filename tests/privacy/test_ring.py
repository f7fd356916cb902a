"""Fixed point: what fits is exact to its last bit, what does not is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.errors import GramfoldError
from gramfold.privacy import ring, shamir
from gramfold.privacy.ring import FRACTION, Block, FixedPoint

SMALL, LARGE = st.floats(-1000, 1000), st.floats(-(2.0**60), 2.0**60)


def exact(words: np.ndarray) -> list[int]:
    """Ring elements as Python's integers, with their sign."""
    bits = 64 * len(words)
    unsigned = [sum(int(word) << (64 * i) for i, word in enumerate(words[:, k])) for k in range(words.shape[1])]
    return [value - (1 << bits) if value >> (bits - 1) else value for value in unsigned]


@given(st.sampled_from([(1, SMALL), (2, SMALL), (2, LARGE)]).flatmap(lambda at: st.tuples(st.just(at[0]), st.lists(at[1]))))
def test_a_number_is_rounded_once_to_the_nearest(given_):
    words, values = given_
    vector = np.array(values, float)
    found = exact(ring.to_words(vector, words))
    for value, element in zip(values, found, strict=True):
        assert abs(Fraction(value) * 2 ** FRACTION[words] - element) <= Fraction(1, 2)
    back = ring.from_words(ring.to_words(vector, words))
    np.testing.assert_allclose(back, vector, rtol=2.0**-52, atol=2.0 ** -FRACTION[words])


@given(st.sampled_from([1, 2]), st.integers(0, 2**32 - 1))
def test_adding_and_subtracting_are_those_of_the_integers(words, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 2**64, (words, 20), np.uint64) for _ in range(2))
    b[0, :5], b[:, 5:10] = np.uint64(2**64 - 1), 0
    plus, minus = a.copy(), a.copy()
    ring.add(plus, b)
    ring.subtract(minus, b)
    modulus = 1 << (64 * words)
    for i, (x, y) in enumerate(zip(exact(a), exact(b), strict=True)):
        assert (exact(plus)[i] - x - y) % modulus == 0
        assert (exact(minus)[i] - x + y) % modulus == 0
    ring.subtract(plus, b)
    assert (plus == a).all()
    ring.add(plus, ring.negative(a))
    assert not plus.any()


@given(st.integers(2, 1000), st.lists(st.floats(1e-3, 1e15), min_size=1, max_size=4))
def test_whatever_clients_may_send_their_sum_fits(clients, mosts):
    plan = FixedPoint.plan([Block(2, most) for most in mosts], clients)
    extreme = np.repeat(mosts, 2) * np.tile([1, -1], len(mosts))
    total = np.zeros((plan.words, plan.size), np.uint64)
    element = plan.encode(extreme)
    for _ in range(clients):
        ring.add(total, element)
    np.testing.assert_allclose(plan.decode(total), clients * extreme, rtol=1e-12)
    with pytest.raises(GramfoldError, match="beyond the range"):
        plan.encode(extreme * (1 + 1e-9))


def test_the_ring_is_as_wide_as_its_range_needs():
    assert FixedPoint.plan([Block(1, 10.0), Block(1, 1.0)], 100).words == 1
    assert FixedPoint.plan([Block(1, 1000.0)], 100).words == 2
    open_ended = FixedPoint.plan([Block(3, None)], 8)
    assert (open_ended.words, open_ended.blocks[0].most) == (2, pytest.approx(2.0**60))
    with pytest.raises(GramfoldError, match="does not fit 128 bits"):
        FixedPoint.plan([Block(1, 2.0**62)], 3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_what_is_no_number_within_the_range_is_refused(bad):
    with pytest.raises(GramfoldError, match="beyond the range"):
        FixedPoint.plan([Block(2, None)], 3).encode(np.array([0.0, bad]))


def test_vectors_of_another_length_are_refused():
    plan = FixedPoint.plan([Block(2, 1.0)], 3)
    with pytest.raises(GramfoldError, match="plan has 2"):
        plan.encode(np.zeros(3))
    with pytest.raises(GramfoldError, match="plan has"):
        plan.decode(np.zeros((1, 3), np.uint64))


@given(st.binary(min_size=32, max_size=32), st.integers(1, 12), st.data())
def test_as_many_shares_as_the_threshold_give_the_secret_and_one_fewer_do_not(secret, threshold, data):
    places = list(range(1, data.draw(st.integers(threshold, 15)) + 1))
    shares = dict(zip(places, shamir.split(secret, places, threshold), strict=True))
    some = data.draw(st.permutations(places))[:threshold]
    assert shamir.join({place: shares[place] for place in some}) == secret
    if threshold > 1:
        assert _joined({place: shares[place] for place in some[1:]}) != secret  # by chance, once in 2^256


def _joined(shares):
    try:
        return shamir.join(shares)
    except GramfoldError:
        return None


def test_a_threshold_that_cannot_be_met_is_refused():
    for places, threshold in (([1, 2], 3), ([1, 1], 1), ([0, 1], 1), ([1], 0)):
        with pytest.raises(GramfoldError, match="cannot share"):
            shamir.split(bytes(32), places, threshold)
