"""Moments in fewer bits: moments of samples still, as far from the exact ones as they say, and the same on both sides."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import MomentsError
from gramfold.moments import check_consistent, check_implied
from gramfold.moments.implied import Implied
from gramfold.wire import Packet

ROUNDED = ("float32", "float16", "int8")
OFF = {"float32": 1e-6, "float16": 2e-3, "int8": 0.1}
"""The most that an entry is off on such data: twice the last digit of a factor, and for int8 a step of its largest number."""


def some(n: int, m: int, seed: int = 0, weights: bool = False) -> gf.Moments:
    """Columns of very different size, one of ones, one twice, and a class that nobody has."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, m)) * 10.0 ** rng.integers(-6, 6, m)
    F[:, 0] = 1.0
    if m > 4:
        F[:, 4] = F[:, 3]
    return gf.Moments.from_features(F, rng.integers(0, 3, n), classes=4, weights=rng.uniform(0, 3, n) if weights else None)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(1, 30), st.integers(0, 9), st.sampled_from(ROUNDED), st.booleans())
def test_a_gram_is_off_by_no_more_than_it_says(n, m, seed, precision, weights):
    exact = some(n, m, seed, weights)
    less = exact.rounded(precision)
    lengths, targets = np.sqrt(exact.gram.diagonal()), np.sqrt(exact.squares)
    lost = np.abs(less.gram - exact.gram)
    assert (lost <= (less.rounding + 1e-12) * np.outer(lengths, lengths)).all()
    assert (np.abs(less.cross - exact.cross) <= (less.rounding + 1e-9) * np.outer(lengths, targets)).all()
    assert less.rounding <= OFF[precision]
    np.testing.assert_allclose(less.gram.diagonal(), exact.gram.diagonal(), rtol=1e-12)
    np.testing.assert_array_equal(less.squares, exact.squares)
    assert (less.n, less.weight) == (exact.n, exact.weight)


@pytest.mark.parametrize("n", [7, 40])
@pytest.mark.parametrize("precision", ROUNDED)
def test_both_sides_of_a_message_have_the_same_and_lies_are_still_found(n, precision):
    less = some(n, 20).rounded(precision)
    data = less.pack().to_bytes()
    assert len(data) == less.wire_bytes
    there = gf.Moments.unpack(Packet.from_bytes(data))
    np.testing.assert_array_equal(there.gram, less.gram)
    np.testing.assert_array_equal(there.cross, less.cross)
    assert there.rounding == less.rounding
    check_consistent(there)
    check_implied(there, Implied(ones=(0,)))
    with pytest.raises(MomentsError):
        check_implied(there, Implied(ones=(1,)))


def test_fewer_bits_are_fewer_bytes_and_the_sum_is_exact():
    exact = [some(200, 100, seed) for seed in range(3)]
    sizes = [exact[0].rounded(precision).wire_bytes for precision in ("float64", *ROUNDED)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[3] < 0.2 * sizes[0]
    less = [moments.rounded("float16") for moments in exact]
    one, other = less[0] + less[1] + less[2], less[2] + less[1] + less[0]
    np.testing.assert_allclose(one.gram, other.gram, rtol=1e-12)
    assert one.rounding == max(moments.rounding for moments in less)
    assert one.rounded_factor is None, "a sum travels with all its digits"
    assert one.pack().meta["form"] == "triangle"


def test_none_are_rounded_to_none():
    nothing = gf.Moments(5, 3, labels=(0, 1, 2))
    assert nothing.rounded("int8") is nothing
    assert some(5, 3).rounded("float64").rounding == 0.0
    with pytest.raises(gf.GramfoldError, match="float16"):
        some(5, 3).rounded("float8")


@pytest.mark.parametrize(
    "change",
    [{"precision": "float64"}, {"precision": "int4"}, {"rounding": 0.5}, {"rounding": -1.0}, {"n": 0}, {"n": 9}, {"n": 7.5}],
    ids=str,
)
def test_a_message_that_does_not_add_up_is_refused(change):
    packet = some(7, 20).rounded("int8").pack()
    with pytest.raises(gf.GramfoldError, match="moments"):
        gf.Moments.unpack(Packet(packet.arrays, {**packet.meta, **change}))


@pytest.mark.parametrize("name", ["factor", "targets", "lengths", "target_lengths", "diagonal", "units"])
def test_an_array_of_another_size_or_type_is_refused(name):
    packet = some(7, 20).rounded("int8").pack()
    for wrong in (packet[name][:-1], packet[name].astype(np.int64)):
        with pytest.raises(gf.GramfoldError, match="moments"):
            gf.Moments.unpack(Packet({**packet.arrays, name: wrong}, packet.meta))
    endless = packet["lengths"] * np.inf
    with pytest.raises(gf.GramfoldError):
        gf.Moments.unpack(Packet({**packet.arrays, "lengths": endless}, packet.meta))
