"""Fourier features of two columns at a time."""

import numpy as np
import pytest

import gramfold.features as features
from gramfold.errors import GramfoldError
from gramfold.features import Pairs


def test_every_feature_depends_on_two_columns_and_on_likely_ones_more_often():
    spec = Pairs(2000, 1.5, (1.0, 1.0, 1.0, 0.001))
    frequencies, _ = spec.waves(4, 0, "pairs")
    used = frequencies != 0
    assert (used.sum(0) == 2).all()
    assert used[3].sum() < 20 < used[:3].sum(1).min()
    assert frequencies[used].std() == pytest.approx(1.5, rel=0.05)


def test_they_are_what_they_say_and_the_same_from_their_description(rng):
    spec = Pairs(50, 1.2, (1.0, 0.5, 0.2))
    drawn = features.draw(spec, 3, 7)
    rows = rng.standard_normal((20, 3))
    frequencies, phases = spec.waves(3, 7, "features")
    np.testing.assert_allclose(drawn(rows), np.cos(rows @ frequencies + phases), atol=1e-12)
    np.testing.assert_array_equal(features.restore(drawn.description, {})(rows), drawn(rows))


def test_a_single_column_has_no_second():
    assert (Pairs(10, 1.0, (1.0,)).waves(1, 0, "pairs")[0] != 0).all()


@pytest.mark.parametrize("wrong", [{"dim": 0}, {"scale": 0.0}, {"chances": (1.0, 0.0)}, {"chances": (1.0, float("nan"))}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(GramfoldError):
        Pairs(**{"dim": 4, "scale": 1.0, "chances": (1.0, 1.0), **wrong})


def test_other_inputs_than_they_were_made_for_are_refused():
    with pytest.raises(GramfoldError, match="pairs of 2 columns"):
        features.draw(Pairs(4, 1.0, (1.0, 1.0)), 3, 0)
