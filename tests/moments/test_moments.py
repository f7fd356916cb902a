"""Moments: what they accept, what they refuse, and that they are a snapshot of their samples."""

import gc
import re
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import MessageError, MomentsError
from gramfold.moments import check_possible
from gramfold.numerics import arrays
from gramfold.wire import Packet
from strategies import distance, problems

M, C = 6, 3


def moments(n: int = 20, seed: int = 0, **changes) -> gf.Moments:
    rng = np.random.default_rng(seed)
    given_ = {"classes": C} | changes
    return gf.Moments.from_features(rng.standard_normal((n, M)), rng.integers(0, C, n), **given_)


# --- making them ---


@pytest.mark.parametrize(
    ("features", "targets", "message"),
    [
        (np.zeros(4), np.zeros(4, int), "features must be n x m"),
        (np.zeros((4, 2)), np.zeros(3, int), "4 feature rows but 3 targets"),
        (np.zeros((2, 2)), np.array([0, C]), "class codes must lie in 0..2"),
        (np.zeros((2, 2)), np.array([-1, 0]), "class codes must lie in 0..2"),
        (np.array([[0.0, np.nan]]), np.array([0]), "must be finite"),
        (np.array([[0.0, np.inf]]), np.array([0]), "must be finite"),
        (np.zeros((2, 2)), np.array([0.5, 1.0]), "class codes"),
        (np.zeros((2, 2)), np.array([0.0, np.nan]), "class codes"),
    ],
)
def test_what_is_not_a_labelled_feature_set_is_refused(features, targets, message):
    with pytest.raises(gf.GramfoldError, match=re.escape(message)):
        gf.Moments.from_features(features, targets, classes=C)


def test_continuous_targets_must_be_finite():
    with pytest.raises(gf.GramfoldError, match="must be finite"):
        gf.Moments.from_features(np.zeros((2, 2)), np.array([0.0, np.nan]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "bool"])
def test_class_codes_may_be_of_any_whole_number_type(dtype):
    codes = np.array([0, 1, 1, 0, 1])
    made = gf.Moments.from_features(np.eye(5), codes.astype(dtype), classes=2)
    np.testing.assert_array_equal(made.counts, [2, 3])
    np.testing.assert_array_equal(made.cross, np.eye(2)[codes])


def test_classes_may_be_a_numpy_number_or_array():
    expected = moments()
    for classes in (np.int64(C), np.arange(C)):
        made = moments(classes=classes)
        assert distance(made, expected) == 0.0
        assert distance(gf.Moments.unpack(Packet.from_bytes(made.pack().to_bytes())), expected) == 0.0


@given(problems(samples=(1, 60)), st.integers(1, 8))
def test_summing_block_by_block_changes_nothing(problem, rows_per_block):
    whole = problem.pooled()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_BYTES", 8 * problem.X.shape[1] * rows_per_block)
        in_blocks = problem.pooled()
        _ = in_blocks.gram
    assert distance(in_blocks, whole) < 1e-13  # sums of at most 60 terms in another order


def test_float32_features_are_summed_in_float64():
    features = np.full((10_000, 2), 1 + 2.0**-20, np.float32)  # in float32 the sum would lose what exceeds one
    made = gf.Moments.from_features(features, np.zeros(10_000))
    np.testing.assert_allclose(made.gram, 10_000 * (1 + 2.0**-20) ** 2, rtol=1e-14)


@pytest.mark.parametrize("n", [2, 20])
def test_changing_the_features_afterwards_changes_no_moments(n):
    features = np.random.default_rng(0).standard_normal((n, M))
    targets = features[:, :2].copy()
    made = gf.Moments.from_features(features, targets)
    expected = features.T @ features, features.T @ targets
    features[:] = targets[:] = 0.0
    np.testing.assert_allclose(made.gram, expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(made.cross, expected[1], rtol=1e-12, atol=1e-12)


def test_changing_given_arrays_afterwards_changes_no_moments():
    gram, cross, squares = np.eye(M), np.ones((M, 2)), np.ones(2)
    made = gf.Moments.from_arrays(gram, cross, squares, 1)
    gram[:] = cross[:] = squares[:] = 7.0
    assert made.gram.sum() == M
    assert made.cross.sum() == 2 * M
    assert made.squares.sum() == 2


def test_moments_do_not_keep_the_samples_alive():
    features = np.random.default_rng(0).standard_normal((5 * M, M))
    alive = weakref.ref(features)
    made = gf.Moments.from_features(features, np.zeros(5 * M, int), classes=2)
    del features
    gc.collect()
    assert alive() is None
    assert made.n == 5 * M


def test_a_gram_is_symmetric_whichever_is_read_first():
    made = moments()
    lower = np.tril(made.lower_gram).copy()
    np.testing.assert_array_equal(made.gram, made.gram.T)
    np.testing.assert_array_equal(np.tril(made.gram), lower)
    assert repr(made) == f"Moments(n=20, dim={M}, classes={C})"


def test_a_factor_has_the_gram_and_the_cross_moment():
    for made in (moments(3), moments(20), moments(3) + moments(20, seed=1), gf.Moments(M, C)):
        rows, targets = made.factor()
        assert len(rows) <= M
        np.testing.assert_allclose(rows.T @ rows, made.gram, rtol=0, atol=1e-12)
        np.testing.assert_allclose(rows.T @ targets, made.cross, rtol=0, atol=1e-12)


def test_continuous_targets_have_no_class_counts():
    with pytest.raises(MomentsError):
        _ = gf.Moments.from_features(np.eye(3), np.ones(3)).counts


# --- folding what does not belong together ---


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (gf.Moments(M + 1, C, labels=(0, 1, 2)), "feature dimension: 6 and 7"),
        (gf.Moments(M, C + 1, labels=(0, 1, 2)), "number of targets: 3 and 4"),
        (gf.Moments(M, C, labels=("a", "b", "c")), "class list"),
        (gf.Moments(M, C), "class list"),
        (gf.Moments(M, C, labels=(0, 1, 2), fingerprint="other"), "feature map: none and other"),
    ],
)
def test_moments_of_another_space_are_refused(other, what):
    for fold in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: b + a):
        with pytest.raises(MomentsError):
            fold(moments(), other)
    with pytest.raises(gf.GramfoldError, match=re.escape(what)):
        _ = moments() + other


def of_class(codes: list[int], scale: float = 1.0) -> gf.Moments:
    return gf.Moments.from_features(scale * np.ones((len(codes), M)), np.array(codes), classes=C)


@pytest.mark.parametrize(
    ("whole", "taken"),
    [
        (of_class([0, 1]), of_class([0, 1, 1])),  # more samples than there are
        (of_class([0, 0, 0]), of_class([1])),  # of a class that nobody had
        (of_class([0, 0, 1]), of_class([0], scale=9.0)),  # longer than everything that was added
        (of_class([0, 1]), of_class([0, 1], scale=2.0)),  # as many as there are, but others
    ],
)
def test_samples_that_were_never_added_cannot_be_taken_out(whole, taken):
    with pytest.raises(gf.GramfoldError, match="cannot"):
        _ = whole - taken


def test_a_refused_fold_leaves_both_as_they_were():
    a, b = moments(), moments(fingerprint="other")
    before = a.gram.copy()
    with pytest.raises(gf.GramfoldError):
        a += b
    assert a.n == 20
    np.testing.assert_array_equal(a.gram, before)


# --- given as arrays, and from a wire that cannot be trusted ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gram": np.ones((M, M + 1))}, "not square and symmetric"),
        ({"gram": np.triu(np.ones((M, M)))}, "not square and symmetric"),
        ({"gram": np.full((M, M), np.nan)}, "not square and symmetric"),
        ({"gram": -np.eye(M)}, "negative diagonal"),
        ({"cross": np.zeros((M + 1, C))}, "wrong shape"),
        ({"cross": np.full((M, C), np.inf)}, "must be finite"),
        ({"squares": np.ones(C + 1)}, "target squares of shape"),
        ({"squares": np.array([1.0, np.nan, 1.0])}, "must be finite"),
        ({"squares": np.array([-1.0, 2.0, 2.0])}, "cannot be the moments"),
        ({"squares": np.array([0.5, 1.5, 1.0])}, "class counts"),
        ({"n": 4}, "class counts sum to 3, but there are 4"),
        ({"n": -3}, "cannot be the moments of -3"),
        ({"labels": (0, 1)}, "moments of 3 targets"),
    ],
)
def test_arrays_that_cannot_be_moments_are_refused(changes, message):
    good = {"gram": np.eye(M), "cross": np.zeros((M, C)), "squares": np.ones(C), "n": 3, "labels": (0, 1, 2)}
    assert gf.Moments.from_arrays(**good).n == 3
    with pytest.raises(gf.GramfoldError, match=message):
        gf.Moments.from_arrays(**(good | changes))


def bad_entry(array: np.ndarray, value: float) -> np.ndarray:
    spoilt = array.astype(np.float64)
    spoilt.flat[0] = value
    return spoilt


TAMPERED = {
    "NaN in the gram": lambda a: {"gram": bad_entry(a["gram"], np.nan)},
    "infinity in the cross-moment": lambda a: {"cross": bad_entry(a["cross"], np.inf)},
    "NaN among the counts": lambda a: {"squares": bad_entry(a["squares"], np.nan)},
    "a fractional count": lambda a: {"squares": bad_entry(a["squares"], 0.5)},
    "a negative count": lambda a: {"squares": bad_entry(a["squares"], -1)},
    "other counts": lambda a: {"squares": a["squares"] + 1},
    "counts of another shape": lambda a: {"squares": a["squares"][:, None]},
    "square counts": lambda a: {"squares": np.tile(a["squares"], (C, 1))},
    "too short a gram": lambda a: {"gram": a["gram"][:-1]},
    "a square gram": lambda a: {"gram": np.eye(M)},
    "too few rows of cross-moment": lambda a: {"cross": a["cross"][:-1]},
    "one row of cross-moment for all": lambda a: {"cross": a["cross"][:1]},
    "a flat cross-moment": lambda a: {"cross": a["cross"][0]},
    "a number for a cross-moment": lambda a: {"cross": np.array(3.0)},
    "too many columns of cross-moment": lambda a: {"cross": np.hstack([a["cross"], a["cross"]])},
    "no gram": lambda a: {"gram": None},
    "no counts": lambda a: {"squares": None},
}
TAMPERED_META = {
    "other n": {"n": 21},
    "negative n": {"n": -1},
    "infinite n": {"n": float("inf")},
    "fractional n": {"n": 20.5},
    "n in words": {"n": "many"},
    "samples without end": {"n": 10**400},
    "another n of samples": {"n": 5},
    "a truth for n": {"n": True},
    "other dimension": {"dim": M + 1},
    "negative dimension": {"dim": -M},
    "a dimension without end": {"dim": 10**15},
    "other labels": {"labels": [0, 1]},
    "labels that are no list": {"labels": 3},
    "an unknown form": {"form": "hologram"},
    "no form": {"form": None},
}


@pytest.mark.parametrize("n", [3, 20], ids=["factor", "triangle"])
@pytest.mark.parametrize("what", [*TAMPERED, *TAMPERED_META])
def test_a_tampered_message_is_refused(what, n):
    packet = gf.Moments.from_features(np.random.default_rng(0).standard_normal((n, M)), np.arange(n) % C, classes=C).pack()
    changes = TAMPERED[what](packet.arrays) if what in TAMPERED else {}
    parts = {name: array for name, array in {**packet.arrays, **changes}.items() if array is not None}
    tampered = Packet(parts, {**packet.meta, **TAMPERED_META.get(what, {})})
    with pytest.raises(gf.GramfoldError):
        gf.Moments.unpack(Packet.from_bytes(tampered.to_bytes()))


def test_a_triangle_with_a_negative_diagonal_is_refused():
    packet = moments().pack()
    packet["gram"][0] = -1.0
    with pytest.raises(MessageError):
        gf.Moments.unpack(packet)


@pytest.mark.parametrize("n", [3, 20], ids=["factor", "triangle"])
def test_a_message_in_single_precision_folds_like_any_other(n):
    packet = moments(n).pack()
    single = Packet({**packet.arrays, "gram": packet["gram"].astype(np.float32)}, packet.meta)
    folded = moments(4, seed=1) + gf.Moments.unpack(Packet.from_bytes(single.to_bytes()))
    np.testing.assert_allclose(folded.gram, (moments(4, seed=1) + moments(n)).gram, rtol=0, atol=1e-5)
    folded = gf.Moments.unpack(single)
    folded += moments(M, seed=1)
    assert folded.gram.dtype == np.float64


@given(st.binary(max_size=200))
def test_random_bytes_are_no_moments(data):
    with pytest.raises(gf.GramfoldError):
        gf.Moments.unpack(Packet.from_bytes(data))


@given(st.integers(0, 2**16), st.integers(1, 255))
def test_a_flipped_byte_gives_an_error_or_moments_but_no_crash(place, flip):
    data = bytearray(moments(3).pack().to_bytes())
    data[place % len(data)] ^= flip
    try:
        made = gf.Moments.unpack(Packet.from_bytes(bytes(data)))
    except gf.GramfoldError:
        return
    check_possible(made)


# --- as a file ---


@pytest.mark.parametrize("n", [0, 3, 20])
def test_a_file_holds_them(tmp_path, n):
    path = tmp_path / "north.safetensors"
    made = moments(n, fingerprint="abc")
    made.save(path)
    assert path.stat().st_size == made.wire_bytes
    assert distance(gf.Moments.load(path), made) < 1e-13
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing temporary is left


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "cut.safetensors"
    data = moments().pack().to_bytes()
    for size in (0, 7, 8, 50, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(gf.GramfoldError, match="not a gramfold message"):
            gf.Moments.load(path)


def test_a_missing_file_and_an_unwritable_place_are_named(tmp_path):
    with pytest.raises(gf.GramfoldError, match=r"cannot read .*nowhere"):
        gf.Moments.load(tmp_path / "nowhere")
    with pytest.raises(gf.GramfoldError, match=r"cannot write .*nowhere"):
        moments().save(tmp_path / "nowhere" / "x")
    with pytest.raises(gf.GramfoldError, match="cannot write"):
        moments().save(tmp_path)


def test_moments_of_another_map_load_but_do_not_fold(tmp_path):
    moments(fingerprint="theirs").save(tmp_path / "x")
    with pytest.raises(gf.GramfoldError, match="feature map: ours and theirs"):
        _ = moments(fingerprint="ours") + gf.Moments.load(tmp_path / "x")


@given(problem=problems(samples=(12, 40), width=(1, 6), clients=(2, 4)))
def test_moments_off_the_wire_add_like_those_they_were(problem):
    """A triangle that came over the wire is added as it is, to a sum of any form; also to itself."""
    parts = problem.moments()
    came = [gf.Moments.unpack(part.pack()) for part in parts]
    total = came[0].copy()
    for part in came[1:]:
        total += part
    assert distance(total, problem.pooled()) < 1e-12
    twice = gf.Moments.unpack(problem.pooled().pack())
    twice += twice
    assert distance(twice, problem.pooled() + problem.pooled()) < 1e-12
    empty = gf.Moments(problem.X.shape[1], problem.classes, labels=tuple(range(problem.classes)))
    empty += gf.Moments.unpack(problem.pooled().pack())
    assert distance(empty, problem.pooled()) < 1e-12
