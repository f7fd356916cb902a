"""Moments are a value: reading changes nothing, what is sent follows from what they are, and a vector is all of them."""

import json
import operator

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import MessageError
from gramfold.moments import check_exact_counts, check_possible
from gramfold.wire import Packet
from strategies import distance, problems, relative

SUMMATION = 1e-12  # relative: a few hundred additions of float64 lose a few hundred epsilon

READS = {
    "gram": lambda m: m.gram,
    "lower gram": lambda m: m.lower_gram,
    "cross": lambda m: m.cross,
    "factor": lambda m: m.factor(),
    "squares": lambda m: m.squares,
    "n": lambda m: m.n,
    "repr": repr,
    "bytes": lambda m: m.wire_bytes,
    "pack": lambda m: m.pack(),
    "vector": lambda m: m.vector(),
    "copy": lambda m: m.copy(),
    "sum": lambda m: m + m,
    "difference": lambda m: m - m,
}
reads = st.lists(st.sampled_from(sorted(READS)), max_size=5)

MADE = [
    "features",
    "torch",
    "regression",
    "weighted",
    "sum",
    "growing sum",
    "difference",
    "wire",
    "sum off the wire",
    "arrays",
    "vector",
]


def build(how: str, problem, seed: int = 0) -> gf.Moments:
    """Moments of all of a problem's samples, come about in one way or another."""
    X, codes, classes = problem.X, problem.codes, problem.classes
    pooled = problem.pooled()
    match how:
        case "torch":
            return gf.Moments.from_features(torch.as_tensor(X), torch.as_tensor(codes), classes=classes)
        case "regression":
            return gf.Moments.from_features(X, problem.Y + 0.5)
        case "weighted":
            weights = np.random.default_rng(seed).uniform(0, 3, len(X))
            return gf.Moments.from_features(X, codes, classes=classes, weights=weights)
        case "sum":
            first, *others = problem.moments()
            return sum(others, first)
        case "growing sum":
            total = gf.Moments(X.shape[1], classes, labels=tuple(range(classes)))
            for part in problem.moments():
                total += part
            return total
        case "difference":
            return (pooled + problem.pooled()) - pooled
        case "wire":
            return gf.Moments.unpack(Packet.from_bytes(pooled.pack().to_bytes()))
        case "sum off the wire":
            first, *others = (gf.Moments.unpack(part.pack()) for part in problem.moments())
            return sum(others, first)
        case "arrays":
            return gf.Moments.from_arrays(pooled.gram, pooled.cross, pooled.squares, pooled.n, labels=pooled.labels)
        case "vector":
            return gf.Moments.from_vector(pooled.vector(), pooled.public())
    return pooled


made = st.sampled_from(MADE)


def same(a: gf.Moments, b: gf.Moments) -> bool:
    return a.exact_n == b.exact_n and a.vector().tobytes() == b.vector().tobytes()


@given(problems(width=(1, 50)), made, reads)
def test_reading_changes_neither_what_is_sent_nor_its_size(problem, how, sequence):
    quiet, read = build(how, problem), build(how, problem)
    for name in sequence:
        READS[name](read)
    assert read.wire_bytes == quiet.wire_bytes
    assert read.pack().to_bytes() == quiet.pack().to_bytes()
    assert len(quiet.pack().to_bytes()) == quiet.wire_bytes


@given(problems(samples=(2, 40), width=(1, 50), clients=(2, 6)), made, reads, reads)
def test_reading_changes_no_later_sum_bit_for_bit(problem, how, left_reads, right_reads):
    assume(how not in ("torch", "regression", "weighted"))
    quiet, read, parts = build(how, problem), build(how, problem), problem.moments()
    for part in parts:
        quiet += part
    for part in problem.moments():
        for name in left_reads:
            READS[name](read)
        for name in right_reads:
            READS[name](part)
        read += part
    assert same(read, quiet)
    assert read.pack().to_bytes() == quiet.pack().to_bytes()


@given(problems(width=(1, 50)), made)
def test_what_was_sent_is_sent_again_byte_for_byte(problem, how):
    data = build(how, problem).pack().to_bytes()
    back = gf.Moments.unpack(Packet.from_bytes(data), exact_counts=how != "weighted")
    assert back.pack().to_bytes() == data
    assert (back + gf.Moments(back.dim, back.outputs, labels=back.labels)).pack().to_bytes() == data


@given(problems(width=(1, 50)), made, made)
def test_the_form_follows_from_n_m_and_the_classes(problem, how, other):
    assume({how, other} & {"regression"} == set())
    one, two = build(how, problem), build(other, problem)
    assert one.pack().meta["form"] == ("factor" if len(problem.X) < problem.X.shape[1] else "triangle")
    shapes = [{name: array.shape for name, array in moments.pack().arrays.items()} for moments in (one, two)]
    assert shapes[0] == shapes[1]


@given(problems(width=(1, 50)), made)
def test_what_is_sent_are_the_same_moments(problem, how):
    sent = build(how, problem)
    back = gf.Moments.unpack(Packet.from_bytes(sent.pack().to_bytes()), exact_counts=how != "weighted")
    assert distance(back, sent) < SUMMATION


@given(problems(samples=(2, 20), width=(21, 40)), st.integers(0, 2**32 - 1))
def test_rows_are_recovered_from_badly_scaled_and_dependent_features(problem, seed):
    # lengths over ten orders of magnitude, and a feature that differs from another by less than a gram can tell
    rng = np.random.default_rng(seed)
    X = problem.X * 10.0 ** rng.uniform(-5, 5, problem.X.shape[1])
    X[:, 1] = X[:, 0] * (1 + 1e-9 * rng.standard_normal(len(X)))
    rows = gf.Moments.from_features(X, problem.codes, classes=problem.classes)
    gram_only = gf.Moments.from_vector(rows.vector(), rows.public())
    back = gf.Moments.unpack(gram_only.pack())
    scale = np.sqrt(np.diag(rows.gram))
    assert relative(back.gram / scale / scale[:, None], rows.gram / scale / scale[:, None]) < SUMMATION
    assert relative(back.cross / scale[:, None], rows.cross / scale[:, None]) < SUMMATION


@given(problems(samples=(2, 40), clients=(2, 6)), st.booleans())
def test_settling_changes_nothing_but_how_they_are_held(problem, read_first):
    first, *others = problem.moments()
    total = sum(others, first)
    before = total.vector()
    if read_first:
        _ = total.gram
    assert total.settle() is total
    assert total.vector().tobytes() == before.tobytes()
    total += first
    assert distance(total, sum(others, first) + first) < SUMMATION


def test_a_settled_sum_is_read_where_it_is():
    rng = np.random.default_rng(0)
    total = gf.Moments.from_features(rng.standard_normal((9, 6)), rng.integers(0, 2, 9), classes=2)
    held = total.lower_gram
    total += gf.Moments.from_features(rng.standard_normal((3, 6)), rng.integers(0, 2, 3), classes=2)
    assert total.lower_gram is not held
    assert total.lower_gram is total.lower_gram  # multiplied out once, not at every look
    twin = total.copy().settle()
    assert twin.lower_gram is twin.settle().lower_gram
    np.testing.assert_array_equal(np.tril(twin.lower_gram), np.tril(total.lower_gram))


@pytest.mark.parametrize("n", [3, 20])
def test_a_packet_is_a_snapshot(n):
    rng = np.random.default_rng(0)
    total = gf.Moments.unpack(gf.Moments.from_features(rng.standard_normal((n, 6)), rng.integers(0, 2, n), classes=2).pack())
    data = total.pack().to_bytes()
    packet = total.pack()
    total += total
    assert packet.to_bytes() == data


# --- weights ---


@given(problems(), st.booleans(), st.integers(0, 2**32 - 1))
def test_whole_weights_are_repeated_rows(problem, regression, seed):
    weights = np.random.default_rng(seed).integers(0, 4, len(problem.X))
    targets, classes = (problem.Y - 0.3, None) if regression else (problem.codes, problem.classes)
    weighted = gf.Moments.from_features(problem.X, targets, classes, weights=weights)
    repeated = gf.Moments.from_features(np.repeat(problem.X, weights, 0), np.repeat(targets, weights, 0), classes)
    assert weighted.n == len(problem.X)
    assert relative(weighted.gram, repeated.gram) < SUMMATION
    assert relative(weighted.cross, repeated.cross) < SUMMATION
    assert relative(weighted.squares, repeated.squares) < SUMMATION
    if not regression:
        assert weighted.counts.dtype == np.int64
        np.testing.assert_array_equal(weighted.counts, repeated.counts)


@given(problems(samples=(2, 40), clients=(2, 4)), st.integers(0, 2**32 - 1))
def test_weighted_moments_add_subtract_and_travel(problem, seed):
    weights = np.random.default_rng(seed).uniform(0.1, 3, len(problem.X))
    made = [
        gf.Moments.from_features(X, y, problem.classes, weights=weights[problem.owners == k])
        for k, (X, y) in enumerate(problem.parts())
    ]
    pooled = gf.Moments.from_features(problem.X, problem.codes, problem.classes, weights=weights)
    total = sum(made[1:], made[0])
    assert distance(total, pooled) < SUMMATION
    rest = total
    for part in made:
        rest = rest - part
    assert rest.n == 0
    assert pooled.counts.dtype == pooled.pack()["squares"].dtype == np.float64
    with pytest.raises(MessageError):
        gf.Moments.unpack(pooled.pack())
    assert distance(gf.Moments.unpack(pooled.pack(), exact_counts=False), pooled) < SUMMATION


@pytest.mark.parametrize("weights", [np.ones(3), np.ones((4, 1)), np.array([1, 1, 1, -1.0]), np.array([1, 1, 1, np.nan])])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(gf.GramfoldError, match="weights must be 4 finite numbers"):
        gf.Moments.from_features(np.eye(4), np.zeros(4), weights=weights)


def test_torch_weights_are_those_of_numpy(rng):
    X, y, weights = rng.standard_normal((9, 4)), rng.integers(0, 3, 9), rng.uniform(0, 2, 9)
    on_torch = gf.Moments.from_features(*map(torch.as_tensor, (X, y)), 3, weights=torch.as_tensor(weights))
    assert distance(on_torch, gf.Moments.from_features(X, y, 3, weights=weights)) < SUMMATION


# --- as a vector ---


@given(problems(width=(1, 50)), made)
def test_a_vector_comes_back_bit_for_bit_and_says_nothing_of_n_by_its_length(problem, how):
    moments = build(how, problem)
    vector, public = moments.vector(), json.loads(json.dumps(moments.public()))
    assert vector.dtype == np.float64
    assert vector.shape == gf.Moments(moments.dim, moments.outputs, labels=moments.labels).vector().shape
    back = gf.Moments.from_vector(vector, public)
    assert back.vector().tobytes() == vector.tobytes()
    assert back.public() == moments.public()
    assert distance(back, moments) == 0.0


@given(problems(samples=(2, 40), clients=(2, 6)))
def test_vectors_add_like_moments(problem):
    parts = problem.moments()
    total = sum(parts[1:], parts[0])
    added = gf.Moments.from_vector(sum(part.vector() for part in parts), total.public())
    assert distance(added, total) < SUMMATION
    check_possible(added)
    check_exact_counts(added)
    assert distance(total - added, gf.Moments(total.dim, total.outputs, labels=total.labels)) == 0.0


@given(problems(samples=(1, 40)), st.integers(0, 2**32 - 1))
def test_noise_leaves_moments_that_add_and_travel(problem, seed):
    pooled = problem.pooled()
    noise = np.random.default_rng(seed).uniform(0.1, 0.4, len(pooled.vector()))  # not below zero: counts stay possible
    noised = gf.Moments.from_vector(pooled.vector() + noise, pooled.public())
    assert noised.n == pooled.n
    assert noised.exact_n != pooled.n
    check_possible(noised)
    with pytest.raises(gf.GramfoldError, match="class counts"):
        check_exact_counts(noised)
    for moments in (noised, noised + pooled):
        back = gf.Moments.unpack(Packet.from_bytes(moments.pack().to_bytes()), exact_counts=False)
        assert same(back, moments)
        assert len(moments.pack().to_bytes()) == moments.wire_bytes


def test_a_noised_gram_is_not_sent_as_rows_that_it_does_not_have(rng):
    pooled = gf.Moments.from_features(rng.standard_normal((3, 6)), rng.integers(0, 2, 3), classes=2)
    noised = pooled.vector()
    noised[:21] += rng.standard_normal(21)
    with pytest.raises(gf.GramfoldError, match="not the moments of 3 samples"):
        gf.Moments.from_vector(noised, pooled.public()).pack()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda v, p: (v[:-1], p), "not a vector of moments"),
        (lambda v, p: (v[None], p), "not a vector of moments"),
        (lambda v, p: (v * np.nan, p), "must be finite"),
        (lambda v, p: (v, p | {"dim": 10**12}), "not a vector of moments"),
        (lambda v, p: (v, p | {"dim": -1}), "not a vector of moments"),
        (lambda v, p: (v, p | {"labels": [0]}), "not a vector of moments"),
        (lambda v, p: (v, {"kind": "moments"}), "not a vector of moments"),
    ],
)
def test_what_is_no_vector_of_moments_is_refused(rng, change, match):
    moments = gf.Moments.from_features(rng.standard_normal((3, 6)), rng.integers(0, 2, 3), classes=2)
    with pytest.raises(gf.GramfoldError, match=match):
        gf.Moments.from_vector(*change(moments.vector(), moments.public()))


@given(problems(width=(1, 50)), made)
def test_addition_with_itself(problem, how):
    a = build(how, problem)
    doubled = a + a
    assert operator.iadd(a, a) is a
    assert distance(a, doubled) < SUMMATION
