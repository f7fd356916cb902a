"""The backend's own small promises."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gramfold.errors import GramfoldError
from gramfold.numerics import arrays


@given(st.integers(0, 50), st.integers(0, 20), st.integers(1, 400))
def test_blocks_cover_every_row_once(rows, width, budget):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_BYTES", budget)
        blocks = arrays.blocks(rows, width)
    assert [i for block in blocks for i in range(rows)[block]] == list(range(rows))
    assert all(8 * width * (block.stop - block.start) <= max(budget, 8 * width) for block in blocks)


@given(st.integers(0, 20), st.integers(1, 500))
def test_mirroring_copies_the_lower_triangle_whatever_the_blocks(m, budget):
    values = np.arange(m * m, dtype=float).reshape(m, m)
    expected = np.tril(values) + np.tril(values, -1).T
    tensor = torch.as_tensor(values.copy())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_BYTES", budget)
        arrays.mirror(values)
    arrays.mirror(tensor)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (0, 3), (3, 0)])
def test_grams_of_either_memory_order(rng, shape, order):
    rows = np.asarray(rng.standard_normal(shape), order=order)
    np.testing.assert_allclose(np.tril(arrays.gram(rows)), np.tril(rows.T @ rows), atol=1e-13)
    np.testing.assert_allclose(np.tril(arrays.outer_gram(rows)), np.tril(rows @ rows.T), atol=1e-13)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_one_hot_takes_codes_of_any_type(kind, dtype):
    codes = np.array([1, 0, 1]).astype(dtype)
    np.testing.assert_array_equal(arrays.to_numpy(arrays.one_hot(kind(codes), 2, kind(np.zeros(1)))), [[0, 1], [1, 0], [0, 1]])


def test_float64_copies_only_where_it_must(rng):
    doubles = rng.standard_normal((3, 2))
    assert np.shares_memory(arrays.float64(doubles), doubles)
    assert arrays.float64(doubles.astype(np.float32)).dtype == np.float64
    assert arrays.float64(torch.ones(2, dtype=torch.float16)).dtype == torch.float64


def test_the_cpu_needs_no_torch_and_others_say_so(monkeypatch):
    arrays.check_device("cpu")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    arrays.check_device("cpu")
    with pytest.raises(GramfoldError, match=r"needs PyTorch: install gramfold\[torch\]"):
        arrays.check_device("cuda")
