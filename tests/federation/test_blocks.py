"""Blocks of samples stay together: in every split, in every subset, from wherever they come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.engines.inprocess import on_device
from gramfold.errors import ColumnsError
from gramfold.federation import Samples, stratified

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 3))
LABELS = np.arange(60) % 3
BLOCKS = np.repeat(np.arange(12), 5)


def apart(train, test):
    """Whether two splits share no block."""
    return not set(train.blocks.tolist()) & set(test.blocks.tolist())


@given(
    st.lists(st.integers(0, 6), min_size=2, max_size=60),
    st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9]),
    st.integers(0, 99),
)
def test_a_split_holds_out_whole_blocks(blocks, test, seed):
    blocks, rng = np.array(blocks), np.random.default_rng(seed)
    kept, held_out = stratified(rng.integers(0, 3, len(blocks)), test, rng, blocks)
    assert np.array_equal(np.sort(np.concatenate([kept, held_out])), np.arange(len(blocks)))
    assert not set(blocks[kept].tolist()) & set(blocks[held_out].tolist())
    assert len(kept)
    assert (len(held_out) > 0) == (test > 0 and len(set(blocks.tolist())) > 1)


def test_blocks_of_a_class_each_are_held_out_class_by_class():
    codes = np.repeat(np.arange(4), 20)
    blocks = np.repeat(np.arange(16), 5)  # four of each class
    _, held_out = stratified(codes, 0.25, np.random.default_rng(0), blocks)
    assert np.bincount(codes[held_out]).tolist() == [5, 5, 5, 5]


def test_arrays_of_clients_and_one_array_that_is_cut():
    names = [f"r{block}" for block in BLOCKS]
    federation = gf.Federation.from_clients({"anna": (ROWS, LABELS), "ben": (ROWS, LABELS)}, blocks={"anna": names})
    anna, ben = federation
    assert apart(anna.train(), anna.test())
    assert anna.test().n == 15
    assert ben.train().blocks is None
    cut = gf.Federation.split(ROWS, LABELS, clients=3, partition="iid", blocks=BLOCKS)
    assert all(apart(client.train(), client.test()) for client in cut)
    assert cut.task.samples == sum(client.train().n for client in cut)
    inner = cut.validation()
    assert all(apart(client.train(), client.test()) for client in inner)


def test_a_split_that_is_given_has_blocks_of_its_training_samples():
    data = {"anna": (ROWS[:40], LABELS[:40], ROWS[40:], LABELS[40:])}
    (anna,) = gf.Federation.from_clients(data, blocks={"anna": BLOCKS[:40]})
    assert anna.train().blocks.tolist() == BLOCKS[:40].tolist()
    assert anna.test().blocks is None


def test_a_table_a_file_and_a_frame_have_a_column_of_them(tmp_path):
    table = {"a": ROWS[:, 0], "b": ROWS[:, 1], "visit": BLOCKS, "y": LABELS}
    found = gf.load_data(table, label_column="y", block_column="visit")
    assert found.inputs.shape == (60, 2), "it is no measurement"
    assert found.blocks is not None
    federation = gf.Federation.from_clients({"n": table, "s": table}, label_column="y", block_column="visit")
    assert all(apart(client.train(), client.test()) for client in federation)
    np.savez(tmp_path / "n.npz", features=ROWS, labels=LABELS, block=BLOCKS)
    (only,) = gf.Federation.from_clients({"n": tmp_path / "n.npz"})
    assert apart(only.train(), only.test())


def test_subsets_weights_devices_and_copies_keep_them():
    import pickle

    weights = RNG.uniform(size=60)
    for samples in (Samples(ROWS, LABELS, None, BLOCKS), Samples(ROWS, LABELS, weights, BLOCKS)):
        some = samples.take(np.array([3, 50, 7]))
        assert some.blocks.tolist() == BLOCKS[[3, 50, 7]].tolist()
        assert (some.weights is None) == (samples.weights is None)
        assert pickle.loads(pickle.dumps(samples)).digest() == samples.digest()
        assert samples.digest() != Samples(ROWS, LABELS, samples.weights).digest()
    pytest.importorskip("torch")
    assert on_device(Samples(ROWS, LABELS, None, BLOCKS), "meta").blocks is BLOCKS


def test_windows_know_their_recordings():
    walks = gf.windows([np.zeros((30, 2)), np.zeros((50, 2))], 10, labels=["slow", "fast"])
    assert walks.blocks.tolist() == [0] * 3 + [1] * 5
    assert walks.labels is not None
    with pytest.raises(gf.GramfoldError, match="recordings differ in their channels: 1 and 2"):
        gf.windows([np.zeros((30, 2)), np.zeros((50, 1))], 10)
    with pytest.raises(gf.GramfoldError, match="`labels` is for 1 recordings, and there are 2"):
        gf.windows([np.zeros(30), np.zeros(50)], 10, labels=["slow"])


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ({"anna": BLOCKS[:5]}, r"client 'anna': `blocks` has shape \(5,\), but there are 60 samples"),
        ({"carl": BLOCKS}, "blocks= names 'carl', which is no client; there are: anna"),
        (BLOCKS, r"blocks= goes by client, \{'anna': \[...\]\}, got ndarray"),
    ],
)
def test_what_does_not_fit_is_one_line(blocks, said):
    with pytest.raises(gf.GramfoldError, match=said):
        gf.Federation.from_clients({"anna": (ROWS, LABELS)}, blocks=blocks).clients[0].train()


def test_tables_are_told_to_name_a_column():
    with pytest.raises(ColumnsError):
        gf.Federation.from_clients({"n": {"a": [1, 2], "y": [0, 1]}}, label_column="y", blocks={"n": [0, 1]})
    with pytest.raises(gf.GramfoldError, match="block_column= is for clients given as tables"):
        gf.Federation.from_clients({"n": (ROWS, LABELS)}, block_column="visit")
