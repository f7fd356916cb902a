"""Federations: cut from one data set, or given as they are; either way clients are only loaded when asked for."""

import time
import tracemalloc
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import ColumnsError, GramfoldError
from gramfold.federation import Dataset, digits
from gramfold.federation.blocks import held_out_size, stratified

KINDS = ["iid", "dirichlet:0.5", "quantity:1", "shards:2", "classes:2"]


def numbered(n: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Samples whose first number is their place."""
    return np.stack([np.arange(n), np.zeros(n)], 1).astype(np.float64), np.arange(n) % classes


def places(federation: gf.Federation, part: str) -> list[list[int]]:
    return [getattr(client, part)().inputs[:, 0].astype(int).tolist() for client in federation]


# --- cut from one data set ---


@given(st.sampled_from(KINDS), st.integers(20, 120), st.integers(2, 5), st.floats(0.0, 0.6), st.integers(0, 999))
def test_every_sample_is_assigned_once(kind, n, clients, test, seed):
    X, y = numbered(n)
    federation = gf.Federation.split(
        X, y, clients=clients, partition=kind, test_size=test, random_state=seed, min_size=1, drop_small=True
    )
    train, held_out = places(federation, "train"), places(federation, "test")
    assert sorted(chain(*train, *held_out)) == list(range(n))
    assert federation.task.samples == sum(map(len, train))
    for client in federation:
        for samples in (client.train(), client.test()):
            np.testing.assert_array_equal(samples.targets, samples.inputs[:, 0].astype(int) % 3)
    for mine, others in zip(train, held_out, strict=True):
        assert len(others) == held_out_size(np.array(len(mine) + len(others)), test)
    again = gf.Federation.split(
        X, y, clients=clients, partition=kind, test_size=test, random_state=seed, min_size=1, drop_small=True
    )
    assert places(again, "train") == train


def test_another_seed_is_another_cut():
    X, y = numbered(60)
    cuts = [places(gf.Federation.split(X, y, clients=3, partition="iid", random_state=seed), "train") for seed in (0, 1)]
    assert cuts[0] != cuts[1]


def test_given_training_rows_stay_training_rows_in_the_same_proportions():
    X, y = numbered(900)
    train = np.random.default_rng(0).uniform(size=900) < 0.7
    federation = gf.Federation.split(X, y, clients=6, partition="dirichlet:0.3", train=train)
    assert sorted(chain(*places(federation, "train"))) == np.flatnonzero(train).tolist()
    assert sorted(chain(*places(federation, "test"))) == np.flatnonzero(~train).tolist()
    for client in federation:
        for code in range(3):
            share = (client.train().targets == code).sum() / (y[train] == code).sum()
            assert abs((client.test().targets == code).sum() - share * (y[~train] == code).sum()) <= 1 + 1e-9


def test_natural_clients_are_their_own():
    X, y = numbered(40)
    ids = np.array(["north", "south", "east"])[np.arange(40) % 3]
    federation = gf.Federation.split(X, y, partition="natural", ids=ids, test_size=0.25)
    assert [client.name for client in federation] == ["east", "north", "south"]
    for client in federation:
        rows = np.concatenate([client.train().inputs, client.test().inputs])[:, 0].astype(int)
        assert sorted(rows) == np.flatnonzero(ids == client.name).tolist()
    with pytest.raises(ColumnsError):
        gf.Federation.split(X, y, partition="natural")
    numbers = gf.Federation.split(X, y, partition="natural", ids=np.arange(40) % 2)
    assert [client.name for client in numbers] == ["0", "1"]


def test_small_clients_are_an_error_or_dropped():
    X, y = numbered(30)
    ids = np.array(["big"] * 20 + ["middle"] * 9 + ["small"])
    with pytest.raises(GramfoldError, match="client 'small' has 1 training samples, fewer than 2"):
        gf.Federation.split(X, y, partition="natural", ids=ids)
    federation = gf.Federation.split(X, y, partition="natural", ids=ids, drop_small=True)
    assert [client.name for client in federation] == ["big", "middle"]
    assert federation.description["partition"] == {"kind": "natural", "clients": 2, "dropped": 1, "min_size": 2}
    assert federation.task.samples == 15 + 7
    with pytest.raises(GramfoldError, match="no client has 100 samples"):
        gf.Federation.split(X, y, partition="natural", ids=ids, drop_small=True, min_size=100)
    skewed = gf.Federation.split(*numbered(50), clients=20, partition="dirichlet:0.05", drop_small=True, min_size=3)
    assert all(client.train().n + client.test().n >= 3 for client in skewed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"test_size": 1.0}, "test size"),
        ({"test_size": -0.1}, "test size"),
        ({"random_state": -1}, "random_state must be"),
        ({"clients": 0}, "client"),
        ({"clients": 0, "drop_small": True}, "client"),
        ({"clients": -1, "drop_small": True}, "client"),
        ({"clients": 20}, "ask for fewer"),
        ({"partition": "salami"}, "unknown partition"),
        ({"random_state": None}, "random_state must be a whole number from 0 up, got None"),
        ({"train": np.ones(5, bool)}, "`train` has shape"),
        ({"ids": np.arange(5), "partition": "natural"}, "`client` has shape"),
        ({"regression": True}, "for regression use iid"),
        ({"y": np.zeros(30, int)}, "only one class"),
        ({"y": np.full(30, 0.5)}, "fractions"),
        ({"y": np.arange(29) % 2}, "`labels` has shape"),
        ({"X": np.full((30, 2), np.nan)}, "sample 0 has NaN"),
        ({"X": np.zeros(30)}, "expected features"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(arguments, message):
    X, y = numbered(30)
    with pytest.raises(GramfoldError, match=message):
        gf.Federation.split(**({"X": X, "y": y, "clients": 3, "partition": "dirichlet:1"} | arguments))


def test_two_hundred_thousand_clients_are_made_lazily():
    n, clients = 600_000, 200_000
    X = np.zeros((n, 16), np.float32)
    started = time.perf_counter()
    federation = gf.Federation.from_dataset(
        Dataset("large", X, np.arange(n) % 2, (0, 1)), clients=clients, partition="iid", min_size=1
    )
    assert len(federation) == clients
    tracemalloc.start()
    assert federation.clients[123_456].name == "123456"
    for k in (0, 99_999, -1):
        client = federation.clients[k]
        assert (client.train().n, client.test().n) == (2, 1)
    assert len(federation.clients[10:20]) == 10
    assert federation.clients[10:20][3].name == "13"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes / 20  # three clients are 576 bytes; a mask over all rows would already be 600 kB
    assert time.perf_counter() - started < 10  # a second on two busy cores


def test_nothing_depends_on_the_order_in_which_clients_are_loaded():
    X, y = numbered(90)
    one, other = (gf.Federation.split(X, y, clients=4, random_state=5, partition="iid") for _ in range(2))
    forward = [client.train().inputs.tolist() for client in one]
    backward = [other.clients[k].train().inputs.tolist() for k in (3, 2, 1, 0)]
    assert forward == backward[::-1]
    with pytest.raises(IndexError):
        one.clients[4]


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.integers(1, 5), st.integers(0, 999))
def test_held_out_samples_are_spread_over_the_classes(n, test, classes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    train, held_out = stratified(codes, test, rng)
    assert sorted([*train, *held_out]) == list(range(n))
    assert len(train) >= 1
    assert len(held_out) >= (n > 1)
    part = len(held_out) / n
    for code in range(classes):  # every n/size-th of the sorted list: each class within one of its share
        assert abs((codes[held_out] == code).sum() - part * (codes == code).sum()) <= 1 + 1e-9


def test_a_regression_is_cut_without_classes(rng):
    X, Y = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    federation = gf.Federation.split(X, Y, clients=4, partition="quantity:5", regression=True)
    assert federation.task.labels is None
    assert federation.task.outputs == 2
    assert gf.Federation.split(X, Y[:, 0], clients=2, partition="iid", regression=True).clients[0].train().targets.shape[1] == 1


def test_digits_are_a_federation():
    federation = gf.Federation.from_dataset(digits(), clients=10, partition="classes:2")
    assert all(len(np.unique(client.train().targets)) == 2 for client in federation)
    assert federation.description["data"] == {"name": "digits", "samples": 1797, "inputs": 64, "outputs": 10}


# --- given client by client ---


def arrays_of(seed: int, n: int = 12, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.arange(n) % 3


def test_clients_are_taken_as_they_are():
    (X, y), (X2, y2) = arrays_of(0), arrays_of(1)
    federation = gf.Federation.from_clients({"north": (X, y), "south": (X2, y2, X, y)}, test_size=0.25)
    north, south = federation
    assert (north.train().n, north.test().n) == (9, 3)
    np.testing.assert_array_equal(south.train().inputs, X2)
    np.testing.assert_array_equal(south.test().inputs, X)
    assert (federation.task.inputs, federation.task.labels) == (4, (0, 1, 2))
    alone = gf.Federation.from_clients({"north": (X, y)}, test_size=0.25)
    np.testing.assert_array_equal(alone.clients[0].train().inputs, north.train().inputs)  # whoever else takes part


def test_loading_functions_are_called_only_when_needed():
    calls = []

    def source(name):
        def load():
            calls.append(name)
            return arrays_of(len(name))

        return load

    names = ["a", "bb", "ccc"]
    federation = gf.Federation.from_clients({name: source(name) for name in names}, labels=(0, 1, 2))
    assert set(calls) <= {"a"}  # one is asked for the width of its samples
    calls.clear()
    federation.clients[2].train()
    assert calls == ["ccc"]
    calls.clear()
    gf.Federation.from_clients({name: source(name) for name in names})
    assert set(calls) == set(names)  # without labels each must be asked for its classes


def test_labels_may_name_classes_nobody_has_and_set_their_order():
    X, _ = arrays_of(0)
    y = np.array(["cat", "dog"] * 6)
    federation = gf.Federation.from_clients({"a": (X, y)}, labels=("dog", "cow", "cat"), test_size=0.0)
    assert federation.task.labels == ("dog", "cow", "cat")
    assert federation.clients[0].train().targets.tolist() == [2, 0] * 6
    assert gf.Federation.from_clients({"a": (X, y)}).task.labels == ("cat", "dog")


@pytest.mark.parametrize(
    "y",
    [np.array([True, False] * 6), np.array([3.0, 7.0] * 6), np.array([b"u", b"v"] * 6), np.array([5, 9] * 6, np.uint8),
     ["u", "v"] * 6, torch.tensor([4, 6] * 6)],
    ids=["bool", "float", "bytes", "uint8", "list", "torch"],
)  # fmt: skip
def test_labels_of_any_kind_are_encoded_alike_by_both_ways_in(y):
    X, _ = arrays_of(0)
    given_ = gf.Federation.from_clients({"a": (X, y)}, test_size=0.0)
    split = gf.Federation.split(X, y, clients=1, partition="iid", test_size=0.0)
    assert given_.task.labels == split.task.labels
    np.testing.assert_array_equal(given_.clients[0].train().targets, split.clients[0].train().targets)
    assert sorted(set(given_.clients[0].train().targets.tolist())) == [0, 1]


def test_lists_are_data_too():
    X, y = arrays_of(0)
    client = gf.Federation.from_clients({"a": (X.tolist(), y.tolist())}, test_size=0.0).clients[0]
    np.testing.assert_array_equal(client.train().inputs, X)


GOOD = arrays_of(0)


@pytest.mark.parametrize(
    "source",
    [
        arrays_of(1, d=5),
        (GOOD[0], GOOD[1][:-1]),
        (GOOD[0][:0], GOOD[1][:0]),
        (GOOD[0], GOOD[1] + 7),
        (*GOOD, GOOD[0]),
        (GOOD[0],),
        (np.where(np.arange(4) == 2, np.nan, GOOD[0]), GOOD[1]),
    ],
    ids=["width", "lengths", "empty", "unknown label", "three arrays", "one array", "NaN"],
)
@pytest.mark.parametrize("lazily", [False, True])
def test_what_is_wrong_with_a_client_is_said_by_its_name(source, lazily):
    data = {"north": GOOD, "south": (lambda: source) if lazily else source}
    with pytest.raises(GramfoldError, match="client 'south'"):
        gf.run(gf.Local(), gf.Federation.from_clients(data, labels=(0, 1, 2)))


@pytest.mark.parametrize("method", [gf.Local(), gf.AFL(), gf.APFL(refinement="relu:8")], ids=repr)
@pytest.mark.parametrize("where", ["train", "test"])
def test_no_method_takes_nan_for_a_number(method, where):
    X, y = GOOD
    spoilt = np.where(np.arange(4) == 2, np.nan, X)
    south = (spoilt, y, X, y) if where == "train" else (X, y, spoilt, y)
    with pytest.raises(GramfoldError, match="client 'south'"):
        gf.run(method, gf.Federation.from_clients({"north": GOOD, "south": south}))


def test_federations_of_nobody_of_one_class_or_of_namesakes_are_refused():
    X, y = GOOD
    with pytest.raises(GramfoldError, match="at least one client"):
        gf.Federation.from_clients({})
    with pytest.raises(GramfoldError, match="only one class"):
        gf.Federation.from_clients({"a": (X, 0 * y)})
    with pytest.raises(GramfoldError, match="mix class numbers and class names"):
        gf.Federation.from_clients({"a": (X, y), "b": (X, y.astype(str))})
    with pytest.raises(GramfoldError, match="'1'"):
        gf.Federation.from_clients({1: (X, y), "1": (X, y)})


def test_images_keep_their_shape(rng):
    images = rng.integers(0, 256, (12, 5, 5, 3)).astype(np.uint8)
    federation = gf.Federation.from_clients({"a": (images, np.arange(12) % 2)})
    assert federation.task.inputs == 75
    assert federation.clients[0].train().inputs.shape[1:] == (5, 5, 3)
