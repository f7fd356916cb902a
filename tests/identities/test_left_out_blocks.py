"""A block left out is a block that never was: of a ridge with a free intercept, and of the shared solution."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.solve.free_ridge import FreeRidge
from gramfold.solve.left_out_blocks import told_by_others, without_blocks

SOLVED = 1e-6  # a block's own system, with a floor of 1e-9 under its eigenvalues


def samples(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    blocks = np.arange(n) % 5
    return rng.standard_normal((n, m)), rng.standard_normal((n, 2)), rng.permutation(blocks)


@given(st.integers(0, 99), st.integers(12, 25), st.integers(2, 30), st.sampled_from([0.1, 1.0, 10.0]), st.booleans())
def test_a_ridge_without_a_block_is_one_that_never_saw_it(seed, n, m, gamma, weighted):
    X, Y, blocks = samples(seed, n, m)
    weights = np.random.default_rng(seed).uniform(0.5, 2, n) if weighted else np.ones(n)
    roots = np.sqrt(weights)[None, :, None] if weighted else None
    ridge = FreeRidge(X[None], roots)
    told = told_by_others(ridge, Y[None], gamma, [blocks])[0]
    penalty = gamma * float(ridge.unit[0])
    for block in range(5):
        rest = blocks != block
        w = weights[rest]
        mean, centre = w @ Y[rest] / w.sum(), w @ X[rest] / w.sum()
        rows = X[rest] - centre
        fit = np.linalg.solve(rows.T @ (w[:, None] * rows) + penalty * np.eye(m), rows.T @ (w[:, None] * (Y[rest] - mean)))
        np.testing.assert_allclose(told[~rest], mean + (X[~rest] - centre) @ fit, rtol=SOLVED, atol=SOLVED)


@given(st.integers(0, 99), st.integers(12, 25), st.integers(2, 30))
def test_blocks_of_one_sample_are_leave_one_out(seed, n, m):
    X, Y, _ = samples(seed, n, m)
    ridge = FreeRidge(X[None])
    told = told_by_others(ridge, Y[None], 1.0, [np.arange(n)])[0]
    np.testing.assert_allclose(told, ridge.fit(Y[None], 1.0)[0][0], rtol=SOLVED, atol=SOLVED)


@given(st.integers(0, 99), st.integers(12, 25))
def test_a_shared_solution_without_a_block_is_one_that_never_saw_it(seed, n):
    X, Y, blocks = samples(seed, n, 6)
    A = X.T @ X + np.eye(6)
    hat = X @ np.linalg.solve(A, X.T)
    left = without_blocks((Y - hat @ Y)[None], hat[None], [blocks])[0]
    for block in range(5):
        mine = blocks == block
        rest = np.linalg.solve(A - X[mine].T @ X[mine], X[~mine].T @ Y[~mine])
        np.testing.assert_allclose(left[mine], Y[mine] - X[mine] @ rest, rtol=SOLVED, atol=SOLVED)


def test_personal_heads_do_not_believe_what_copies_of_a_sample_say():
    """Every sample four times, a label drawn for each of them alone: one by one left out, the copies give the label away."""
    rng, clients, method = np.random.default_rng(0), {}, gf.PACE(features="bias+linear+fourier:64")
    for name in "abc":
        clients[name] = np.repeat(rng.standard_normal((20, 8)), 4, axis=0), np.repeat(rng.integers(0, 2, 20), 4)
    blocks = dict.fromkeys(clients, np.repeat(np.arange(20), 4))
    hopeful = gf.run(method, gf.Federation.from_clients(clients)).leave_one_out_accuracy
    honest = gf.run(method, gf.Federation.from_clients(clients, blocks=blocks)).leave_one_out_accuracy
    assert hopeful > 0.75
    assert honest < 0.65
