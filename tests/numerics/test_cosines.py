"""Cosines that are taken from tangents are cosines."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gramfold.numerics.cosines import cosines_over

OFF = 4e-16
"""A tangent is right to a few units in its last place, and what that moves the cosine by is no more, anywhere."""


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 30.0, 1e6]))
def test_they_are_those_of_longer_numbers(seed: int, size: float) -> None:
    drawn = np.random.default_rng(seed).standard_normal(1000) * size
    told = cosines_over(drawn.copy())
    assert np.abs(told - np.cos(drawn.astype(np.longdouble))).max() <= OFF
    assert np.abs(told).max() <= 1.0 + OFF


def test_where_the_tangent_has_its_poles() -> None:
    at = np.array([np.pi, -np.pi, 3 * np.pi, np.nextafter(np.pi, 4), 0.0, -0.0, 2 * np.pi, 1e16])
    with np.errstate(all="raise"):
        assert np.abs(cosines_over(at.copy()) - np.cos(at)).max() <= OFF


def test_other_types_of_numbers_are_taken_as_they_are() -> None:
    few = np.linspace(0, 3, 7, dtype=np.float32)
    assert np.array_equal(cosines_over(few.copy()), np.cos(few))
    empty = np.empty((0, 3))
    assert cosines_over(empty) is empty
