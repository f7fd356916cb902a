"""The cosine of many classes is bent, as their evidence is."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gramfold.solve.evidence import bend, bent


@given(st.floats(-1, 1), st.floats(-1, 1), st.integers(2, 10_000))
def test_order_and_sign_stay(one, other, classes):
    low, high = sorted((one, other))
    curved = bent(np.array([low, high]), bend(classes))
    assert curved[0] <= curved[1]
    assert (np.sign(curved) == np.sign([low, high])).all()


def test_few_classes_stay_straight_and_many_do_not():
    assert bend(2) == bend(20) == 0.0
    assert 0.3 < bend(100) < bend(10_000) < 0.5
