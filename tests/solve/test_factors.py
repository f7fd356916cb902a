"""Both kinds of factor keep one contract, and one factorisation gives a ridge and its leave-one-out fit."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.errors import IllConditionedWarning
from gramfold.solve.dual import mean_squared_length, ridge_from_rows, ridge_with_left_out
from gramfold.solve.gcv import descend
from gramfold.solve.ridge import Cholesky, Factor, LeastNorm, factorise
from gramfold.wire import Packet
from gramfold.wire.record import Record
from strategies import PENALTIES, problems, relative


def system(seed: int, size: int, rank: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((rank, size))
    return rows.T @ rows


@given(st.integers(0, 1000), st.integers(1, 9))
def test_a_factor_is_a_root_of_its_system(seed, size):
    gram = system(seed, size, size + 3) + np.eye(size)  # condition at most some thousands
    factor = factorise(gram)
    assert isinstance(factor, Cholesky)
    identity = np.eye(size)
    assert relative(factor.solve(gram), identity) < 1e-9
    half = factor.solve_lower(identity)
    assert relative(half.T @ half, np.linalg.inv(gram)) < 1e-9
    assert relative(factor.solve_transposed(half), factor.solve(identity)) < 1e-12
    assert relative(factor.inverse_diagonal(), np.linalg.inv(gram).diagonal()) < 1e-9
    assert factor.size == size


@given(st.integers(0, 1000), st.integers(3, 9))
def test_where_the_system_is_singular_the_factor_is_of_the_least_norm(seed, size):
    gram = system(seed, size, size - 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IllConditionedWarning)
        factor = factorise(gram)
    assert isinstance(factor, LeastNorm)
    right = gram @ np.random.default_rng(seed).standard_normal((size, 2))  # something that can be reached
    assert relative(factor.solve(right), np.linalg.pinv(gram, rcond=1e-10) @ right) < 1e-5  # roots of condition 1e10 at most
    assert factor.size == size


@pytest.mark.parametrize("rank", [8, 4], ids=["cholesky", "least norm"])
def test_a_factor_travels_as_what_it_is(rank):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IllConditionedWarning)
        factor = factorise(system(0, 6, rank))
    packet = factor.pack()
    back = Factor.unpack(Packet.from_bytes(packet.to_bytes()))
    assert type(back) is type(factor)
    np.testing.assert_array_equal(back.solve(np.eye(6)), factor.solve(np.eye(6)))
    assert bool(packet.triangular) == isinstance(factor, Cholesky)
    assert Record.kinds[factor.kind] is type(factor)


@given(problem=problems(samples=(3, 30), width=(1, 12)), penalty=PENALTIES)
def test_the_left_out_fit_is_that_of_really_leaving_each_row_out(problem, penalty):
    X, Y = problem.X, problem.Y
    weights, fit = ridge_with_left_out(X, Y, penalty)
    assert relative(weights, ridge_from_rows(X, Y, penalty)) < 1e-9
    for i in (0, len(X) - 1):
        others = np.arange(len(X)) != i
        alone = X[i] @ ridge_from_rows(X[others], Y[others], penalty)
        np.testing.assert_allclose(fit[i], alone, rtol=1e-7, atol=1e-8)  # 1 - h may be as small as 1e-3


def test_the_unit_of_a_penalty_is_the_mean_squared_length():
    assert mean_squared_length(np.array([[3.0, 4.0], [0.0, 1.0]])) == 13.0
    assert mean_squared_length(np.zeros((3, 2))) == 1.0


@given(st.integers(1, 40), st.floats(0, 40))
def test_descent_finds_the_minimum_of_a_valley(size, bottom):
    found = descend(lambda i: (i - bottom) ** 2, size)
    assert abs(found - min(bottom, size - 1)) <= 0.5
