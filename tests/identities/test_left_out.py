"""Closed-form leave-one-out and GCV equal their definitions: really leaving one out, really building the hat matrix."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.methods.parts.blend import ALPHAS, Blend
from gramfold.solve.gcv import GRID, MAX_FREEDOM, Criterion, choose_penalty, mean_squared_row
from gramfold.solve.leave_one_out import Kernel, left_out_residuals, leverages
from gramfold.solve.ridge import factorise
from strategies import PENALTIES, problems, relative

SOLVED = 1e-9  # conditions below 1e5 (PENALTIES); 1 - leverage is at least penalty / (penalty + |f|^2), about 1e-4


def really_left_out(F, Y, penalty):
    """Residuals of each sample under the ridge of all the others."""
    out = np.empty_like(Y)
    for i in range(len(F)):
        rest, targets = np.delete(F, i, 0), np.delete(Y, i, 0)
        out[i] = Y[i] - F[i] @ np.linalg.solve(rest.T @ rest + penalty * np.eye(F.shape[1]), rest.T @ targets)
    return out


@given(problems(samples=(1, 20), width=(1, 10)), PENALTIES)
def test_press_is_leaving_one_out(problem, penalty):
    F, Y = problem.X, problem.Y
    factor = factorise(F.T @ F, penalty)
    residuals = left_out_residuals(Y - F @ factor.solve(F.T @ Y), leverages(factor, F))
    assert relative(residuals, really_left_out(F, Y, penalty)) < SOLVED


@given(problems(samples=(1, 20), width=(1, 10)), PENALTIES)
def test_the_kernel_leaves_one_out_in_primal_and_dual(problem, penalty):
    F, Y = problem.X, problem.Y
    kernel = Kernel.of(F)
    assert kernel.vectors.shape[1] <= min(F.shape)
    assert relative(kernel.left_out_residuals(Y, penalty), really_left_out(F, Y, penalty)) < SOLVED
    assert kernel.mean_diagonal == pytest.approx((F**2).sum(1).mean(), rel=1e-12)


@given(problems(samples=(2, 24), width=(1, 8), clients=(1, 4)), PENALTIES, st.sampled_from(list(range(len(ALPHAS)))))
def test_the_blend_leaves_one_out_of_the_shared_and_of_the_own_moments(problem, gamma, which):
    alpha = float(ALPHAS[which])
    X, Y = problem.X, problem.Y
    F, own = X[problem.owners == 0], Y[problem.owners == 0]
    factor = factorise(X.T @ X, gamma)
    blend = Blend(factor, factor.solve(X.T @ Y), F, own)
    parameters, scores = list(blend.left_out_scores(own))[which]
    assert parameters == {"alpha": alpha}
    expected = np.empty_like(own)
    for i, (f, y) in enumerate(zip(F, own, strict=True)):
        S, M = X.T @ X - np.outer(f, f), X.T @ Y - np.outer(f, y)
        G, B = F.T @ F - np.outer(f, f), F.T @ own - np.outer(f, y)
        expected[i] = f @ np.linalg.solve(S + alpha * G + gamma * np.eye(len(f)), M + alpha * B)
    # alpha up to 1e5 against gamma 1e-2: condition numbers up to 1e9
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6 * max(1.0, np.abs(expected).max()))


def really_gcv(F, Y, penalty):
    """n |Y - HY|^2 / trace(I - H)^2, with I - H as p (FF' + pI)^-1: where n <= m, subtracting H would lose all digits."""
    rest = penalty * np.linalg.inv(F @ F.T + penalty * np.eye(len(F)))
    return len(F) * ((rest @ Y) ** 2).sum() / np.trace(rest) ** 2


@given(problems(samples=(2, 30), width=(1, 20)))
def test_gcv_equals_its_definition(problem):
    """Where samples outnumber features; with fewer it is a difference of nearly equal numbers, and no choice goes there."""
    F, Y = problem.X, problem.Y
    n, m = F.shape
    assume(n > m)
    gram, cross, squares = F.T @ F, F.T @ Y, float((Y**2).sum())
    grid = GRID * mean_squared_row(gram, n)
    expected = [really_gcv(F, Y, penalty) for penalty in grid]
    # at the flat end of the grid neighbours differ by 1e-6, and the choice between them must not be rounding's;
    # the inverse above is, at condition numbers of up to 1e7, itself good to 1e-9
    criterion = Criterion(gram, [(cross, squares)], n)
    np.testing.assert_allclose([criterion.at(float(p))[0] for p in grid], expected, rtol=1e-8)


@given(problems(samples=(2, 30), width=(1, 20)))
def test_the_chosen_penalty_has_less_gcv_than_its_neighbours(problem):
    """Among the penalties that leave at least half the samples' freedom: closer to interpolation GCV is 0/0."""
    F, Y = problem.X, problem.Y
    grid = GRID * mean_squared_row(F.T @ F, len(F))
    chosen = choose_penalty(F.T @ F, F.T @ Y, float((Y**2).sum()), len(F))
    place = int(np.flatnonzero(np.isclose(grid, chosen, rtol=1e-12))[0])
    values = np.linalg.eigvalsh(F.T @ F).clip(0)
    allowed = [(values / (values + penalty)).sum() <= MAX_FREEDOM * len(F) for penalty in grid]
    assert allowed[place]
    scores = [really_gcv(F, Y, penalty) if fine else np.inf for penalty, fine in zip(grid, allowed, strict=True)]
    assert scores[place] <= min(scores[max(place - 1, 0) : place + 2]) * (1 + 1e-6)


@given(problems(samples=(2, 24), width=(2, 8), clients=(2, 4)), PENALTIES)
def test_the_server_chooses_alpha_by_the_gcv_of_the_blend(problem, gamma):
    result = gf.run(gf.FedHiP(features="raw+linear", penalty=gamma, at="server"), problem.federation())
    X, Y = problem.X, problem.Y
    system, cross = X.T @ X + gamma * np.eye(X.shape[1]), X.T @ Y
    for k in range(problem.clients):
        F, own = X[problem.owners == k], Y[problem.owners == k]
        without = system - F.T @ F
        residuals = own - F @ np.linalg.solve(without, cross - F.T @ own)
        kernel = F @ np.linalg.solve(without, F.T)
        scores = []
        for alpha in ALPHAS:
            rest = np.linalg.inv(kernel + np.eye(len(F)) / (1 + alpha))
            scores.append(((rest @ residuals) ** 2).sum() / np.trace(rest) ** 2)
        alpha = result.clients[str(k)].chosen["alpha"]
        assert scores[int(np.flatnonzero(alpha == ALPHAS)[0])] <= min(scores) * (1 + 1e-6)  # ties may fall either way


def test_local_reports_the_accuracy_that_leaving_one_out_would_give(blobs):
    X, y = blobs[0][:60], blobs[1][:60]
    federation = gf.Federation.from_clients({"only": (X, y, X, y)})
    chosen = gf.run(gf.Local(features="raw+linear"), federation).clients["only"].chosen
    F, Y = X, np.eye(4)[y]
    scores = Y - really_left_out(F, Y, chosen["penalty"])
    assert chosen["leave_one_out_accuracy"] == pytest.approx((scores.argmax(1) == y).mean(), abs=1e-12)
