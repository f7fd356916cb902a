"""Lots depend on a sample's numbers alone."""

import numpy as np
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from gramfold.numerics import lots


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 9))
def test_a_lot_is_the_sample_s_own(seed, n, d):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)).astype(np.float32)
    drawn, order = lots.lots(rows), rng.permutation(n)
    for other in (rows[order].astype(np.float64), torch.as_tensor(rows[order]), scipy.sparse.csr_array(rows[order])):
        np.testing.assert_array_equal(lots.lots(other), drawn[order])
    np.testing.assert_array_equal(lots.lots(np.where(rows == 0, -0.0, rows)), drawn)
    np.testing.assert_array_equal(lots.lots(rows.astype(np.float64) * (1 + 1e-15)), drawn)  # a step is rarely so near


def test_lots_are_spread_evenly_even_where_numbers_hardly_differ():
    rows = (np.arange(4096)[:, None] >> np.arange(12) & 1).astype(float)
    drawn = lots.lots(rows)
    assert len(np.unique(drawn)) == 4096
    shares = lots.shares(drawn)
    assert abs(np.histogram(shares, 16, (0, 1))[0] - 256).max() < 5 * 16
    signs = lots.signs(drawn, 70)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert np.abs(signs.T @ signs / 4096 - np.eye(70)).max() < 6 / 64
