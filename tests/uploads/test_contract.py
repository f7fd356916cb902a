"""What every kind of upload keeps to: it adds, copies, is a message, and is a vector of a length that gives nothing away."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import uploads
from gramfold.errors import GramfoldError
from gramfold.uploads import GroupedMoments, NamedSums, PerClient
from gramfold.wire import Packet

DIM, CLASSES, GROUPS = 5, 3, ("map a", "map b", "map c")
SUMMATION = 1e-12  # relative: a few additions of float64


def moments(rng: np.random.Generator, n: int, fingerprint: str = "") -> gf.Moments:
    return gf.Moments.from_features(rng.standard_normal((n, DIM)), rng.integers(0, CLASSES, n), CLASSES, fingerprint)


def make(kind: str, seed: int, n: int):
    """A client's upload, of n samples."""
    rng = np.random.default_rng(seed)
    match kind:
        case "moments":
            return moments(rng, n)
        case "grouped-moments":
            groups = rng.permutation(len(GROUPS))[: rng.integers(1, 4)].tolist()
            return GroupedMoments({group: moments(rng, n, GROUPS[group]) for group in groups}, GROUPS)
        case "named-sums":
            weights = torch.as_tensor(rng.standard_normal((2, 3)).astype(np.float32))
            return NamedSums({"w": weights, "n": np.array([n]), "b": rng.standard_normal(4), "scalar": np.array(float(n))})
    return PerClient({f"client {seed}": {"x": rng.standard_normal(n), "y": np.array([n])}})


KINDS = st.sampled_from(["moments", "grouped-moments", "named-sums", "per-client"])
SUMMED = st.sampled_from(["moments", "grouped-moments", "named-sums"])
SEEDS, SAMPLES = st.integers(0, 2**16), st.integers(1, 12)


def state(upload) -> bytes:
    return upload.pack().to_bytes()


@given(KINDS, SEEDS, SAMPLES)
def test_a_message_brings_the_upload_and_says_which_kind_it_is(kind, seed, n):
    upload = make(kind, seed, n)
    assert upload.kind == upload.pack().meta["kind"] == kind
    assert len(state(upload)) == upload.wire_bytes
    back = uploads.unpack(Packet.from_bytes(state(upload)))
    assert type(back) is type(upload)
    assert state(back) == state(upload)


@given(KINDS, SEEDS, SEEDS, SAMPLES, SAMPLES)
def test_adding_changes_only_the_left_side_and_copies_are_their_own(kind, seed, other_seed, n, m):
    left, right = make(kind, seed, n), make(kind, other_seed, m)
    before = state(left), state(right)
    total = left.copy()
    total += right
    snapshot, settled = total.copy(), state(total.copy().settle())
    after = state(total)
    total += right
    assert (state(left), state(right)) == before
    assert state(snapshot) == after
    assert kind == "moments" or settled == after  # buffered rows of moments may be multiplied out


@given(SUMMED, SEEDS, SEEDS, SAMPLES, SAMPLES)
def test_vectors_add_like_uploads_and_come_back_bit_for_bit(kind, seed, other_seed, n, m):
    left, right = make(kind, seed, n), make(kind, other_seed, m)
    public = json.loads(json.dumps(left.public()))
    assert public == right.public()  # nothing in it depends on the data
    assert public["kind"] == kind
    parts = left.vector(), right.vector()
    assert parts[0].shape == parts[1].shape
    assert parts[0].dtype == np.float64
    total = left.copy()
    total += right
    np.testing.assert_allclose(total.vector(), parts[0] + parts[1], rtol=SUMMATION, atol=SUMMATION)
    for vector in (*parts, parts[0] + parts[1]):
        back = uploads.from_vector(vector, public)
        assert type(back) is type(left)
        assert back.public() == public
        assert back.vector().tobytes() == vector.tobytes()


@given(SUMMED, SEEDS, SAMPLES)
def test_numbers_with_noise_are_taken_as_they_are(kind, seed, n):
    upload = make(kind, seed, n)
    noised = upload.vector() + np.random.default_rng(seed).standard_normal(len(upload.vector()))
    back = uploads.from_vector(noised, upload.public())
    assert back.vector().tobytes() == noised.tobytes()
    back += upload
    np.testing.assert_allclose(back.vector(), noised + upload.vector(), rtol=SUMMATION, atol=SUMMATION)


@given(SUMMED, SEEDS)
def test_what_is_no_vector_of_the_kind_is_refused(kind, seed):
    upload = make(kind, seed, 3)
    vector, public = upload.vector(), upload.public()
    for wrong in (vector[:-1], np.append(vector, 0.0), vector[None], np.full_like(vector, np.nan)):
        with pytest.raises(GramfoldError):
            uploads.from_vector(wrong, public)
    for wrong_public in ({}, {"kind": "hologram"}, {"kind": kind}):
        with pytest.raises(GramfoldError):
            uploads.from_vector(vector, wrong_public)


def test_parcels_are_no_vector():
    upload = make("per-client", 0, 3)
    for ask in (upload.vector, upload.public, lambda: uploads.from_vector(np.zeros(1), {"kind": "per-client"})):
        with pytest.raises(GramfoldError, match="needs each client's upload"):
            ask()


def test_the_vector_of_a_group_does_not_tell_which_group_it_is(rng):
    one, two = (GroupedMoments({group: moments(rng, 4, GROUPS[group])}, GROUPS) for group in (0, 2))
    assert one.vector().shape == two.vector().shape
    assert one.public() == two.public()
    back = uploads.from_vector(one.vector(), one.public())
    assert list(back.groups) == [0]
    assert list(uploads.from_vector(0 * one.vector(), one.public()).groups) == [0]


def test_groups_that_do_not_fit_are_refused_and_leave_the_sum_as_it_was(rng):
    total = GroupedMoments({0: moments(rng, 4, GROUPS[0])}, GROUPS)
    before = state(total)
    wider = gf.Moments.from_features(rng.standard_normal((4, DIM + 1)), rng.integers(0, CLASSES, 4), CLASSES, GROUPS[1])
    for other in (
        GroupedMoments({0: moments(rng, 4, GROUPS[0])}, GROUPS[:1]),
        GroupedMoments({0: moments(rng, 4, "map d")}, ["map d", *GROUPS[1:]]),
        GroupedMoments({1: wider}, GROUPS),
    ):
        with pytest.raises(GramfoldError, match="differ in"):
            total += other
    assert state(total) == before
    for groups in ({3: moments(rng, 4)}, {-1: moments(rng, 4)}, {0: moments(rng, 4, GROUPS[1])}):
        with pytest.raises(GramfoldError):
            GroupedMoments(groups, GROUPS)


def test_all_groups_together_are_the_pooled_moments(rng):
    parts = {group: moments(rng, 4, GROUPS[group]) for group in (2, 0)}
    grouped = GroupedMoments(parts, GROUPS)
    before = state(grouped)
    total = grouped.total()
    assert total.n == 8
    np.testing.assert_allclose(total.gram, parts[0].gram + parts[2].gram, rtol=SUMMATION)
    assert state(grouped) == before


@pytest.mark.parametrize("kind", ["moments", "grouped-moments"])
def test_weighted_counts_are_taken_only_where_exact_ones_are_not_demanded(kind, rng):
    weighted = gf.Moments.from_features(np.eye(3), np.arange(3), 3, weights=np.array([0.5, 1, 2]))
    upload = weighted if kind == "moments" else GroupedMoments({0: weighted}, [""])
    with pytest.raises(GramfoldError, match="class counts"):
        uploads.unpack(upload.pack())
    assert state(uploads.unpack(upload.pack(), exact_counts=False)) == state(upload)
