"""Under a secure sum PACE takes so few features that a sum of all samples says little of each."""

from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.federation import Task
from gramfold.methods.pace.decision import width_of
from gramfold.methods.pace.sizes import SIZES


@given(st.integers(1, 800), st.integers(30, 100_000), st.booleans(), st.sampled_from([None, True, False]))
def test_no_more_features_than_one_for_every_two_samples_unless_the_inputs_alone_are_more(inputs, samples, once, learn):
    task = Task(inputs, ("a", "b"), 2, seed=0, samples=samples)
    open_, masked = (gf.PACE(learn=learn).settled(task, once, masked=hidden) for hidden in (False, True))
    assert width_of(masked.features, inputs) <= max(SIZES.masked * samples, 1 + inputs)
    assert width_of(masked.features, inputs) <= width_of(open_.features, inputs)
    assert masked.settled(task, once, masked=True).features == masked.features
    if width_of(open_.features, inputs) <= SIZES.masked * samples and learn is not None:
        assert masked.features == open_.features, "where there are samples enough nothing changes"


def test_who_names_features_gets_them():
    task = Task(8, ("a", "b"), 2, seed=0, samples=100)
    named = gf.PACE(features="bias+linear+fourier:512")
    assert named.settled(task, masked=True).features == named.features
