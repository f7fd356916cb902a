"""Folding is addition: the shared model is that of pooled data, whatever the split, the order and the form that travels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.solve.ridge import ridge
from gramfold.wire import Packet
from strategies import PENALTIES, Problem, distance, problems, relative

SUMMATION = 1e-12  # relative to the larger of the sums: a few hundred additions of float64 lose a few hundred epsilon
SOLVED = 1e-9  # summation error times a condition number below 1e5 (see PENALTIES)


@given(problems(), PENALTIES, st.randoms(use_true_random=False))
def test_folded_moments_give_the_pooled_ridge_in_any_order(problem, penalty, random):
    parts = problem.moments()
    random.shuffle(parts)
    folded = sum(parts[1:], parts[0])
    X, Y = problem.X, problem.Y
    pooled = np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ Y)
    assert relative(ridge(folded.gram, folded.cross, penalty), pooled) < SOLVED
    assert distance(folded, problem.pooled()) < SUMMATION


@given(problems(width=(2, 10)), PENALTIES, st.randoms(use_true_random=False))
def test_afl_gives_the_pooled_ridge_in_any_order(problem, penalty, random):
    order = random.sample(range(problem.clients), problem.clients)
    result = gf.run(gf.AFL(features="raw+linear", penalty=penalty), problem.federation(order))
    X, Y = problem.X, problem.Y
    pooled = np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T @ Y)
    for head in [result.global_head, *result.heads.values()]:
        assert relative(head.scores(X), X @ pooled) < SOLVED


@given(problems(samples=(2, 40), clients=(2, 3)))
def test_forgetting_undoes_folding(problem):
    a, b, *_ = problem.moments()
    rest = (a + b) - b
    scale = float(np.abs((a + b).gram).max())
    assert rest.n == a.n
    np.testing.assert_array_equal(rest.counts, a.counts)
    np.testing.assert_allclose(rest.gram, a.gram, rtol=0, atol=SUMMATION * scale)
    np.testing.assert_allclose(rest.cross, a.cross, rtol=0, atol=SUMMATION * scale)


@given(problems(samples=(3, 40), clients=(3, 3)))
def test_folding_is_commutative_and_associative_with_a_zero(problem):
    a, b, c = problem.moments()
    assert distance(a + b, b + a) < SUMMATION
    assert distance((a + b) + c, a + (b + c)) < SUMMATION
    zero = gf.Moments(a.dim, a.outputs, labels=a.labels)
    assert distance(a + zero, a) == distance(zero + a, a) == distance(a - zero, a) == 0.0


@given(problems(), st.booleans())
def test_taking_everything_out_leaves_exactly_nothing(problem, multiplied_out):
    a = problem.pooled()
    if multiplied_out:
        a = as_gram(a)
    nothing = a - a.copy()
    assert nothing.n == 0
    assert not nothing.gram.any()
    assert not nothing.cross.any()
    assert not nothing.squares.any()


@given(problems(samples=(2, 40), clients=(2, 2)), st.booleans(), st.booleans())
def test_folding_changes_only_the_left_operand(problem, gram_left, gram_right):
    a, b = (as_gram(part) if gram else part for part, gram in zip(problem.moments(), (gram_left, gram_right), strict=True))
    twin, before, right = a.copy(), distance_free(a), distance_free(b)
    twin += b
    twin += b
    assert distance_free(a) == before
    assert distance_free(b) == right
    assert twin.n == a.n + 2 * b.n


def as_gram(moments: gf.Moments) -> gf.Moments:
    """The same moments, of which only the gram is held."""
    space = {"labels": moments.labels, "fingerprint": moments.fingerprint}
    return gf.Moments.from_arrays(moments.gram, moments.cross, moments.squares, moments.n, **space)


def distance_free(moments: gf.Moments) -> tuple:
    """All that moments say."""
    return moments.n, moments.squares.tobytes(), moments.gram.tobytes(), moments.cross.tobytes()


@given(problems())
def test_moments_fold_into_themselves(problem):
    a = problem.pooled()
    doubled = a + a
    a += a
    assert distance(a, doubled) < SUMMATION


@given(problems())
def test_continuous_targets_fold_like_classes(problem):
    pooled = gf.Moments.from_features(problem.X, problem.Y)
    parts = [gf.Moments.from_features(X, np.eye(problem.classes)[y]) for X, y in problem.parts()]
    assert distance(sum(parts[1:], parts[0]), pooled) < SUMMATION
    assert relative(pooled.cross, problem.pooled().cross) < SUMMATION


# --- what travels ---


def travel(moments: gf.Moments) -> tuple[gf.Moments, bytes]:
    data = moments.pack().to_bytes()
    return gf.Moments.unpack(Packet.from_bytes(data)), data


@given(problems(classes=(2, 6)), st.sampled_from(["", "0123abcd"]), st.booleans())
def test_triangle_and_qr_factor_carry_the_same_moments(problem: Problem, fingerprint, names):
    classes = [f"Klasse {chr(0x3B1 + i)}" for i in range(problem.classes)] if names else problem.classes
    held_as_rows = gf.Moments.from_features(problem.X, problem.codes, classes, fingerprint)
    n, m = problem.X.shape
    for moments in (held_as_rows, as_gram(held_as_rows)):
        assert moments.pack().meta["form"] == ("factor" if n < m else "triangle")
        back, data = travel(moments)
        assert len(data) == moments.wire_bytes == held_as_rows.wire_bytes
        assert distance(back, held_as_rows) < SUMMATION  # QR is orthogonal to rounding
        assert back.pack()["cross"].shape[1] == len(np.unique(problem.codes))  # absent classes did not travel
        assert back.outputs == problem.classes


@given(problems(), st.booleans())
def test_moments_of_continuous_targets_travel(problem, one_column_is_zero):
    Y = np.random.default_rng(problem.seed).standard_normal((len(problem.X), 3))
    Y[:, 1] *= not one_column_is_zero
    moments = gf.Moments.from_features(problem.X, Y)
    back, data = travel(moments)
    assert len(data) == moments.wire_bytes
    assert distance(back, moments) < SUMMATION


@pytest.mark.parametrize("seed", range(30))
def test_what_is_left_after_forgetting_can_be_sent(seed):
    # a feature that only the forgotten clients had is left with a sum of squares of zero, give or take rounding
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, 9)
    mine = rng.standard_normal((9, 4)) * [0, 1, 1, 1]
    a, b, c = (gf.Moments.from_features(F, codes, classes=2) for F in (mine, *(rng.standard_normal((2, 9, 4)) * [[[1]], [[3]]])))
    back, _ = travel(((a + b) + c) - b - c)
    assert distance(back, a) < 1e-12
