"""Sums of partitions, as tasks of a cluster add them up: in any tree, and none of them twice."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramfold.federation import Client, Samples
from gramfold.moments import Moments
from gramfold.wire import Packet

pytest.importorskip("distributed", reason="needs the extra dask")
from gramfold.engines.dask import tasks
from gramfold.engines.dask.tasks import Sum

TOLERANCE = 1e-12
"""Sums of a few hundred numbers of size one, in another order."""


def partition(place: int, n: int = 5, dim: int = 3) -> Sum:
    rng = np.random.default_rng(place)
    moments = Moments.from_features(rng.standard_normal((n, dim)), rng.standard_normal((n, 1)), None, "map")
    return Sum(frozenset({place}), {f"client {place}": 10 + place}, moments)


@given(st.permutations(range(6)), st.lists(st.integers(0, 4), min_size=5, max_size=5))
def test_any_tree_gives_the_same_sum(order, joints):
    parts = [partition(place) for place in range(6)]
    straight = tasks.merge(*parts)
    sums = [parts[place] for place in order]
    for joint in joints:
        i = joint % (len(sums) - 1)
        sums[i : i + 2] = [tasks.merge(*sums[i : i + 2])]
    [found] = sums
    assert found.partitions == straight.partitions == frozenset(range(6))
    assert found.bytes == straight.bytes
    assert found.upload.n == 30
    np.testing.assert_allclose(found.upload.gram, straight.upload.gram, atol=TOLERANCE)
    np.testing.assert_allclose(found.upload.cross, straight.upload.cross, atol=TOLERANCE)


@given(st.sets(st.integers(0, 5), min_size=1), st.sets(st.integers(0, 5), min_size=1))
def test_a_partition_does_not_count_twice(left, right):
    one, other = (tasks.merge(*map(partition, sorted(places))) for places in (left, right))
    if left & right:
        with pytest.raises(AssertionError, match="would count twice"):
            tasks.merge(one, other)
    else:
        assert tasks.merge(one, other).partitions == left | right


def test_a_merge_changes_none_of_its_arguments():
    """A task may run again: after a worker has died, or to bring back what was dropped."""
    one, other = partition(0), partition(1)
    before = one.upload.gram.copy(), other.upload.gram.copy()
    once = tasks.merge(one, other).upload.gram
    np.testing.assert_array_equal(tasks.merge(one, other).upload.gram, once)
    np.testing.assert_array_equal(one.upload.gram, before[0])
    np.testing.assert_array_equal(other.upload.gram, before[1])


def test_nobody_to_ask_is_no_sum():
    assert tasks.merge(Sum(frozenset({0}), {}), partition(1)).upload.n == 5
    assert tasks.merge(partition(1), Sum(frozenset({0}), {})).upload.n == 5
    assert tasks.merge(Sum(frozenset({0}), {}), Sum(frozenset({1}), {})).upload is None


def test_an_upload_travels_as_its_packet():
    one = partition(0)
    assert one.upload.pack().to_bytes() in pickle.dumps(one)
    back = pickle.loads(pickle.dumps(one))
    assert (back.partitions, back.bytes) == (one.partitions, one.bytes)
    assert Packet.from_bytes(one.upload.pack().to_bytes()).digest() == one.upload.pack().digest()
    np.testing.assert_allclose(back.upload.gram, one.upload.gram, atol=TOLERANCE)


def client_with(samples: Samples) -> Client:
    return Client("a", lambda: samples, lambda: samples)


def test_small_clients_travel_in_their_task_and_large_ones_do_not():
    small, large = (Samples(np.zeros((n, 64)), np.zeros(n, np.int64)) for n in (10, 10_000))
    assert tasks.is_light([client_with(small)])
    assert not tasks.is_light([client_with(large)])
    assert tasks.loaded(client_with(large)).train() is large
