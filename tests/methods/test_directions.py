"""Directions of wide rows: found in sums as on pooled data, sparse throughout, in heads that leave by every door."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array, vstack

import gramfold as gf
from gramfold.export import write_onnx
from gramfold.features import DirectionsMap, fingerprint_of
from gramfold.features.ways import Way
from gramfold.federation import Samples, Task
from gramfold.methods import ClientData, learning
from gramfold.methods.learning import Finding, directions

METHODS = [gf.PACE(), gf.AFL(), gf.FedHiP(), gf.APFL(refinement="relu:64")]
FEW = "raw+bias+linear@directions:12"


def texts(n: int = 240, words: int = 6000, seed: int = 0) -> tuple[csr_array, np.ndarray]:
    """Made-up counts of words, some of them commoner in one class of three."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    chances = 1 / np.arange(1, words + 1)
    rows = []
    for label in y:
        tilted = chances * np.where(np.arange(words) % 3 == label, 3.0, 1.0)
        rows.append(csr_array(rng.multinomial(40, tilted / tilted.sum())[None].astype(float)))
    return csr_array(vstack(rows)), y


def cut(X, y, others: int) -> gf.Federation:
    owner = np.arange(len(y) - 60) % others
    parts = {f"other {k}": (X[60:][owner == k], y[60:][owner == k]) for k in range(others)}
    return gf.Federation.from_clients({"same": (X[:60], y[:60]), **parts}, test_size=0.0, labels=range(3))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_wide_sparse_rows_have_a_default_that_does_not_depend_on_the_cut(method):
    X, y = texts()
    heads = [gf.run(method, cut(X, y, others)).heads["same"] for others in (2, 7)]
    scores = [head.scores(X) for head in heads]
    assert isinstance(heads[0].streams[0].map, DirectionsMap)
    # products travel in float32, and so do the directions
    assert np.abs(scores[0] - scores[1]).max() <= 1e-3 * np.abs(scores[0]).max()
    assert (heads[0].predict(X[60:]) == y[60:]).mean() > 0.6


def find(X: csr_array, parts: int, dim: int, seed: int = 0) -> DirectionsMap:
    task = Task(X.shape[1], (0, 1), 2, seed, X.shape[0])
    method = gf.AFL(features=f"raw+bias+linear@directions:{dim}")
    broadcast = method.begin(task)
    while isinstance(broadcast, Finding):
        total = None
        for k in range(parts):
            samples = Samples(X[k::parts], np.zeros(X[k::parts].shape[0], np.int64))
            upload = method.local(ClientData(str(k), samples), broadcast)
            method.asked(broadcast).check(upload)
            total = upload.copy() if total is None else total.__iadd__(upload)
        broadcast = method.aggregate(total, broadcast)
    return broadcast.space.map


@settings(max_examples=15, deadline=None)
@given(n=st.integers(6, 25), d=st.integers(30, 90), parts=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_directions_are_those_of_pooled_rows_by_definition(n, d, parts, seed):
    X = csr_array(random_array((n, d), density=0.4, rng=np.random.default_rng(seed), format="csr"))
    found = find(X, parts, (n + 1) // 2)
    dense = X.toarray()
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-300)
    columns = np.flatnonzero((X.toarray() != 0).sum(0) >= 2)
    assert found.columns.tolist() == columns.tolist()
    values = np.linalg.eigvalsh(dense[:, columns].T @ dense[:, columns])
    kept = found.directions / found.after.inputs**0.5
    captured = float(((dense[:, columns] @ kept) ** 2).sum())
    best = float(values[::-1][: kept.shape[1]].sum())
    # n rows have a rank of at most n, and so many directions are looked at: nothing is approximate but float32
    assert captured == pytest.approx(best, rel=1e-4)
    assert np.abs(kept.T @ kept - np.eye(kept.shape[1])).max() < 1e-4


def test_a_sparse_row_and_a_dense_one_have_the_same_features():
    X, _ = texts(40)
    found = find(X, 3, 6)
    assert np.allclose(found(X), found(X.toarray()), atol=1e-12)
    wild = X.copy()
    wild.data *= 1e200
    assert np.allclose(found(wild), found(X), atol=1e-9)
    assert not found(csr_array((2, X.shape[1])))[:, 1:].any()
    again = DirectionsMap(found.description, found.arrays)
    assert again.fingerprint == found.fingerprint == fingerprint_of(found.description, found.arrays)


def test_nothing_wide_is_made_dense(monkeypatch):
    X, y = texts()

    def refuse(*_):
        raise AssertionError("made dense")

    federation = cut(X, y, 2)
    monkeypatch.setattr(csr_array, "toarray", lambda self: refuse() if self.shape[1] == X.shape[1] else _dense(self))
    heads = gf.run(gf.PACE(), federation).heads
    assert heads["same"].predict(X[:3]).shape == (3,)


def _dense(self: csr_array) -> np.ndarray:
    return self.todense().view(np.ndarray)


def test_heads_are_saved_and_explained(tmp_path):
    X, y = texts(120, 300)
    result = gf.run(gf.PACE(features=FEW), cut(X, y, 2))
    head = result.heads["same"]
    head.save(tmp_path / "head.npz")
    assert np.array_equal(gf.load_head(tmp_path / "head.npz").scores(X), head.scores(X))
    assert result.chosen["directions"] == 12
    dense = X[:5].toarray()
    explained = Way(head.streams[0].map, np.zeros_like(dense), dense)
    weights = np.tile(head.streams[0].weights[:, 0], (5, 1))
    change = ((explained.features(1.0) - explained.features(0.0)) * weights).sum(1)
    assert np.allclose(explained.shares(weights).sum(1), change)


def test_the_exported_head_is_the_head(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    X, y = texts(120, 300)
    head = gf.run(gf.AFL(features=FEW), cut(X, y, 2)).heads["same"]
    write_onnx(head, tmp_path / "head.onnx")
    session = runtime.InferenceSession(str(tmp_path / "head.onnx"))
    rows = X[:7].toarray()
    taken = session.get_inputs()[0]
    rows = rows.astype(np.float32 if "float)" in taken.type else np.float64)
    [found] = session.run(["scores"], {taken.name: rows})
    assert np.abs(found - head.scores(rows)).max() < 1e-4


def test_bytes_of_a_budget_are_kept():
    X, y = texts()
    result = gf.run(gf.PACE(budget="4MB"), cut(X, y, 3))
    assert max(client.uplink_bytes + client.downlink_bytes for client in result.clients.values()) <= 4e6
    task = Task(50_000, (0, 1), 2, 0, 5000)
    small = gf.PACE(budget="20MB").settled(task).features
    assert int(small.rsplit(":", 1)[1]) < directions.DEFAULT
    with pytest.raises(gf.GramfoldError, match="directions of 50000 inputs take"):
        gf.PACE(budget="100kB").settled(task)


def test_masked_sums_find_the_same_directions():
    X, y = texts()
    plain, secure = (gf.run(gf.AFL(features=FEW), cut(X, y, 3), secure=secure) for secure in (None, gf.SecureSum()))
    scores = [result.heads["same"].scores(X) for result in (plain, secure)]
    assert np.abs(scores[0] - scores[1]).max() <= 1e-3 * np.abs(scores[0]).max()


def test_what_cannot_be_learned_from_is_said():
    with pytest.raises(gf.GramfoldError, match="no two samples have a column in common"):
        find(csr_array(np.eye(6)), 2, 2)
    with pytest.raises(gf.GramfoldError, match="asks for no direction"):
        gf.AFL(features="bias+linear@directions:0")
    assert learning.plan_of(FEW).width(6000) == 13


def test_the_search_travels_between_processes():
    X, y = texts(60, 300)
    method = gf.AFL(features=FEW)
    broadcast = method.begin(Task(300, (0, 1, 2), 3, 0, 60))
    client = ClientData("all", Samples(X, y))
    while isinstance(broadcast, Finding):
        arrived = Finding.unpack(broadcast.pack())
        upload = method.local(client, arrived)
        method.asked(arrived).check_packet(upload.pack())
        back = type(upload).unpack(upload.pack())
        method.asked(arrived).check(back)
        broadcast = method.aggregate(back, broadcast)
    again = type(broadcast).unpack(broadcast.pack())
    assert np.array_equal(again.space.map(X), broadcast.space.map(X))
