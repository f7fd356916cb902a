"""Sample weights: a weight of 2 is a sample twice, a weight of 0 is a sample that is not there."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import MethodError
from gramfold.federation import Samples
from gramfold.methods import ANALYTIC, GRADIENT, ON_IMAGES, ClientData, Method
from gramfold.methods.pace.influence import influence_of
from gramfold.numerics.padding import Padding
from gramfold.solve.dual import ridge_with_left_out
from gramfold.solve.leave_one_out import Kernel, left_out_residuals
from strategies import PENALTIES, Problem, problems, relative

TOLERANCE = 1e-9
"""Rows times the root of an integer, or the row several times: sums of some hundred terms, systems of a condition below 1e6."""

APFL = gf.APFL(penalty=0.5, refinement_penalty=0.7, lam=0.4, refinement="relu:16")
FIXED = [
    gf.AFL(penalty=0.5),
    gf.AFL(),  # GCV reads the sum of the weights as n
    gf.LocalClasses(penalty=0.5),
    gf.Local(penalty=0.5),
    gf.FedHiP(alpha=3.0, penalty=0.5),
    gf.FedHiP(alpha=3.0, penalty=0.5, at="server"),
    APFL,
]
SELECTING = [gf.Local(), gf.FedHiP(), gf.FedHiP(at="server"), gf.APFL(refinement="relu:16"), gf.PACE(refinement="relu:16"),
             gf.DeepAFL(depth=1, refinement="relu:16")]  # fmt: skip


def solved(method: Method, parts: list[Samples], classes: int | None, contributed: bool = True) -> list[gf.Head]:
    """Every client's head, without an engine; `contributed` as the clients believe it."""
    outputs = classes if classes is not None else parts[0].targets.shape[1]
    labels = None if classes is None else tuple(range(classes))
    alone = (np.zeros((2, parts[0].inputs.shape[1])), np.array([0, 1]))
    task = gf.Federation.from_clients({"a": alone}, test_size=0.0).task
    task = replace(task, labels=labels, outputs=outputs, samples=100)
    method = method.settled(task)
    broadcast = method.begin(task)
    clients = [ClientData(str(k), part) for k, part in enumerate(parts)]
    for _ in range(method.rounds):
        uploads = [method.local(client, broadcast) for client in clients]
        total = uploads[0].copy()
        for upload in uploads[1:]:
            total += upload
        broadcast = method.aggregate(total, broadcast)
    for client in clients:
        client.contributed = contributed
    answer = method.answer
    replies = [broadcast if answer is None else answer(upload, broadcast) for upload in uploads] if method.rounds else []
    return [
        method.personalize(client, reply) for client, reply in zip(clients, replies or [broadcast] * len(clients), strict=True)
    ]


def weighted(problem: Problem, weights: np.ndarray, regression: bool = False) -> list[Samples]:
    targets = problem.Y + problem.X[:, :1] if regression else problem.codes
    whose = [problem.owners == k for k in range(problem.clients)]
    return [Samples(problem.X[rows], targets[rows], weights[rows]) for rows in whose]


def repeated(parts: list[Samples]) -> list[Samples]:
    return [Samples(*(np.repeat(part, p.weights.astype(int), axis=0) for part in p)) for p in parts]


def assert_same(one: list[gf.Head], other: list[gf.Head], X: np.ndarray, tolerance: float = TOLERANCE) -> None:
    for a, b in zip(one, other, strict=True):
        left, right = (np.where(np.isfinite(scores), scores, -1e3) for scores in (a.scores(X), b.scores(X)))
        assert relative(left, right) <= tolerance


def whole_weights(problem: Problem, low: int) -> np.ndarray:
    return np.random.default_rng(problem.seed).integers(low, 4, len(problem.X)).astype(float)


@pytest.mark.parametrize("method", FIXED, ids=str)
@pytest.mark.parametrize("regression", [False, True])
@settings(max_examples=15, deadline=None)
@given(problem=problems(samples=(8, 30), clients=(1, 3)))
def test_a_whole_weight_is_so_many_samples(method, regression, problem):
    parts = weighted(problem, whole_weights(problem, 1), regression)
    classes = None if regression else problem.classes
    assert_same(solved(method, parts, classes), solved(method, repeated(parts), classes), problem.X)


@settings(max_examples=15, deadline=None)
@given(problem=problems(samples=(8, 30), clients=(1, 3)))
def test_for_pace_too_where_no_sample_is_left_out(problem):
    """As of clients that join later: of others the left-out scores enter the head, and there a repeated sample has a twin."""
    method = gf.PACE(penalty=0.5, weights=(1.0, 0.5), parts=(), features="bias+linear", refinement="relu:16")
    parts = weighted(problem, whole_weights(problem, 1))
    one, other = (solved(method, given, problem.classes, contributed=False) for given in (parts, repeated(parts)))
    # the discriminant divides by a covariance whose least eigenvalue may be 1e-6 of its trace: rounding grows by as much
    assert_same(one, other, problem.X, tolerance=1e-6)


@pytest.mark.parametrize("method", [*FIXED, *SELECTING], ids=str)
@pytest.mark.parametrize("regression", [False, True])
@settings(max_examples=8, deadline=None)
@given(problem=problems(samples=(8, 30), clients=(1, 3)))
def test_a_weight_of_zero_is_a_sample_that_is_not_there(method, regression, problem):
    weights = whole_weights(problem, 0) + 0.5 * (whole_weights(problem, 0) > 0)
    weights[[np.flatnonzero(problem.owners == k)[0] for k in range(problem.clients)]] = 1.5
    parts = weighted(problem, weights, regression)
    classes = None if regression else problem.classes
    present = [part.take(np.flatnonzero(part.weights)) for part in parts]
    assert_same(solved(method, parts, classes), solved(method, present, classes), problem.X, tolerance=0.0)


@pytest.mark.parametrize("regression", [False, True])
@settings(max_examples=15, deadline=None)
@given(problem=problems(samples=(8, 30), clients=(1, 3)), beta=PENALTIES, c=st.floats(0.1, 10.0))
def test_one_weight_for_all_only_scales_penalties(regression, problem, beta, c):
    classes = None if regression else problem.classes
    uniform, plain = (weighted(problem, np.full(len(problem.X), weight), regression) for weight in (c, 1.0))
    plain = [Samples(*part) for part in plain]
    for heavy, light in (
        (gf.AFL(penalty=c * beta), gf.AFL(penalty=beta)),
        (gf.Local(penalty=c * beta), gf.Local(penalty=beta)),
        (gf.FedHiP(alpha=2.0, penalty=c * beta), gf.FedHiP(alpha=2.0, penalty=beta)),
        (replace(APFL, penalty=c * beta, refinement_penalty=c), replace(APFL, penalty=beta, refinement_penalty=1.0)),
    ):
        assert_same(solved(heavy, uniform, classes), solved(light, plain, classes), problem.X)


@settings(max_examples=15, deadline=None)
@given(problem=problems(samples=(8, 30), clients=(1, 3)))
def test_the_shared_temperature_too(problem):
    parts = weighted(problem, whole_weights(problem, 1))
    one, other = (solved(gf.AFL(penalty=0.5), given, problem.classes)[0] for given in (parts, repeated(parts)))
    assert one.temperature == pytest.approx(other.temperature, rel=1e-6)  # its Newton steps end at 1e-9


@pytest.mark.parametrize("method", [gf.Local(penalty=0.5), gf.LocalClasses(penalty=0.5), APFL, gf.FedHiP(alpha=3.0, penalty=0.5),
                                    gf.FedHiP(alpha=3.0, penalty=0.5, at="server"), gf.Local(), gf.APFL(refinement="relu:16"),
                                    gf.FedHiP()], ids=str)  # fmt: skip
@settings(max_examples=8, deadline=None)
@given(problem=problems(samples=(8, 30), clients=(1, 3)))
def test_weights_of_one_leave_the_temperature_and_light_ones_leave_one(method, problem):
    ones, light = (weighted(problem, np.full(len(problem.X), weight)) for weight in (1.0, 0.05))
    plain = [Samples(*part) for part in ones]
    for a, b in zip(solved(method, ones, problem.classes), solved(method, plain, problem.classes), strict=True):
        assert a.temperature == pytest.approx(b.temperature, rel=1e-6)
    assert all(0 < head.temperature < np.inf for head in solved(method, light, problem.classes))


@pytest.mark.parametrize("dual", [False, True])
@settings(max_examples=25, deadline=None)
@given(problem=problems(samples=(4, 20)), penalty=PENALTIES)
def test_leave_one_out_leaves_a_sample_out_with_all_its_weight(dual, problem, penalty):
    """That is where weights and repetition differ: of a sample that comes twice, leave-one-out leaves one copy in."""
    weights = whole_weights(problem, 1) / 2
    roots = np.sqrt(weights)[:, None]
    F, Y = problem.X, problem.Y
    found = Kernel.of(roots * F, roots).left_out_residuals(Y, penalty)
    if dual:
        found = Y - ridge_with_left_out(roots * F, roots * Y, penalty, roots)[1]
    for i in range(len(F)):
        others = np.delete(np.arange(len(F)), i)
        G = (F[others].T * weights[others]) @ F[others] + penalty * np.eye(F.shape[1])
        expected = Y[i] - F[i] @ np.linalg.solve(G, (F[others].T * weights[others]) @ Y[others])
        np.testing.assert_allclose(found[i], expected, atol=1e-8 * max(abs(found).max(), 1.0))  # residuals over 1 - w h


@settings(max_examples=15, deadline=None)
@given(problem=problems(samples=(6, 20), clients=(1, 2)))
def test_paces_left_out_scores_are_those_of_a_model_without_the_sample(problem):
    method = gf.PACE(penalty=0.5, features="bias+linear", refinement="relu:16")
    weights = whole_weights(problem, 1) / 2
    client = ClientData("me", Samples(problem.X, problem.codes, weights))
    task = problem.federation().task
    begin = method.begin(task)
    upload = method.local(client, begin)
    pooled = method.aggregate(upload.copy(), begin).pooled
    rows = begin.space.map(problem.X)
    leverage = influence_of(np.sqrt(weights)[:, None] * rows, pooled.leverage, Padding([len(rows)])).leverages[0]
    found = problem.Y - left_out_residuals(problem.Y - rows @ pooled.weights, leverage)
    for i in range(len(rows)):
        without = client.train.take(np.delete(np.arange(len(rows)), i))
        alone = method.aggregate(method.local(ClientData("me", without), begin), begin).pooled
        np.testing.assert_allclose(found[i], rows[i] @ alone.weights, atol=1e-8)  # a residual over 1 - w h, which may be 0.02


@pytest.mark.parametrize("kind", [*GRADIENT, *ON_IMAGES], ids=lambda kind: kind.name)
def test_methods_that_know_no_weights_say_so(kind):
    method = kind()
    method.check_weights(Samples(np.zeros((2, 3)), np.zeros(2, int)))
    with pytest.raises(MethodError):
        method.check_weights(Samples(np.zeros((2, 3)), np.zeros(2, int), np.array([1.0, 2.0])))


def test_every_analytic_method_knows_them():
    assert all(kind.weighted for kind in ANALYTIC)


def test_the_sum_of_weights_is_added_taken_away_and_sent():
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((9, 2)), rng.standard_normal(9), rng.uniform(0.2, 3, 9)
    whole = gf.Moments.from_features(X, y, weights=w)
    left, right = (gf.Moments.from_features(X[part], y[part], weights=w[part]) for part in (slice(4), slice(4, 9)))
    assert whole.weight == pytest.approx(w.sum())
    assert ((left + right).weight, (whole - right).weight) == pytest.approx((w.sum(), w[:4].sum()))
    assert gf.Moments.unpack(whole.pack()).weight == pytest.approx(w.sum())
    assert (gf.Moments.from_features(X, y).weight, "extra_weight" in gf.Moments.from_features(X, y).pack().meta) == (9, False)


def test_samples_are_a_pair_that_may_carry_weights():
    samples = Samples(np.arange(6.0).reshape(3, 2), np.arange(3), np.array([1.0, 2.0, 0.5]))
    inputs, targets = samples
    assert (inputs is samples.inputs, targets is samples.targets, len(samples.parts())) == (True, True, 3)
    assert samples.take(np.array([2, 0])).weights.tolist() == [0.5, 1.0]
    assert pickle.loads(pickle.dumps(samples)).weights.tolist() == [1.0, 2.0, 0.5]
    assert Samples(inputs, targets).weights is None
