"""Random effects from sums over clients: everything as in the dense model of pooled rows, whose covariance is written out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gramfold.solve.random_effects import Deviation, Fit, Sums, block_of, left_out, of_columns, whitened

Client = tuple[np.ndarray, np.ndarray]


def drawn(seed: int, clients: int = 6, columns: int = 3, outputs: int = 1) -> list[Client]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(clients):
        n = int(rng.integers(1, 9))
        X = np.column_stack([np.ones(n), rng.standard_normal((n, columns - 1))])
        own = rng.standard_normal((columns, outputs)) * 0.7
        made.append((X, X @ (1.0 + own) + 0.5 * rng.standard_normal((n, outputs))))
    return made


def summed(clients: list[Client], ratios: np.ndarray, blocks: np.ndarray) -> Sums:
    total: dict[str, np.ndarray] = {}
    for X, y in clients:
        both = np.column_stack([X, y])
        one = Sums.of(both.T @ both, X.shape[1], of_columns(ratios, blocks), blocks, len(X)).parts
        total = {name: part + total.get(name, 0.0) for name, part in one.items()}
    return Sums.from_parts(total)


def dense(clients: list[Client], by_column: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """V, X and y of all rows, b and the restricted log-likelihood, the noise put in at its most likely."""
    X, y = (np.concatenate(parts) for parts in zip(*clients, strict=True))
    owner = np.repeat(np.arange(len(clients)), [len(rows) for rows, _ in clients])
    V = np.eye(len(X)) + (X * by_column) @ X.T * (owner[:, None] == owner)
    inverse = np.linalg.inv(V)
    A = X.T @ inverse @ X
    b = np.linalg.solve(A, X.T @ inverse @ y)
    left, free = y - X @ b, len(X) - X.shape[1]
    noise = np.einsum("ic,ij,jc->c", left, inverse, left) / free
    size = np.linalg.slogdet(V)[1] + np.linalg.slogdet(A)[1]
    return V, X, y, b, -0.5 * float((free * np.log(noise)).sum() + y.shape[1] * size)


ratios = st.lists(st.floats(0.0, 5.0), min_size=3, max_size=3).map(np.array)


@given(st.integers(0, 1000), ratios, st.integers(1, 2), st.booleans())
def test_sums_give_the_likelihood_its_slope_and_the_fixed_effects_of_pooled_rows(seed, g, outputs, together):
    clients = drawn(seed, clients=8, outputs=outputs)
    blocks = block_of(2, True, 1 if together else 12)
    g = g[: blocks.max() + 1] + 0.01
    fit = Fit.of(summed(clients, g, blocks), 3)
    _, _, _, b, likelihood = dense(clients, of_columns(g, blocks))
    np.testing.assert_allclose(fit.fixed, b, rtol=1e-7, atol=1e-7)
    assert abs(fit.likelihood - likelihood) < 1e-7 * max(1.0, abs(likelihood))
    for block in range(len(g)):
        moved = np.eye(len(g))[block] * 1e-5
        up, down = (dense(clients, of_columns(g + sign * moved, blocks))[-1] for sign in (1, -1))
        assert abs(fit.slope[block] - (up - down) / 2e-5) < 1e-3 * max(1.0, abs(fit.slope[block]))


@given(st.integers(0, 1000), ratios)
def test_every_sample_is_left_out_as_if_the_model_had_been_fitted_without_it(seed, g):
    clients, blocks = drawn(seed, clients=5), block_of(2, True, 12)
    by_column = of_columns(g, blocks)
    fit = Fit.of(summed(clients, g, blocks), 3)
    V, X, y, _, _ = dense(clients, by_column)
    told = np.concatenate([left_out(rows, targets, by_column, fit)[0] for rows, targets in clients])
    variance = np.concatenate([left_out(rows, targets, by_column, fit)[1] for rows, targets in clients])
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        if np.linalg.matrix_rank(X[rest]) < 3:
            continue
        inverse = np.linalg.inv(V[np.ix_(rest, rest)])
        A = np.linalg.inv(X[rest].T @ inverse @ X[rest])
        b = A @ X[rest].T @ inverse @ y[rest]
        across = V[i, rest] @ inverse
        np.testing.assert_allclose(told[i], X[i] @ b + across @ (y[rest] - X[rest] @ b), rtol=1e-6, atol=1e-6)
        d = X[i] - across @ X[rest]
        assert abs(variance[i] - (V[i, i] - across @ V[rest, i] + d @ A @ d)) < 1e-6 * variance[i]


@given(st.integers(0, 1000), ratios, st.booleans())
def test_deviations_and_their_errors_are_those_of_the_dense_model(seed, g, late):
    clients, blocks = drawn(seed, clients=6), block_of(2, True, 12)
    by_column = of_columns(g, blocks)
    (rows, targets), others = clients[0], clients[1:] if late else clients
    fit = Fit.of(summed(others, g, blocks), 3)
    both = np.column_stack([rows, targets])
    own, _ = whitened(both.T @ both, 3, by_column)
    found = Deviation.of(own, 3, by_column, fit, contributed=not late)
    V, X, y, b, _ = dense(others, by_column)
    D = np.diag(by_column)
    if not late:
        across = np.zeros((3, len(X)))
        across[:, : len(rows)] = D @ rows.T
        inverse = np.linalg.inv(V)
        P = inverse - inverse @ X @ np.linalg.inv(X.T @ inverse @ X) @ X.T @ inverse
        estimate, covariance = across @ P @ y, D - across @ P @ across.T
    else:
        weight = D @ rows.T @ np.linalg.inv(np.eye(len(rows)) + rows @ D @ rows.T)
        A = np.linalg.inv(X.T @ np.linalg.inv(V) @ X)
        estimate, covariance = weight @ (targets - rows @ b), D - weight @ rows @ D + weight @ rows @ A @ rows.T @ weight.T
    np.testing.assert_allclose(found.estimate, estimate, rtol=1e-6, atol=1e-6)
    error = np.sqrt(np.diag(covariance).clip(0)[:, None] * fit.noise)
    np.testing.assert_allclose(found.error, error, rtol=1e-5, atol=1e-6)


@given(st.integers(0, 1000), st.integers(3, 8), st.integers(2, 6))
def test_of_as_many_samples_each_it_is_the_analysis_of_variance(seed, clients, each):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((clients, 1)) + rng.standard_normal((clients, each))
    blocks, g = block_of(0, True, 12), np.zeros(1)
    rows = [(np.ones((each, 1)), values[:, None]) for values in y]
    for _ in range(100):
        fit = Fit.of(summed(rows, g, blocks), 1)
        g = fit.step(g)
    means = y.mean(1)
    within = ((y - means[:, None]) ** 2).sum() / (clients * (each - 1))
    between = each * ((means - y.mean()) ** 2).sum() / (clients - 1)
    if between > within:
        np.testing.assert_allclose(g[0] * fit.noise[0], (between - within) / each, rtol=1e-5)
        np.testing.assert_allclose(fit.noise[0], within, rtol=1e-5)
    else:
        assert g[0] == 0.0
        np.testing.assert_allclose(fit.noise[0], y.var(ddof=1))
