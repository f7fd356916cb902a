"""One ridge, many ways to solve it: primal, dual, spectral, and by updating a solved system."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.ridge import Spectrum, factorise, ridge
from gramfold.solve.update import update_solution, update_solution_by_moments
from strategies import PENALTIES, problems, relative

SOLVED = 1e-9  # float64 epsilon times condition numbers below 1e5, with room


@given(problems(), PENALTIES)
def test_primal_is_dual_is_spectral(problem, penalty):
    F, Y = problem.X, problem.Y
    expected = np.linalg.solve(F.T @ F + penalty * np.eye(F.shape[1]), F.T @ Y)
    assert relative(ridge(F.T @ F, F.T @ Y, penalty), expected) < SOLVED
    assert relative(ridge_from_rows(F, Y, penalty), expected) < SOLVED
    assert relative(Spectrum.of(F.T @ F).solve(F.T @ Y, penalty), expected) < SOLVED


@given(problems(samples=(2, 40), clients=(2, 2)), PENALTIES, st.floats(0.01, 100.0))
def test_updating_a_solution_equals_solving_anew(problem, penalty, weight):
    (F, y), (F2, y2) = problem.parts()
    Y, Y2 = np.eye(problem.classes)[y], np.eye(problem.classes)[y2]
    system, right = F.T @ F + penalty * np.eye(F.shape[1]), F.T @ Y
    base, joined = factorise(system), factorise(system + weight * F2.T @ F2)
    expected = joined.solve(right + weight * F2.T @ Y2)
    before = base.solve(right)
    assert relative(update_solution(base, before, F2, Y2, weight), expected) < SOLVED
    assert relative(update_solution_by_moments(base, before, F2.T @ F2, F2.T @ Y2, weight), expected) < SOLVED
    # the same rows with the weight negated are taken out again; how well is bounded by how much they had dominated
    lost = SOLVED * (1 + weight * np.linalg.norm(F2, 2) ** 2 / penalty)
    scale = max(np.abs(before).max(), np.abs(expected).max())
    for back in (
        update_solution(joined, expected, F2, Y2, -weight),
        update_solution_by_moments(joined, expected, F2.T @ F2, F2.T @ Y2, -weight),
    ):
        assert np.abs(back - before).max() < lost * scale


def test_an_update_of_weight_zero_changes_nothing(rng):
    factor, solution = factorise(np.eye(3)), rng.standard_normal((3, 2))
    np.testing.assert_array_equal(update_solution(factor, solution, np.ones((4, 3)), np.ones((4, 2)), 0.0), solution)


@given(problems(), PENALTIES)
def test_half_solves_make_a_whole_one(problem, penalty):
    factor = factorise(problem.X.T @ problem.X, penalty)
    right = problem.X.T @ problem.Y
    half = factor.solve_lower(right)
    assert relative(factor.solve_transposed(half), factor.solve(right)) == 0.0
    assert relative(half.T @ half, right.T @ factor.solve(right)) < SOLVED


@pytest.mark.parametrize("noise", [np.nan, 7.0])
def test_only_the_lower_triangle_is_read(rng, noise):
    F = rng.standard_normal((20, 6))
    gram, right = F.T @ F, rng.standard_normal((6, 2))
    spoilt = np.tril(gram) + np.triu(np.full((6, 6), noise), 1)
    assert relative(factorise(spoilt, 0.1).solve(right), factorise(gram, 0.1).solve(right)) == 0.0
    assert relative(Spectrum.of(spoilt).solve(right, 0.1), Spectrum.of(gram).solve(right, 0.1)) == 0.0


def test_factorising_leaves_the_gram_as_it_was(rng):
    gram = np.diag(rng.uniform(1, 2, 4))
    before = gram.copy()
    factorise(gram, 5.0).solve(np.ones((4, 1)))
    np.testing.assert_array_equal(gram, before)
