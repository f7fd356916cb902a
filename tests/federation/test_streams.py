"""Clients that are read a batch at a time are the same clients, however they come and whoever else is in the batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import ClientsError
from gramfold.federation import blocks
from gramfold.federation.parquet import cut
from gramfold.federation.streams import held_out

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def make(clients: int = 7, seed: int = 0, inputs: int = 3):
    rng = np.random.default_rng(seed)
    for k in range(clients):
        n = 4 + 3 * k
        yield f"c{k}", rng.standard_normal((n, inputs)).astype(np.float32), np.arange(n) % 3


def write(path, clients, lists: bool = False, **kinds):
    names, inputs, labels = zip(*clients, strict=True)
    X, y = np.concatenate(inputs), np.concatenate(labels)
    numbers = {f"x{j}": pa.array(X[:, j]) for j in range(X.shape[1])}
    if lists:
        numbers = {"x": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])}
    owner = np.repeat(names, [len(part) for part in inputs])
    table = pa.table({"client": pa.array(owner), "label": pa.array(y), **numbers, **kinds})
    pq.write_table(table, path, row_group_size=5)
    return table


def same(one, other):
    assert (one.name, one.train().digest(), one.test().digest()) == (other.name, other.train().digest(), other.test().digest())


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.floats(0, 0.9), st.integers(0, 5))
def test_who_is_held_out_follows_from_the_client_alone(sizes, test, seed):
    names, starts = [f"n{k}" for k in range(len(sizes))], np.cumsum([0, *sizes])
    codes = np.random.default_rng(seed).integers(0, 3, starts[-1])
    together = held_out(names, codes, starts, test, seed)
    for k, size in enumerate(sizes):
        mine = slice(starts[k], starts[k + 1])
        alone = held_out(names[k : k + 1], codes[mine], np.array([0, size]), test, seed)
        assert np.array_equal(together[mine], alone)
        assert alone.sum() == blocks.held_out_size(np.array(size), test)
        # spread over the classes: no class has more than its share and one
        for code in np.unique(codes[mine]):
            of = codes[mine] == code
            assert alone[of].sum() <= np.ceil(of.sum() * alone.sum() / size) + 1


def test_a_file_a_folder_a_function_and_a_generator_give_the_same_clients(tmp_path):
    write(tmp_path / "all.parquet", make())
    write(tmp_path / "lists.parquet", make(), lists=True)
    several = tmp_path / "several"
    several.mkdir()
    clients = list(make())
    for i, part in enumerate((clients[:2], clients[2:3], clients[3:])):
        write(several / f"part-{i}.parquet", part)
    first = gf.Federation.from_stream(make)
    assert first.task.samples == sum(client.train().n for client in first)
    for other in (
        gf.Federation.from_stream(clients),
        gf.Federation.from_stream(make()),
        gf.Federation.from_parquet(tmp_path / "all.parquet"),
        gf.Federation.from_parquet(tmp_path / "lists.parquet", columns=["x"]),
        gf.Federation.from_parquet(several),
    ):
        assert other.task == first.task
        assert len(other) == len(first) == 7
        for _ in range(2):  # as often as one asks
            for one, another in zip(first, other, strict=True):
                same(one, another)
        same(other.clients[-2], first.clients[5])
        assert [client.name for client in other.clients[1:3]] == ["c1", "c2"]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=9), st.integers(1, 40))
def test_clients_are_never_cut_by_batches_and_reading_may_begin_at_any(tmp_path_factory, sizes, numbers):
    path = tmp_path_factory.mktemp("cut") / "all.parquet"
    rng = np.random.default_rng(0)
    clients = [(f"c{k}", rng.standard_normal((n, 2)), np.arange(n + 1)[1:] % 2) for k, n in enumerate(sizes)]
    write(path, clients)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("parquet", "generated"):
            patch.setattr(f"gramfold.federation.{module}.NUMBERS", numbers)
        found = gf.Federation.from_parquet(path, test_size=0.0, labels=[0, 1]).stream
        other = gf.Federation.from_stream(clients, test_size=0.0, labels=[0, 1]).stream
        assert found is not None
        assert other is not None
        assert found.contents.batches == other.contents.batches
        edges = found.contents.batches
        for first in range(len(edges)):
            names = [batch.names for batch in found.read(first)]
            assert [name for batch in names for name in batch] == [f"c{k}" for k in range(edges[first], len(sizes))]
            assert names == [batch.names for batch in other.read(first)]


def test_a_batch_is_full_when_it_has_its_numbers_or_its_clients(monkeypatch):
    monkeypatch.setattr("gramfold.federation.parquet.NUMBERS", 10)
    assert cut(np.array([2, 2, 2, 9, 1, 1]), 2) == (0, 3, 4, 6)
    monkeypatch.setattr("gramfold.federation.parquet.CLIENTS", 1)
    assert cut(np.array([2, 2, 2]), 2) == (0, 1, 2, 3)


def test_a_column_may_say_what_is_for_testing(tmp_path):
    clients = list(make(3))
    rows = sum(len(y) for _, _, y in clients)
    said = np.where(np.arange(rows) % 4 == 0, "test", "train")
    write(tmp_path / "all.parquet", clients, split=pa.array(said))
    found = gf.Federation.from_parquet(tmp_path / "all.parquet", split_column="split")
    assert found.task.samples == (said == "train").sum() == sum(client.train().n for client in found)
    given_so, row = [], 0
    for name, X, y in clients:
        testing = said[row : row + len(y)] == "test"
        given_so.append((name, X[~testing], y[~testing], X[testing], y[testing]))
        row += len(y)
    for one, other in zip(found, gf.Federation.from_stream(given_so), strict=True):
        same(one, other)


def test_values_to_predict_and_clients_by_number(tmp_path):
    rng = np.random.default_rng(0)
    rows = {"who": pa.array(np.repeat([5, 3], 6)), "y": pa.array(rng.standard_normal(12)), "a": pa.array(np.arange(12))}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    found = gf.Federation.from_parquet(tmp_path / "t.parquet", label_column="y", client_column="who", regression=True)
    assert [client.name for client in found] == ["5", "3"]
    assert found.task.labels is None
    assert found.clients[0].train().targets.shape[1] == 1
    assert found.clients[0].train().inputs.dtype == np.float64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client": pa.array(["a", "b", "a"])}, "client 'a' comes again"),
        ({"client": pa.array(["a", None, "b"])}, "column 'client' has no value in row 1"),
        ({"x": pa.array([1.0, None, 2.0])}, "column 'x' has no value in row 1"),
        ({"x": pa.array([1.0, float("nan"), 2.0])}, "client 'a': sample 1 has NaN"),
        ({"x": pa.array(["1", "2", "3"])}, "column 'x' holds string, not numbers"),
        ({"label": pa.array([0.5, 1.0, 2.0])}, "class numbers or names"),
        ({"label": pa.array([1, 1, 1])}, "only one class"),
        ({"split": pa.array(["train", "other", "test"])}, "neither train nor test"),
        ({"x": pa.array([[1.0, 2.0], [1.0], [1.0, 3.0]])}, "every list has 2 numbers, but row 1 has 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path, change, message):
    columns = {"client": pa.array(["a", "a", "b"]), "label": pa.array([0, 1, 1]), "x": pa.array([1.0, 2.0, 3.0])}
    pq.write_table(pa.table({**columns, **change}), tmp_path / "t.parquet")
    with pytest.raises(gf.GramfoldError, match=message):
        list(gf.Federation.from_parquet(tmp_path / "t.parquet", split_column="split" if "split" in change else None))


def test_a_file_that_is_none_or_has_not_these_columns(tmp_path):
    write(tmp_path / "t.parquet", make(2))
    (tmp_path / "broken.parquet").write_bytes(b"nothing of the kind")
    for path, more, message in (
        (tmp_path / "none.parquet", {}, "no Parquet file at"),
        (tmp_path / "broken.parquet", {}, "not a readable Parquet file"),
        (tmp_path / "t.parquet", {"client_column": "who"}, "has no column 'who'; name the column of clients with client_column="),
        (tmp_path / "t.parquet", {"columns": ["x0", "z"]}, "has no column 'z'"),
        (tmp_path / "t.parquet", {"columns": "x0"}, r"write columns=\['x0'\]"),
        (tmp_path / "t.parquet", {"columns": []}, "no column of numbers"),
        (tmp_path / "t.parquet", {"labels": [0, 1]}, "label 2 is not among the 2 classes"),
        (tmp_path / "t.parquet", {"test_size": 1.5}, "test size must lie"),
    ):
        with pytest.raises(gf.GramfoldError, match=message):
            list(gf.Federation.from_parquet(path, **more))


X, y = np.ones((3, 2)), np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        (5, "a function that yields"),
        ([], "no clients"),
        ([("a", X)], "got 2 things"),
        ([("a", X, y[:2])], "client 'a'"),
        ([("a", X, y), ("b", np.ones((3, 4)), y)], "client 'b' has 4 numbers per sample, 'a' 2"),
        ([("a", X, y), ("b", X, y, X, y)], "either all clients have test samples"),
        ([("a", X, y), ("a", X, y)], "client 'a' comes again"),
        ([("a", X[:0], y[:0])], "no samples"),
        ([("a", X * np.nan, y)], "client 'a': sample 0 has NaN"),
        ([("a", X, y * 0)], "only one class"),
        ([("a", X, y), ("b", X, np.array(["p", "q", "p"]))], "mix class numbers and class names"),
        ([("a", np.ones((3, 2, 2, 1)), y)], "rows of numbers"),
    ],
)
def test_what_is_wrong_with_a_stream_is_said(clients, message):
    with pytest.raises(gf.GramfoldError, match=message):
        list(gf.Federation.from_stream(clients))


def test_a_function_that_yields_others_the_second_time_is_noticed():
    yielded = iter([[("a", X, y), ("b", X, y)], [("a", X, y)]])
    with pytest.raises(ClientsError):
        list(gf.Federation.from_stream(lambda: next(yielded)))
