"""Broadcasts in fewer bits: what is computed with is what travels."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramfold import features
from gramfold.features import Bias, Block, Fourier, Metric, MetricMap
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet
from gramfold.wire.digits import SMALL, narrowed, rounded
from gramfold.wire.record import Record

OFF = {"float32": 2.0**-24, "float16": 2.0**-11, "int8": 2.0**-11}
"""Of a number: half of the last digit. Below 2^-14 of its column's largest a float16 has fewer digits, of a fixed size."""


@dataclass(frozen=True)
class Some(Record, kind="test/digits", triangular="factor"):
    wide: Array
    factor: Array
    vector: Array
    few: Array


def some(seed: int) -> Some:
    rng = np.random.default_rng(seed)
    wide = rng.standard_normal((90, 60)) * np.logspace(-8, 8, 60)
    return Some(wide, np.tril(rng.standard_normal((80, 80))), rng.standard_normal(SMALL + 1), rng.standard_normal((3, 4)))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), precision=st.sampled_from(sorted(OFF)))
def test_both_sides_of_a_message_compute_with_the_same_numbers(seed, precision):
    exact = some(seed)
    less = rounded(exact, precision)
    packet = narrowed(less.pack(), precision)
    got = Some.unpack(Packet.from_bytes(packet.to_bytes()))
    for name in ("wide", "factor", "vector", "few"):
        np.testing.assert_array_equal(getattr(got, name), getattr(less, name))
    largest = np.abs(exact.wide).max(0)
    assert (np.abs(less.wide - exact.wide) <= OFF[precision] * np.abs(exact.wide) + 2.0**-25 * largest).all()
    assert np.abs(less.factor - exact.factor).max() <= 2.0**-24 * np.abs(exact.factor).max()
    assert less.vector is exact.vector
    assert less.few is exact.few
    assert packet.wire_bytes < 0.7 * exact.pack().wire_bytes


@pytest.mark.parametrize("precision", sorted(OFF))
def test_what_is_rounded_already_stays_the_same_object(precision):
    less = rounded(some(0), precision)
    again = rounded(less, precision)
    assert again is less


def test_all_digits_are_kept_unless_asked():
    exact = some(0)
    for precision in (None, "float64"):
        assert rounded(exact, precision) is exact
        packet = exact.pack()
        assert narrowed(packet, precision) is packet


@dataclass(frozen=True)
class WithMap(Record, kind="test/digits/map"):
    map: MetricMap


def test_a_map_whose_numbers_are_others_is_another_map(rng):
    plain, waves = features.draw(Bias(), 80, 0, "plain"), features.draw(Fourier(8), 80, 0, "waves")
    metric = Metric(rng.standard_normal((80, 60)), np.ones(1))
    exact = WithMap(MetricMap.of(plain, [Block(waves, metric)]))
    less = rounded(exact, "float16")
    assert less.map.fingerprint != exact.map.fingerprint
    got = WithMap.unpack(narrowed(less.pack(), "float16"))
    assert got.map.fingerprint == less.map.fingerprint
    rows = rng.standard_normal((5, 80))
    np.testing.assert_array_equal(got.map(rows), less.map(rows))
