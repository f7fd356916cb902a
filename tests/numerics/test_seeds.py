"""A stream depends on the root seed and its name alone."""

import numpy as np
import pytest

from gramfold.numerics import seeds


@pytest.mark.parametrize("make", [seeds.generator, seeds.frozen])
def test_streams_are_told_apart_by_seed_and_name_and_by_nothing_else(make):
    def draw(seed, name):
        return make(seed, name).standard_normal(4).tolist()

    first = draw(1, "partition")
    draw(1, "something in between")
    np.random.seed(99)
    assert draw(1, "partition") == first
    others = [draw(2, "partition"), draw(1, "partition/0"), draw(1, "Partition"), draw(1, "")]
    assert len({tuple(stream) for stream in [first, *others]}) == 5


def test_frozen_numbers_are_these_on_every_machine_and_numpy_release():
    np.testing.assert_allclose(
        seeds.frozen(0, "features").standard_normal(3), [1.7809120599073498, 0.7834007151600518, -0.44945768732566965], rtol=1e-15
    )
    np.testing.assert_allclose(seeds.frozen(7, "mask").uniform(size=2), [0.11381644068363894, 0.5151451621447161], rtol=1e-15)
