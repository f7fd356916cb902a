"""Stacks of systems: on NumPy by substitution, on torch by products with the factor's inverse. Both solve the same."""

import importlib.util

import numpy as np
import pytest

import gramfold as gf
from gramfold.numerics import arrays
from gramfold.numerics.stacks import Solver

WITH_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


def grams(clients: int, n: int, depth: int) -> np.ndarray:
    rows = np.random.default_rng(n).standard_normal((clients, n, depth))
    return rows @ np.swapaxes(rows, 1, 2)


@pytest.mark.parametrize("n", [1, 48, 49, 64, 65, 200])  # about the sizes where the way changes
@pytest.mark.parametrize("kind", ["numpy", pytest.param("torch", marks=WITH_TORCH)])
def test_a_stack_is_solved_as_each_of_it(n, kind):
    matrices, shifts = grams(3, n, 2 * n), np.array([0.1, 1.0, 10.0]) * n
    right = np.random.default_rng(1).standard_normal((3, n, 4))
    if kind == "torch":
        import torch

        solver = Solver.of(torch.as_tensor(matrices), torch.as_tensor(shifts))
        right = torch.as_tensor(right)
    else:
        solver = Solver.of(matrices, shifts)
    shifted, plain = matrices + shifts[:, None, None] * np.eye(n), arrays.to_numpy(right)
    np.testing.assert_allclose(arrays.to_numpy(solver.solve(right)), np.linalg.solve(shifted, plain), rtol=1e-9, atol=1e-12)
    lower = np.linalg.solve(np.linalg.cholesky(shifted), plain)
    np.testing.assert_allclose(arrays.to_numpy(solver.solve_lower(right)), lower, rtol=1e-9, atol=1e-12)
    diagonal = np.diagonal(np.linalg.inv(shifted), axis1=1, axis2=2)
    np.testing.assert_allclose(arrays.to_numpy(solver.inverse_diagonal()), diagonal, rtol=1e-9)


@WITH_TORCH
@pytest.mark.parametrize("n", [10, 100])
def test_systems_that_are_not_positive_definite_are_raised_on_torch_as_on_numpy(n):
    import torch

    matrices = grams(2, n, n // 2)
    matrices[1] -= 1e-3 * np.eye(n)
    right = matrices @ np.ones((2, n, 1))
    with pytest.warns(gf.IllConditionedWarning, match="singular or ill-conditioned"):
        on_numpy = Solver.of(matrices, 0.0).solve(right)
    with pytest.warns(gf.IllConditionedWarning, match="singular or ill-conditioned"):
        on_torch = Solver.of(torch.as_tensor(matrices), 0.0).solve(torch.as_tensor(right))
    assert np.isfinite(on_numpy).all()
    assert np.isfinite(arrays.to_numpy(on_torch)).all()
