"""A head predicts, is a file, and trusts no file."""

import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import features, networks
from gramfold.errors import FeaturesError, HeadError
from gramfold.heads import Stream, softmax
from gramfold.heads.torch_head import TorchHead
from gramfold.wire import FORMAT, Packet


@contextmanager
def limited_memory(more: int):
    """Whatever takes this much more address space than there is now fails."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


LINEAR, RELU = (
    features.draw(features.parse(text), 3, seed=1, name=name) for text, name in (("bias+linear", "a"), ("relu:7", "b"))
)
LABELS = ("Hund", "кошка", "鳥")


def head(labels=LABELS, streams=2, **changes) -> gf.Head:
    rng = np.random.default_rng(0)
    outputs = 3 if labels is None else len(labels)
    made = [Stream(LINEAR, rng.standard_normal((4, outputs))), Stream(RELU, rng.standard_normal((7, outputs)), 0.3)]
    return gf.Head(made[:streams], labels, **({"method": "test", "chosen": {"beta": 0.5, "steps": [1, 2]}} | changes))


X = np.random.default_rng(1).standard_normal((20, 3))


@pytest.mark.parametrize("labels", [LABELS, (3, 5, 8), None])
@pytest.mark.parametrize("offset", [None, np.array([0.0, -np.inf, 1.5])])
@pytest.mark.parametrize("streams", [1, 2])
def test_a_file_holds_a_head(tmp_path, labels, offset, streams):
    saved = head(labels, streams, offset=offset, probabilistic=labels is not None)
    saved.save(tmp_path / "head.safetensors")
    loaded = gf.load_head(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(loaded.scores(X), saved.scores(X))
    np.testing.assert_array_equal(loaded.predict(X), saved.predict(X))
    for name in ("labels", "probabilistic", "method", "chosen", "inputs"):
        assert getattr(loaded, name) == getattr(saved, name)
    assert (tmp_path / "head.safetensors").stat().st_size == saved.pack().wire_bytes
    assert len(list(tmp_path.iterdir())) == 1


def test_a_loaded_head_takes_torch_tensors_without_a_murmur(tmp_path, recwarn):
    head().save(tmp_path / "x")
    scores = gf.load_head(tmp_path / "x").scores(torch.as_tensor(X))
    np.testing.assert_allclose(scores.numpy(), head().scores(X), rtol=1e-12)
    assert not recwarn.list


def test_scores_are_the_scaled_sum_of_the_streams_plus_the_offset():
    made = head(offset=np.array([0.0, 1.0, -np.inf]))
    first, second = made.streams
    expected = LINEAR(X) @ first.weights + 0.3 * RELU(X) @ second.weights + [0.0, 1.0, -np.inf]
    np.testing.assert_allclose(made.scores(X), expected, rtol=1e-12)
    assert (made.predict_codes(X) != 2).all()


def test_predictions_are_labels():
    codes = head().scores(X).argmax(1)
    assert head().predict(X).tolist() == [LABELS[code] for code in codes]
    assert head((3, 5, 8)).predict(X).tolist() == [(3, 5, 8)[code] for code in codes]
    assert head().predict(X[0]).tolist() == [LABELS[codes[0]]]  # a single sample is a row
    assert head().predict(X.tolist()).tolist() == head().predict(X).tolist()
    assert head().predict(X.astype(np.float32)).tolist() == head().predict(X).tolist()
    assert head().predict(X[:0]).shape == (0,)


def test_a_regressor_predicts_values():
    np.testing.assert_array_equal(head(None).predict(X), head(None).scores(X))
    single = gf.Head([Stream(LINEAR, np.ones((4, 1)))], None)
    assert single.predict(X).shape == (20,)


def test_probabilities_are_the_softmax_of_the_scores():
    made = head(probabilistic=True, offset=np.array([0.0, -np.inf, 2000.0]))
    probabilities = made.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, rtol=1e-12)
    assert (probabilities[:, 1] == 0).all()
    np.testing.assert_array_equal(probabilities.argmax(1), made.predict_codes(X))


@given(st.lists(st.floats(-800, 800), min_size=2, max_size=6), st.floats(-1e3, 1e3))
def test_softmax_does_not_mind_a_constant(logits, constant):
    row = np.array([logits])
    np.testing.assert_allclose(softmax(row + constant), softmax(row), rtol=1e-9, atol=1e-12)  # 1e3 rounded to 1e-13
    assert softmax(row).sum() == pytest.approx(1.0, rel=1e-12)


def test_scores_that_are_no_probabilities_are_not_given_as_such():
    with pytest.raises(gf.GramfoldError, match="scores of test are not probabilities"):
        head().predict_proba(X)


@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 3, 3)])
def test_inputs_of_another_width_are_refused(shape):
    with pytest.raises(gf.GramfoldError, match="expected rows of 3 numbers"):
        head().predict(np.zeros(shape))


# --- files that cannot be trusted ---


def stream(i: int, **changes) -> dict:
    streams = [dict(part) for part in head().pack().meta["streams"]]
    streams[i] = streams[i] | changes
    return {"streams": streams}


def drawn(**changes) -> dict:
    return stream(1, features=head().pack().meta["streams"][1]["features"] | changes)


TAMPERED = {
    "weights of another shape": ({"weights.0": np.zeros((5, 3))}, {}),
    "weights of another number of classes": ({"weights.0": np.zeros((4, 2))}, {}),
    "flat weights": ({"weights.0": np.zeros(4)}, {}),
    "flat weights of a regressor": ({"weights.0": np.zeros(4)}, {"labels": None}),
    "NaN weights": ({"weights.1": np.full((7, 3), np.nan)}, {}),
    "no weights": ({"weights.1": None}, {}),
    "an offset of another shape": ({"offset": np.zeros(4)}, {}),
    "a NaN offset": ({"offset": np.full(3, np.nan)}, {}),
    "an infinite offset": ({"offset": np.full(3, np.inf)}, {}),
    "other labels": ({}, {"labels": ["a", "b"]}),
    "labels that are no list": ({}, {"labels": 3}),
    "no labels": ({}, {"labels": ...}),
    "no streams": ({}, {"streams": []}),
    "streams that are no list": ({}, {"streams": 2}),
    "streams of different inputs": ({"weights.1": np.zeros((7, 3))}, drawn(inputs=4)),
    "a NaN scale": ({}, stream(0, scale=float("nan"))),
    "a scale in words": ({}, stream(0, scale="large")),
    "an unknown map": ({}, drawn(map={"kind": "hologram"})),
    "a map that is no description": ({}, drawn(map=[1])),
    "a map in words": ({}, drawn(map="relu:7")),
    "a broken landmark": ({}, drawn(map={"kind": "nystroem", "landmarks": "AAA", "count": 1, "gamma": 1.0})),
    "landmarks that do not divide": ({}, drawn(map={"kind": "nystroem", "landmarks": "AAAAAAAAAAA=", "count": 3, "gamma": 1.0})),
    "negative inputs": ({}, drawn(inputs=-1)),
    "inputs in words": ({}, drawn(inputs="three")),
    "a negative seed": ({}, drawn(seed=-1)),
    "no seed": ({}, drawn(seed=None)),
    "an unknown kind of map": ({}, drawn(kind="hologram")),
    "a map without a kind": ({}, drawn(kind=None)),
    "a map of another kind": ({}, drawn(kind="deep")),
    "a list for a map": ({}, stream(1, features=[1])),
    "another kind": ({}, {"head": "tree"}),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_file_is_refused(tmp_path, what):
    packet, (parts, meta) = head().pack(), TAMPERED[what]
    parts = {name: part for name, part in {**packet.arrays, **parts}.items() if part is not None}
    meta = {name: value for name, value in {**packet.meta, **meta}.items() if value is not ...}
    (tmp_path / "x").write_bytes(Packet(parts, meta).to_bytes())
    with pytest.raises(gf.GramfoldError):
        gf.load_head(tmp_path / "x")


def test_a_head_of_a_newer_gramfold_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as newer:
        newer.setattr("gramfold.wire.packet.FORMAT", FORMAT + 1)
        head().save(tmp_path / "x")
    with pytest.raises(gf.GramfoldError, match=rf"newer gramfold \(format {FORMAT + 1}, this reads {FORMAT}\); upgrade"):
        gf.load_head(tmp_path / "x")


def test_what_is_no_head_is_refused(tmp_path):
    with pytest.raises(gf.GramfoldError, match="cannot read"):
        gf.load_head(tmp_path / "nowhere")
    gf.Moments.from_features(X, np.zeros(20, int), classes=2).save(tmp_path / "moments")
    with pytest.raises(HeadError):
        gf.load_head(tmp_path / "moments")
    data = head().pack().to_bytes()
    for size in (0, 8, 100, len(data) - 1):
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(gf.GramfoldError, match="not a gramfold message"):
            gf.load_head(tmp_path / "cut")


# --- files that promise more than they hold ---

HUGE = {
    "a wide map": {"kind": "fourier", "dim": 10**7, "scale": 1.0},
    "a map that is wide within": {"kind": "chain", "parts": [{"kind": "fourier", "dim": 10**9}, {"kind": "fourier", "dim": 7}]},
    "two wide maps in a row": {"kind": "chain", "parts": [*[{"kind": "fourier", "dim": 40_000}] * 3, {"kind": "bias"}]},
}


@pytest.mark.parametrize("what", HUGE)
def test_a_small_file_takes_little_to_refuse(tmp_path, what):
    """300 bytes took 11.7 GB and 50 s: the map was drawn before its weights were looked at."""
    packet = head().pack()
    (tmp_path / "x").write_bytes(Packet(packet.arrays, {**packet.meta, **drawn(map=HUGE[what])}).to_bytes())
    with limited_memory(2**30), pytest.raises(gf.GramfoldError):
        gf.load_head(tmp_path / "x")


def test_a_map_is_drawn_when_there_are_rows_for_it():
    with limited_memory(2**30):
        made = features.draw(features.parse("relu:7"), 10**9, seed=77)
        with pytest.raises(FeaturesError):
            made(X)


def torch_packet(**changes) -> Packet:
    network = networks.describe("mlp:4", (3,), 3, seed=0)
    state = networks.build(network).full_state({})
    packet = TorchHead(labels=LABELS, method="fedavg", network=network, state=state).pack()
    return Packet(packet.arrays, {**packet.meta, "network": {**packet.meta["network"], **changes}})


@pytest.mark.parametrize("changes", [
    {"width": 10**9}, {"width": 10**30}, {"width": -1}, {"width": "4"}, {"classes": 10**9}, {"shape": [10**9]}, {"shape": 3},
    {"shape": []}, {"kind": "resnet", "blocks": 10**9, "shape": [8, 8, 3], "stem": "small", "adapters": True},
    {"kind": "hologram"}, {"projector": 10**9}, {"seed": None}, {"seed": "x"}, {"kind": None},
])  # fmt: skip
def test_a_network_is_made_once_its_weights_are_there(tmp_path, changes):
    (tmp_path / "x").write_bytes(torch_packet(**changes).to_bytes())
    with limited_memory(2**30), pytest.raises(gf.GramfoldError):
        gf.load_head(tmp_path / "x")


def test_a_file_makes_its_reader_open_no_other(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(torch_packet(pretrained=str(tmp_path / "secret.pt")).to_bytes())
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(HeadError):
        gf.load_head(tmp_path / "x")


def test_a_network_comes_back_as_it_was(tmp_path):
    (tmp_path / "x").write_bytes(torch_packet().to_bytes())
    rows = X.astype(np.float32)
    np.testing.assert_array_equal(gf.load_head(tmp_path / "x").scores(rows), TorchHead.unpack(torch_packet()).scores(rows))


def test_decisions_have_the_shape_that_scikit_learn_wants():
    """n numbers of two classes, above zero for the second; n x classes of more; a regressor has none."""
    rng = np.random.default_rng(1)
    for classes in (2, 3):
        X, y = rng.standard_normal((60, 4)), np.arange(60) % classes
        made = gf.run(gf.AFL(), gf.Federation.split(X, y, clients=2, partition="iid")).global_head
        found = made.decision_function(X)
        assert found.shape == ((60,) if classes == 2 else (60, 3))
        np.testing.assert_array_equal((found > 0).astype(int) if classes == 2 else found.argmax(1), made.predict_codes(X))
    with pytest.raises(HeadError):
        head(None).decision_function(np.zeros((1, 3)))
