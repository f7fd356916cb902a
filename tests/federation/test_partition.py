"""Cutting one data set into clients: everyone's sample is someone's, and the cut is what its name says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.errors import GramfoldError
from gramfold.federation.partition import Partition, follow
from gramfold.numerics import seeds

KINDS = ["iid", "dirichlet:0.1", "dirichlet:1", "quantity:0.5", "shards:2", "classes:2"]
SEEDS = st.integers(0, 2**32 - 1)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def codes_of(n: int, classes: int, seed: int) -> np.ndarray:
    """Every class at least twice."""
    return rng(seed).permutation(np.concatenate([np.repeat(np.arange(classes), 2), rng(seed).integers(0, classes, n)]))


@given(st.sampled_from(KINDS), st.integers(0, 200), st.integers(2, 6), st.integers(3, 5), SEEDS)
def test_every_sample_goes_to_exactly_one_client(kind, n, classes, clients, seed):
    codes = codes_of(n + 4, classes, seed)
    owners = Partition.parse(kind).draw(codes, clients, rng(seed))
    assert owners.shape == codes.shape
    assert owners.dtype == np.int64
    assert owners.min() >= 0
    assert owners.max() < clients
    np.testing.assert_array_equal(Partition.parse(kind).draw(codes, clients, rng(seed)), owners)  # the same seed, the same cut


@given(st.floats(-6, 6), st.integers(1, 300), st.integers(1, 40), SEEDS)
def test_dirichlet_cuts_at_every_concentration(exponent, n, clients, seed):
    codes = codes_of(n, 3, seed)
    with np.errstate(all="raise", under="ignore"):
        owners = Partition("dirichlet", 10**exponent).draw(codes, clients, rng(seed))
    sizes = np.bincount(owners, minlength=clients)
    assert sizes.sum() == len(codes)
    if exponent >= 5:  # shares equal to 1 part in 300: every client's count of a class is its share, rounded
        for code in range(3):
            share = (codes == code).sum() / clients
            assert np.abs(np.bincount(owners[codes == code], minlength=clients) - share).max() <= 1 + 0.05 * share
    if exponent <= -4:  # all of a class at one client
        assert all(len(np.unique(owners[codes == code])) == 1 for code in range(3))


def test_a_dirichlet_share_has_the_moments_of_the_distribution():
    # variance of a share: (1/K)(1 - 1/K)/(K alpha + 1)
    codes = np.zeros(10_000, dtype=int)
    stream = rng(0)
    for alpha in (0.1, 1.0, 10.0):
        shares = (
            np.array([np.bincount(Partition("dirichlet", alpha).draw(codes, 4, stream), minlength=4) for _ in range(500)]) / 1e4
        )
        expected = 0.25 * 0.75 / (4 * alpha + 1)
        assert shares.var() == pytest.approx(expected, rel=0.15)  # 2000 correlated draws: a standard error of about 4 %


@given(st.sampled_from(KINDS), st.integers(0, 60), st.integers(1, 8), st.integers(0, 12), SEEDS)
def test_the_smallest_client_has_the_minimum_or_there_is_an_error(kind, n, clients, minimum, seed):
    codes = codes_of(n, 3, seed)
    try:
        owners = Partition.parse(kind).cut(codes, clients, rng(seed), minimum)
    except GramfoldError:
        assert kind != "iid" or clients * minimum > len(codes)  # where equal sizes would do, iid never fails
    else:
        assert np.bincount(owners, minlength=clients).min() >= minimum


def test_an_impossible_minimum_is_an_error_that_says_what_to_do():
    with pytest.raises(GramfoldError, match="10 samples cannot give 6 clients 2 each; ask for fewer clients"):
        Partition("iid").cut(np.zeros(10, int), 6, rng(0), 2)
    with pytest.raises(
        GramfoldError, match=r"dirichlet:1e-05 left a client with 0 samples in each of 100 draws.*drop_small=True"
    ):
        Partition("dirichlet", 1e-5).cut(np.arange(40) % 2, 10, rng(0), 1)
    with pytest.raises(GramfoldError, match="at least one client"):
        Partition("iid").cut(np.zeros(10, int), 0, rng(0))


@given(st.integers(1, 300), st.integers(1, 40), SEEDS)
def test_iid_clients_differ_in_size_by_at_most_one(n, clients, seed):
    sizes = np.bincount(Partition("iid").draw(np.zeros(n, int), clients, rng(seed)), minlength=clients)
    assert sizes.max() - sizes.min() <= 1


@given(st.integers(2, 8), st.integers(1, 12), st.data())
def test_a_client_holds_exactly_k_classes(classes, clients, data):
    k = data.draw(st.integers(-(-classes // clients), classes)) if clients * classes >= classes else 1
    seed = data.draw(SEEDS)
    codes = rng(seed).permutation(
        np.repeat(np.arange(classes), clients + rng(seed).integers(0, 9, classes))
    )  # one for every holder
    owners = Partition("classes", k).draw(codes, clients, rng(seed))
    for client in range(clients):
        assert len(np.unique(codes[owners == client])) == k
    holders = [len(np.unique(owners[codes == code])) for code in range(classes)]
    assert min(holders) >= 1
    for code in range(classes):  # a class is split evenly among its holders
        sizes = np.bincount(owners[codes == code])
        assert np.ptp(sizes[sizes > 0]) <= 1


@pytest.mark.parametrize(("k", "clients", "message"), [(4, 5, "at most 3"), (1, 2, "cannot hold all 3")])
def test_classes_that_cannot_be_dealt_are_refused(k, clients, message):
    with pytest.raises(GramfoldError, match=message):
        Partition("classes", k).draw(np.arange(30) % 3, clients, rng(0))


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 60), SEEDS)
def test_shards_are_equal_runs_of_the_sorted_classes(clients, per_client, extra, seed):
    count = clients * per_client
    codes = rng(seed).integers(0, 5, count + extra)
    owners = Partition("shards", per_client).draw(codes, clients, rng(seed))
    sizes = np.bincount(owners, minlength=clients)
    assert sizes.max() - sizes.min() <= per_client  # shards differ by one
    size = -(-len(codes) // count)
    for client in range(clients):  # a shard of s samples touches at most s classes, and runs of one class are not torn
        assert len(np.unique(codes[owners == client])) <= per_client * min(5, size)
    if len(np.unique(codes)) == 5 and clients == 1:
        assert sizes[0] == len(codes)


def test_two_shards_of_large_classes_are_few_classes():
    owners = Partition("shards", 2).draw(np.repeat(np.arange(10), 100), 20, rng(0))
    codes = np.repeat(np.arange(10), 100)
    assert all(len(np.unique(codes[owners == client])) <= 2 for client in range(20))  # forty shards, four to a class
    with pytest.raises(GramfoldError, match="cannot be cut into 44 shards"):
        Partition("shards", 4).draw(np.zeros(40, int), 11, rng(0))


def test_quantity_mixes_the_classes_and_skews_the_sizes():
    codes = np.arange(40_000) % 4
    owners = Partition("quantity", 0.3).draw(codes, 10, rng(1))
    sizes = np.bincount(owners, minlength=10)
    assert sizes.max() > 3 * np.median(sizes)
    for client in np.flatnonzero(sizes > 2000):
        np.testing.assert_allclose(np.bincount(codes[owners == client]) / sizes[client], 0.25, atol=0.05)


@given(st.sampled_from(KINDS), st.integers(10, 200), st.integers(1, 200), st.integers(3, 8), SEEDS)
def test_test_samples_follow_the_training_proportions(kind, n, n_test, clients, seed):
    codes, test_codes = codes_of(n, 4, seed), rng(seed + 1).integers(0, 5, n_test)  # class 4 is not in training
    owners = Partition.parse(kind).draw(codes, clients, rng(seed))
    follows = follow(codes, owners, test_codes, clients, rng(seed))
    for code in range(4):
        share = np.bincount(owners[codes == code], minlength=clients) / (codes == code).sum()
        counts = np.bincount(follows[test_codes == code], minlength=clients)
        assert np.abs(counts - share * (test_codes == code).sum()).max() <= 1 + 1e-9  # both ends of a run are rounded
    unknown = np.bincount(follows[test_codes == 4], minlength=clients)
    assert np.ptp(unknown) <= 1


@pytest.mark.parametrize("text", ["iid", "natural", "dirichlet:0.1", "classes:2", "shards:3", "quantity:0.5"])
def test_partitions_are_written_as_they_are_read(text):
    assert str(Partition.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1", "dirichlet:x", "dirichlet:nan", "dirichlet:inf", "iid:3",
     "natural:2", "classes:1.5", "classes:0", "shards", "shards:2.5", "pathological:2"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_usage(text):
    with pytest.raises(GramfoldError, match=r"dirichlet:ALPHA|whole number"):
        Partition.parse(text)


def test_the_stream_of_a_partition_is_its_own():
    codes = np.arange(100) % 3
    draw = Partition("iid").draw
    np.testing.assert_array_equal(
        draw(codes, 4, seeds.generator(1, "partition")), draw(codes, 4, seeds.generator(1, "partition"))
    )
    assert (draw(codes, 4, seeds.generator(1, "partition")) != draw(codes, 4, seeds.generator(2, "partition"))).any()
