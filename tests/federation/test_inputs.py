"""The one check of data that comes in: the same words wherever it comes in, naming whose data, which sample and column."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import gramfold as gf
from gramfold.errors import GramfoldError, OptionError
from gramfold.federation import digits, load_npz
from gramfold.numerics import inputs

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 6)) + 2.0 * np.eye(6)[np.arange(40) % 3]
Y = np.arange(40) % 3
SPOILT = X.copy()
SPOILT[7, 4] = np.nan
FORMATS = [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


def from_clients(X, y):
    return gf.run(gf.Local(), gf.Federation.from_clients({"north": (X, y)}, labels=(0, 1, 2)))


@pytest.fixture(scope="module")
def result() -> gf.Result:
    return gf.run("afl", gf.Federation.split(X, Y, clients=2, partition="iid"))


WAYS_IN = {
    "split": lambda X, y, result: gf.Federation.split(X, y),
    "from_clients": lambda X, y, result: from_clients(X, y),
    "join": lambda X, y, result: result.join(X, y),
    "head": lambda X, y, result: result.global_head.predict(X),
    "probabilities": lambda X, y, result: result.heads["0"].scores(X),
}


@pytest.mark.parametrize("way", WAYS_IN)
@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (SPOILT, "sample 7 has NaN or infinite values, first in column 4; remove or impute them"),
        (np.where(np.isnan(SPOILT), np.inf, SPOILT).astype(np.float32), "sample 7 has NaN or infinite values, first in column 4"),
        (torch.as_tensor(SPOILT), "sample 7 has NaN or infinite values, first in column 4"),
        (sp.csc_array(SPOILT), "sample 7 has NaN or infinite values, first in column 4"),
        (np.where(np.isnan(SPOILT), "red", X.astype(object)), "sample 7 has 'red' in column 4"),
        (np.where(np.isnan(SPOILT), None, X.astype(object)), "NaN or infinite|sample 7 has None in column 4"),
        (X.astype(str), "must be numbers, but sample 0"),
        (X.astype(complex), "must be numbers, got dtype complex128"),
        ([[1.0, 2.0], [3.0]], "samples differ in length"),
    ],
    ids=["NaN", "inf", "torch", "sparse", "word", "None", "text", "complex", "ragged"],
)
def test_samples_that_are_no_numbers_are_refused_alike_everywhere(way, spoilt, message, result):
    with pytest.raises(GramfoldError, match=message) as error:
        WAYS_IN[way](spoilt, Y, result)
    assert "\n" not in str(error.value)
    assert {"split": "arrays", "from_clients": "client 'north'", "join": "client 'newcomer'"}.get(way, "afl") in str(error.value)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            np.where(np.arange(40) == 5, 9, Y),
            r"client 'late' has label 9 \(sample 5\), which is not among the 3 classes: 0, 1, 2",
        ),
        (np.eye(3)[Y], r"`labels` has shape \(40, 3\), but there are 40 samples; for one-hot rows use .argmax\(1\)"),
        (Y[:, None], "use .ravel"),
        (Y[:-1], "40 samples but 39 targets"),
        (np.where(Y == 1, np.nan, Y), "fractions or NaN .sample 1: nan"),
        (np.array([*Y[:-1], None]), "sample 39 has no label"),
    ],
)
def test_labels_that_are_none_are_refused(y, message, result):
    with pytest.raises(GramfoldError, match=message):
        result.join(X, y, "late")


def test_somebody_who_joins_may_have_little_but_must_fit(result):
    for rows in (slice(0, 3), slice(0, 1), Y == 1):
        for method in ("afl", "localclasses", "local", "fedhip", "apfl", "pace"):
            head = gf.run(method, gf.Federation.split(X, Y, clients=2, partition="iid")).join(X[rows], Y[rows])
            assert np.isfinite(head.predict_proba(X)).all()
    with pytest.raises(GramfoldError, match="has 5 numbers per sample, the others 6"):
        result.join(X[:, :5], Y)
    with pytest.raises(GramfoldError, match="no samples"):
        result.join(X[:0], Y[:0])


def test_large_finite_numbers_are_no_mistake():
    large = np.full((30, 3), 3e38, np.float32)
    large[Y[:30] == 0] /= 2
    assert inputs.samples(large, "x") is large


def test_a_table_of_numbers_is_data_whatever_its_columns_are():
    table = np.empty((40, 6), object)
    table[:] = X
    np.testing.assert_array_equal(inputs.samples(table, "x"), X)


def test_targets_of_a_regression_are_checked_as_well():
    good = gf.run("local", gf.Federation.split(X, X[:, :2], regression=True, clients=2))
    for y, message in ((X[:, 0], "1 targets per sample, the others 2"), (np.full((40, 2), np.nan), "first at sample 0"),
                       (np.full((40, 2), "a"), "must be numbers")):  # fmt: skip
        with pytest.raises(GramfoldError, match=message):
            good.join(X, y)


# --- sparse rows ---


@pytest.fixture(scope="module")
def words() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 120)
    return rng.poisson(0.3 + 1.5 * (np.arange(30) % 3 == y[:, None])).astype(np.float64), y


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_sparse_rows_are_data_in_every_format(kind, words):
    dense, y = words
    cuts = [gf.Federation.split(X, y, clients=3, partition="iid") for X in (kind(dense), dense)]
    assert all(sp.issparse(samples.inputs) for client in cuts[0] for samples in (client.train(), client.test()))
    given = gf.Federation.from_clients({"a": (kind(dense[:60]), y[:60]), "b": (kind(dense[60:]), y[60:], kind(dense), y)})
    assert sp.issparse(given.clients[1].test().inputs)
    sparse, plain = (gf.run("afl", cut) for cut in cuts)
    np.testing.assert_allclose(sparse.heads["0"].scores(kind(dense)), plain.heads["0"].scores(dense), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_sparse_numbers_of_any_kind(dtype, words):
    dense, y = (words[0] > 0).astype(dtype), words[1]
    scores = [gf.run("afl", gf.Federation.split(X, y, clients=2)).global_head.scores(dense) for X in (sp.csr_array(dense), dense)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [gf.Local(), gf.AFL(features="relu:20"), gf.LocalClasses(), gf.FedHiP(), gf.APFL(refinement="relu:64"), gf.PACE(),
     gf.DeepAFL(depth=1)],
    ids=lambda method: method.name,
)  # fmt: skip
def test_a_run_on_sparse_rows_is_the_run_on_dense_ones(method, words):
    dense, y = words
    runs = [gf.run(method, gf.Federation.split(X, y, clients=3, partition="dirichlet:1")) for X in (sp.csr_matrix(dense), dense)]
    joined = [run.join(X[:30], y[:30]) for run, X in zip(runs, (sp.coo_array(dense).tocsr(), dense), strict=True)]
    for sparse, plain in [(runs[0].heads[name], runs[1].heads[name]) for name in runs[0].heads] + [joined]:
        np.testing.assert_allclose(sparse.scores(sp.csr_array(dense)), plain.scores(dense), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(sparse.predict(sp.csr_array(dense)), plain.predict(dense))
    assert runs[0].mean_accuracy == runs[1].mean_accuracy


def test_rows_made_dense_in_blocks_give_the_same(words, monkeypatch):
    dense, y = words
    head = gf.run("pace", gf.Federation.split(dense, y, clients=3, partition="iid")).heads["0"]
    expected = head.scores(dense)
    monkeypatch.setattr("gramfold.numerics.arrays.BLOCK_BYTES", 30 * 8 * 7)  # seven rows at a time
    np.testing.assert_allclose(head.scores(sp.csr_array(dense)), expected, rtol=0, atol=1e-12)


def test_wide_sparse_rows_are_never_dense_together():
    import tracemalloc

    rng = np.random.default_rng(0)  # SciPy's own random matrices shuffle all hundred million places
    at = rng.integers(0, 2000, 10_000), rng.integers(0, 50_000, 10_000)
    wide = sp.csr_array((rng.random(10_000), at), shape=(2000, 50_000))  # 800 MB dense
    y = np.arange(2000) % 2
    tracemalloc.start()
    result = gf.run(gf.AFL(features="raw+relu:8"), gf.Federation.split(wide, y, clients=2, partition="iid"))
    result.global_head.predict(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 250e6  # a few blocks of 32 MB, and a drawn matrix


def test_networks_say_that_rows_must_be_dense(words):
    dense, y = words
    federation = gf.Federation.split(sp.csr_array(dense), y, clients=2, partition="iid")
    with pytest.raises(GramfoldError, match=r"client '.' has sparse samples.*\.toarray\(\)"):
        gf.run(gf.FedAvg(lr=0.1, rounds=2), federation)
    trained = gf.run(gf.FedAvg(lr=0.1, rounds=2), gf.Federation.split(dense, y, clients=2, partition="iid"))
    with pytest.raises(GramfoldError, match=r"sparse.*\.toarray\(\)"):
        trained.global_head.predict(sp.csr_array(dense))
    with pytest.raises(GramfoldError, match="takes images; this data holds features"):
        gf.run("fedacnnl", federation)


# --- pictures ---


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_pictures_without_channels_are_grey(dtype, tmp_path):
    grey, y = RNG.integers(0, 2, (30, 8, 7)).astype(dtype), np.arange(30) % 2
    np.savez(tmp_path / "grey.npz", images=grey, labels=y)
    for federation in (
        gf.Federation.split(grey, y, clients=2, partition="iid"),
        gf.Federation.from_clients([(grey, y), (grey[..., None], y)]),
        gf.Federation.from_dataset(load_npz(tmp_path / "grey.npz"), 2, "iid"),
    ):
        assert federation.task.shape == (8, 7, 1)
        assert federation.clients[0].train().inputs.shape[1:] == (8, 7, 1)
        assert federation.clients[0].train().inputs.dtype == dtype
        with pytest.raises(GramfoldError, match=r"afl takes features; this data holds images .*gf.series\(X\)"):
            gf.run(gf.AFL(), federation)
    result = gf.run(gf.PaceCNN(network="contrast+conv:2:3:4+split:0.2+grid:2"), federation)
    head = result.heads["0"]
    np.testing.assert_array_equal(head.scores(grey), head.scores(grey[..., None]))
    assert head.predict(grey[0][..., None]).shape == (1,)
    assert result.join(grey[:9], y[:9]).shape == (8, 7, 1)
    with pytest.raises(GramfoldError, match=r"expected images of shape \(8, 7, 1\)"):
        head.predict(grey.reshape(30, -1))
    with pytest.raises(GramfoldError, match=r"shape \(56,\), the others \(8, 7, 1\); reshape"):
        result.join(grey.reshape(30, -1), y)


# --- whose it is ---


def test_ids_are_the_clients_without_another_word():
    ids = np.array(["b", "a", "c", "c"] * 10)
    assert [client.name for client in gf.Federation.split(X, Y, ids=ids)] == ["a", "b", "c"]
    assert [client.name for client in gf.Federation.split(X, Y, ids=(np.arange(40) % 2).tolist())] == ["0", "1"]
    assert [client.name for client in gf.Federation.split(X, Y, ids=np.arange(40) % 2 + 0.0)] == ["0", "1"]
    with pytest.raises(GramfoldError, match=r"partition='iid' would not heed"):
        gf.Federation.split(X, Y, partition="iid", ids=ids)
    with pytest.raises(GramfoldError, match="does not say whose sample 3 is"):
        gf.Federation.split(X, Y, ids=np.where(np.arange(40) == 3, np.nan, 1.0))


def test_a_file_that_says_whose_samples_are_is_cut_so_unless_told_otherwise(tmp_path):
    np.savez(tmp_path / "data.npz", features=X, labels=Y, client=np.arange(40) % 4)
    dataset = load_npz(tmp_path / "data.npz")
    assert gf.Federation.from_dataset(dataset).description["partition"]["kind"] == "natural"
    assert gf.Federation.from_dataset(dataset, 2, "iid").description["partition"]["kind"] == "iid"
    assert gf.Federation.split(X, Y, clients=2).description["partition"]["kind"] == "dirichlet:0.1"
    assert gf.Federation.split(X, X, clients=2, regression=True).description["partition"]["kind"] == "iid"


def test_clients_in_a_list_are_numbered():
    federation = gf.Federation.from_clients([(X, Y), (X, Y)])
    assert [client.name for client in federation] == ["0", "1"]
    with pytest.raises(GramfoldError, match=r"client '1' must be .X, y."):
        gf.Federation.from_clients([(X, Y), X])


def test_a_result_knows_its_clients_by_name(result, tmp_path):
    for mapping in (result.clients, result.heads):
        with pytest.raises(KeyError, match=r"names are strings: 1 is not one; write \['1'\]"):
            mapping[1]
        with pytest.raises(KeyError, match="no client is called 'north'"):
            mapping["north"]
        assert mapping.get(7) is None


def test_a_method_may_be_given_by_name():
    federation = gf.Federation.split(X, Y, clients=2, partition="iid")
    assert gf.run("pace", federation).mean_accuracy == gf.run(gf.PACE(), federation).mean_accuracy
    with pytest.raises(GramfoldError, match="unknown method 'pase'"):
        gf.run("pase", federation)
    with pytest.raises(OptionError):
        gf.run(gf.PACE, federation)


def test_a_cut_that_cannot_be_made_names_the_way_out():
    data = digits()
    with pytest.raises(GramfoldError, match="drop_small=True"):
        gf.Federation.split(data.inputs, data.targets, clients=100, partition="dirichlet:0.1", test_size=0.25, random_state=0)


@pytest.mark.parametrize("name", ["features", "client", "labels"])
def test_a_column_of_text_from_pandas_is_named(tmp_path, name):
    content = {"features": X, "labels": Y, "client": Y} | {name: np.array(["a", 1] * 20, object)}
    np.savez(tmp_path / "data.npz", **content)
    with pytest.raises(GramfoldError, match=f"data.npz: `{name}` holds Python objects"):
        load_npz(tmp_path / "data.npz")
    np.savez(tmp_path / "data.npz", features=X.astype(str), labels=Y)
    with pytest.raises(GramfoldError, match=r"data.npz: `features`: samples must be numbers, but sample 0 has"):
        load_npz(tmp_path / "data.npz")
