"""The direct BLAS calls do what NumPy does, in place, and refuse arrays whose memory is not what they expect."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.numerics import blas

SIZES = st.integers(0, 9)
EXACT = 1e-12  # sums of at most nine products


def draws(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@given(SIZES, SIZES, st.booleans())
def test_add_gram_adds_to_the_lower_triangle_alone(n, m, outer):
    rows = draws(n, m)
    size = n if outer else m
    total = draws(size, size)
    product = rows @ rows.T if outer else rows.T @ rows
    expected = np.tril(total + product) + np.triu(total, 1)
    blas.add_gram(total, rows, outer=outer)
    np.testing.assert_allclose(total, expected, rtol=0, atol=EXACT)


@given(SIZES)
def test_cholesky_overwrites_the_lower_triangle_with_its_factor(n):
    rows = draws(n + 2, n)
    matrix = rows.T @ rows + np.eye(n)
    factor = matrix.copy()
    assert blas.cholesky_inplace(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix) if n else matrix, rtol=0, atol=EXACT)
    np.testing.assert_array_equal(np.triu(factor, 1), np.triu(matrix, 1))


@pytest.mark.parametrize("matrix", [np.zeros((2, 2)), np.diag([1.0, -1.0]), np.array([[1.0, 0.0], [2.0, 1.0]])])
def test_cholesky_says_no_where_there_is_no_factor(matrix):
    assert not blas.cholesky_inplace(matrix.copy())


@given(SIZES, SIZES, st.booleans())
def test_triangular_solves(n, k, transposed):
    lower, right = np.tril(draws(n, n)) + 4 * np.eye(n), draws(n, k)
    solution = right.copy()
    blas.solve_lower_inplace(lower + np.triu(np.full((n, n), np.nan), 1), solution, transposed)  # the upper triangle is not read
    np.testing.assert_allclose((lower.T if transposed else lower) @ solution, right, rtol=0, atol=EXACT)


def strided(array: np.ndarray, *strides: int) -> np.ndarray:
    """The same numbers under other strides: where a dimension is one, NumPy may set any, and often does."""
    return np.lib.stride_tricks.as_strided(array, strides=[8 * stride for stride in strides])


@pytest.mark.parametrize(
    "rows",
    [
        strided(draws(1, 5), 1, 1),
        strided(draws(1, 5), 0, 1),
        strided(draws(1, 5), -3, 1),
        strided(draws(5, 1), 1, 5),
        strided(draws(5, 1), 1, 0),
        strided(draws(1, 1), 7, 3),
        np.asfortranarray(draws(1, 5)),
        draws(5, 3).T[:1].T,
        draws(3, 5)[:1],
        draws(5, 7)[:, 2:3],
        draws(5, 7)[1:4, 2:5],
        draws(8, 3)[::2],
        draws(4, 3)[::-1],
        np.broadcast_to(draws(1, 3), (4, 3)),
    ],
    ids=lambda rows: f"{rows.shape}-{rows.strides}",
)
def test_rows_under_any_strides_are_multiplied_right_or_refused(rows):
    for outer in (False, True):
        expected = rows @ rows.T if outer else rows.T @ rows
        total = np.zeros_like(expected, order="C")
        try:
            blas.add_gram(total, rows, outer=outer)
        except TypeError:
            assert not (rows.flags.c_contiguous and rows.flags.f_contiguous)  # a single row or column is never refused
        else:
            np.testing.assert_allclose(np.tril(total), np.tril(expected), rtol=0, atol=EXACT)


@given(st.integers(1, 6), st.integers(1, 4))
def test_blocks_of_larger_matrices_solve_or_are_refused(n, k):
    lower, right = (np.tril(draws(9, 9)) + 4 * np.eye(9))[2 : 2 + n, 2 : 2 + n], draws(9, 9)[3 : 3 + n, 1 : 1 + k]
    solution = right.copy()
    try:
        blas.solve_lower_inplace(lower, solution)
    except TypeError:
        solution = np.linalg.solve(lower, right)
    np.testing.assert_allclose(lower @ solution, right, rtol=0, atol=EXACT)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "call",
    [
        lambda: blas.add_gram(np.zeros((3, 3)), np.ones((3, 4)).T[:3]),
        lambda: blas.add_gram(np.zeros((3, 3)), np.ones((4, 6))[:, ::2]),
        lambda: blas.add_gram(np.zeros((3, 3), order="F").T[:, ::-1], np.ones((4, 3))),
        lambda: blas.add_gram(np.zeros((3, 3)), np.ones((4, 3), np.float32)),
        lambda: blas.add_gram(np.zeros((3, 3), np.float32), np.ones((4, 3))),
        lambda: blas.add_gram(read_only(np.zeros((3, 3))), np.ones((4, 3))),
        lambda: blas.add_gram(np.zeros((4, 4)), np.ones((4, 3))),
        lambda: blas.add_gram(np.zeros((3, 3)), np.ones((4, 3)), outer=True),
        lambda: blas.cholesky_inplace(np.eye(6)[::2, ::2]),
        lambda: blas.cholesky_inplace(np.eye(3, dtype=np.float32)),
        lambda: blas.cholesky_inplace(read_only(np.eye(3))),
        lambda: blas.cholesky_inplace(np.ones((2, 5))),
        lambda: blas.solve_lower_inplace(np.eye(3), np.ones((4, 2))),
        lambda: blas.solve_lower_inplace(np.eye(3), np.ones((2, 3)).T),
        lambda: blas.solve_lower_inplace(np.eye(3), read_only(np.ones((3, 2)))),
        lambda: blas.solve_lower_inplace(np.eye(6)[::2, ::2], np.ones((3, 2))),
        lambda: blas.solve_lower_inplace(np.eye(3, dtype=int), np.ones((3, 2))),
    ],
)  # fmt: skip
def test_memory_of_another_layout_type_or_size_is_refused(call):
    with pytest.raises(TypeError):
        call()
