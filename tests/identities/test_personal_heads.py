"""Identities of the personal heads: their limits, their equal forms, and their independence of how others are split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import features
from strategies import PENALTIES, Problem, problems, relative

SOLVED = 1e-9  # conditions below 1e5 (PENALTIES)


def scores(method, federation, X, name="0"):
    return gf.run(method, federation).heads[name].scores(X)


def repartitioned(problem: Problem, random) -> Problem:
    """Client 0 as it was; the others' samples dealt anew to another number of clients."""
    others = np.flatnonzero(problem.owners)
    owners = problem.owners.copy()
    dealt = random.randint(1, len(others))
    owners[random.sample(others.tolist(), len(others))] = 1 + np.arange(len(others)) % dealt
    return Problem(problem.X, problem.codes, problem.classes, owners, problem.seed)


FIXED = [
    gf.FedHiP(features="raw+bias+linear", alpha=3.0, penalty=0.5),
    gf.FedHiP(features="raw+bias+linear", alpha=3.0, penalty=0.5, at="server"),
    gf.APFL(features="raw+bias+linear", refinement="relu:16", penalty=0.5, refinement_penalty=0.3, lam=0.4),
    gf.APFL(features="bias+linear", refinement="bias+linear", penalty=0.5, refinement_penalty=0.3, lam=0.4),
]
CHOSEN = [gf.FedHiP(), gf.FedHiP(at="server"), gf.APFL(refinement="relu:16"), gf.APFL(refinement="bias+linear")]


@pytest.mark.parametrize("method", FIXED + CHOSEN, ids=repr)
@given(problem=problems(samples=(3, 40), width=(2, 8), clients=(2, 5)), random=st.randoms(use_true_random=False))
def test_a_head_does_not_depend_on_how_the_other_clients_are_split(method, problem, random):
    other = repartitioned(problem, random)
    before, after = (scores(method, p.federation(), problem.X) for p in (problem, other))
    assert relative(after, before) < SOLVED


@given(problems(samples=(2, 40), width=(2, 10)), PENALTIES, st.sampled_from(["client", "server"]))
def test_fedhip_of_weight_zero_is_afl(problem, penalty, at):
    federation = problem.federation()
    shared = scores(gf.AFL(penalty=penalty), federation, problem.X)
    assert relative(scores(gf.FedHiP(alpha=0.0, penalty=penalty, at=at), federation, problem.X), shared) < SOLVED
    assert relative(gf.run(gf.FedHiP(penalty=penalty, at=at), federation).global_head.scores(problem.X), shared) < SOLVED


@given(problems(samples=(80, 120), width=(1, 6), clients=(2, 3)), st.sampled_from(["client", "server"]))
def test_fedhip_of_overwhelming_weight_is_local(problem, at):
    federation, raw = problem.federation(), "raw+bias+linear"
    alone = scores(gf.Local(features=raw, penalty=1e-9), federation, problem.X)
    # off by |S| / (alpha min eig G_k): the sums are of a hundred samples, of which the client has tens: about 100 / alpha
    assert relative(scores(gf.FedHiP(features=raw, alpha=1e8, penalty=1e-6, at=at), federation, problem.X), alone) < 1e-5


@given(problems(samples=(2, 30), width=(2, 12), clients=(2, 5)), PENALTIES, st.floats(0.0, 100.0))
def test_server_and_client_solve_the_same_personal_head(problem, gamma, alpha):
    federation = problem.federation()
    client, server = (
        gf.run(gf.FedHiP(features="raw+linear", alpha=alpha, penalty=gamma, at=at), federation) for at in ("client", "server")
    )
    X, Y = problem.X, problem.Y
    for k, name in enumerate(client.heads):
        F, own = X[problem.owners == k], Y[problem.owners == k]
        # the definition: all clients' samples once and the client's own alpha times more
        system = X.T @ X + alpha * F.T @ F + gamma * np.eye(X.shape[1])
        expected = X @ np.linalg.solve(system, X.T @ Y + alpha * F.T @ own)
        for result in (client, server):  # clients of fewer and of more samples than features both occur
            assert relative(result.heads[name].scores(X), expected) < SOLVED


@given(problems(samples=(2, 30), width=(2, 8)), PENALTIES, PENALTIES)
def test_apfl_without_refinement_is_afl(problem, beta, gamma):
    federation = problem.federation()
    shared = scores(gf.AFL(penalty=beta), federation, problem.X)
    for refinement in ("relu:16", "bias+linear"):
        apfl = gf.APFL(refinement=refinement, penalty=beta, refinement_penalty=gamma, lam=0.0)
        assert relative(scores(apfl, federation, problem.X), shared) < SOLVED


@given(problems(samples=(2, 30), width=(2, 8)), PENALTIES, PENALTIES, st.floats(0.0, 1.0))
def test_apfl_is_its_definition_and_merges_equal_streams(problem, beta, gamma, lam):
    federation = problem.federation()
    spec = features.parse("raw+linear")
    # written in two ways the map is drawn for two streams; it has nothing random, so both are the same function
    merged = gf.run(gf.APFL("raw+linear", beta, "raw+linear", gamma, lam), federation)
    apart = gf.run(gf.APFL("raw+linear", beta, spec, gamma, lam), federation)
    X, Y = problem.X, problem.Y
    d = X.shape[1]
    P = np.linalg.solve(X.T @ X + beta * np.eye(d), X.T @ Y)
    for k, name in enumerate(merged.heads):
        assert (len(merged.heads[name].streams), len(apart.heads[name].streams)) == (1, 2)
        F, own = X[problem.owners == k], Y[problem.owners == k]
        R = np.linalg.solve(F.T @ F + gamma * np.eye(d), F.T @ (own - F @ P))
        for result in (merged, apart):
            assert relative(result.heads[name].scores(X), X @ P + lam * X @ R) < SOLVED


def test_apfl_draws_two_different_random_streams(federation):
    head = gf.run(gf.APFL(features="tanh:32", refinement="relu:32"), federation).heads["0"]
    primary, refinement = (stream.map for stream in head.streams)
    assert primary.description["name"] != refinement.description["name"]


@given(problems(samples=(2, 30), width=(2, 6), classes=(3, 5)))
def test_local_classes_is_afl_among_the_classes_a_client_has(problem):
    federation = problem.federation()
    shared = gf.run(gf.AFL(penalty=1.0), federation).global_head.scores(problem.X)
    heads = gf.run(gf.LocalClasses(penalty=1.0), federation).heads
    for k, (_, y) in enumerate(problem.parts()):
        present = np.unique(y)
        np.testing.assert_array_equal(heads[str(k)].predict_codes(problem.X), present[shared[:, present].argmax(1)])


@given(problems(samples=(1, 30), width=(1, 8)), PENALTIES)
def test_local_is_each_clients_own_ridge(problem, beta):
    result = gf.run(gf.Local(features="raw+linear", penalty=beta), problem.federation())
    for k, (F, y) in enumerate(problem.parts()):
        Y = np.eye(problem.classes)[y]
        expected = F @ np.linalg.solve(F.T @ F + beta * np.eye(F.shape[1]), F.T @ Y)
        assert relative(result.heads[str(k)].scores(F), expected) < SOLVED
