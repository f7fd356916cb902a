"""Exported heads give what heads give: in onnxruntime, in PyTorch, in scikit-learn."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from gramfold import GramfoldError
from gramfold.backbones import open_backbone
from gramfold.errors import HeadError, OriginError
from gramfold.export import onnx_model, write_onnx, write_sklearn, write_torch
from gramfold.extraction import load_data
from gramfold.features import (
    ACTIVATIONS,
    Bias,
    Chain,
    Concat,
    Fourier,
    Linear,
    Normalize,
    Nystroem,
    Projection,
    draw,
)
from gramfold.federation import Federation, digits_as_images
from gramfold.heads import Head, Stream
from gramfold.methods import ANALYTIC, ON_IMAGES
from gramfold.origin import Origin
from gramfold.solve.evidence import Cosine
from raw_cases import pictures, write_photos, write_tokens_model

runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")
CLOSE = 1e-5
NETWORK = "pad:1+contrast+conv:4:3:4+split:0.1+max:2+conv:4:2+gelu+mean:2+dense:6+tanh"


def answers(model, samples: np.ndarray) -> dict[str, np.ndarray]:
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: samples})
    return dict(zip([output.name for output in session.get_outputs()], found, strict=True))


def assert_same(head: Head, samples: np.ndarray) -> None:
    found = answers(onnx_model(head), samples)
    scores = head.scores(samples)
    finite = np.isfinite(scores)
    assert np.abs(found["scores"][finite] - scores[finite]).max() < CLOSE * max(1.0, np.abs(scores[finite]).max())
    if head.probabilistic:
        assert np.abs(found["probabilities"] - head.predict_proba(samples)).max() < CLOSE
    if head.labels is not None:
        assert found["label"].tolist() == head.predict(samples).tolist()


# --- ONNX ---


@pytest.mark.parametrize("method", ANALYTIC, ids=lambda method: method.name)
def test_every_analytic_methods_heads(method, federation, blobs):
    result = gf.run(method(), federation)
    samples = blobs[0].astype(np.float32)
    assert_same(result.heads["2"], samples)
    if result.global_head is not None:
        assert_same(result.global_head, samples)


def test_many_classes_whose_evidence_is_bent(rng):
    y = np.arange(800) % 40
    X = rng.standard_normal((40, 16))[y] + rng.standard_normal((800, 16))
    head = gf.run(gf.PACE(features="bias+linear"), gf.Federation.split(X, y, clients=2, partition="iid", random_state=0)).heads[
        "0"
    ]
    assert head.evidence.terms[0] == Cosine(0.25)
    assert_same(head, X[:50].astype(np.float32))


def test_two_classes_with_names(blobs):
    X, y = blobs
    names = np.where(y < 2, "benign", "malignant")
    result = gf.run(gf.PACE(), Federation.split(X, names, clients=4, random_state=1))
    assert_same(result.heads["1"], X.astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("method", ON_IMAGES, ids=lambda method: method.name)
def test_networks_without_gradients(method):
    pytest.importorskip("torch", reason="torch is not installed")
    federation = Federation.from_dataset(digits_as_images(), 4, "dirichlet:1.0", random_state=2)
    result = gf.run(method(network=NETWORK), federation)
    assert_same(result.heads["1"], digits_as_images().inputs[:40].astype(np.float32))


def test_a_grid_that_does_not_divide_the_image():
    pytest.importorskip("torch", reason="torch is not installed")
    federation = Federation.from_dataset(digits_as_images(), 3, "iid", random_state=2)
    result = gf.run(gf.FedACnnL(network="conv:4:2+relu+grid:3"), federation)
    assert_same(result.heads["1"], digits_as_images().inputs[:20].astype(np.float32))


def test_a_regressor(rng):
    X = rng.standard_normal((120, 5))
    federation = Federation.split(X, X @ rng.standard_normal((5, 2)), clients=3, partition="iid", regression=True)
    assert_same(gf.run(gf.PACE(), federation).heads["0"], X.astype(np.float32))


LEAVES = st.one_of(
    st.just(Linear()), st.just(Bias()), st.just(Normalize()), st.builds(Fourier, st.integers(1, 9), st.floats(0.2, 2.0)),
    st.builds(Projection, st.integers(1, 9), st.sampled_from(sorted(ACTIVATIONS))),
)  # fmt: skip
STACKS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.lists(parts, min_size=1, max_size=3).map(Chain), st.lists(parts, min_size=1, max_size=3).map(Concat)
    ),
    max_leaves=5,
)


@settings(max_examples=30)
@given(STACKS, st.integers(0, 99))
def test_every_map_that_can_be_written_down(spec, seed):
    rng = np.random.default_rng(seed)
    drawn = draw(spec, 4, seed)
    head = Head([Stream(drawn, rng.standard_normal((drawn.dim, 3)), 0.7)], ("a", "b", "c"))
    samples = rng.standard_normal((7, 4)).astype(np.float32)
    samples[3] = 0
    found, wanted = answers(onnx_model(head), samples)["scores"], head.scores(samples)
    assert np.abs(found - wanted).max() < CLOSE * max(1.0, np.abs(wanted).max())


def test_landmarks(rng):
    drawn = draw(Chain([Normalize(), Nystroem(rng.standard_normal((6, 4)), 0.8)]), 4, 0)
    assert_same(Head([Stream(drawn, rng.standard_normal((6, 2)))], (3, 7)), rng.standard_normal((9, 4)).astype(np.float32))


def test_a_part_that_nobody_knows_is_refused_in_words(federation):
    head = gf.run(gf.PACE(), federation).heads["0"]

    class Strange:
        kind, inputs, dim, arrays, fingerprint = "strange", 8, 8, {}, "x"

    with pytest.raises(GramfoldError, match="a map of kind 'strange' cannot be exported to ONNX yet; known: drawn, deep"):
        onnx_model(dataclasses.replace(head, streams=[Stream(Strange(), np.zeros((8, 4)))]))


def test_every_field_of_a_head_is_known_to_the_exporter():
    """A head that gets one more part must say here whether ONNX has it."""
    from gramfold.export.onnx_head import PARTS

    assert {field.name for field in dataclasses.fields(Head)} == PARTS


def test_the_file_says_what_it_is(federation, tmp_path):
    import onnx

    head = gf.run(gf.PACE(), federation).heads["0"].with_origin(Origin("backbone", "python:a:b", "12ab", {}))
    assert write_onnx(head, tmp_path / "h.onnx") == "from features"
    about = {entry.key: entry.value for entry in onnx.load(tmp_path / "h.onnx").metadata_props}
    assert about["gramfold.method"] == "pace"
    assert json.loads(about["gramfold.labels"]) == list(federation.task.labels)
    assert Origin.from_json(about["gramfold.origin"]) == head.origin


# --- from pixels to probabilities ---


@pytest.mark.parametrize("pooling", ["cls", "mean", "both"])
def test_one_file_from_pixels_to_probabilities(pooling, tmp_path):
    write_tokens_model(tmp_path / "tokens.onnx")
    write_photos(tmp_path / "photos", 60)
    backbone = open_backbone(f"onnx:{tmp_path / 'tokens.onnx'}#tokens", pooling)
    dataset = load_data(tmp_path / "photos", backbone)
    head = gf.run(gf.PACE(), Federation.from_dataset(dataset, 3, "iid")).heads["1"]
    assert head.origin == backbone.origin
    assert write_onnx(head, tmp_path / "whole.onnx") == "from pixels"
    session = runtime.InferenceSession(str(tmp_path / "whole.onnx"), providers=["CPUExecutionProvider"])
    images, codes = pictures(9)
    _, shares, labels = session.run(None, {"images": images})
    assert np.abs(shares - head.predict_proba(backbone(images))).max() < CLOSE
    assert labels.tolist() == [("red", "green", "blue")[code] for code in codes]
    assert write_onnx(head, tmp_path / "alone.onnx", head_only=True) == "from features"
    with pytest.raises(OriginError):
        onnx_model(head, open_backbone(f"onnx:{tmp_path / 'tokens.onnx'}"))


# --- PyTorch ---


def test_a_torch_program_runs_without_gramfold(federation, blobs, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    head = gf.run(gf.PACE(features="bias+linear+fourier:64"), federation).heads["1"]
    write_torch(head, tmp_path / "head.pt2")
    samples = blobs[0].astype(np.float32)
    np.save(tmp_path / "x.npy", samples)
    script = """
import sys, numpy as np, torch
program = torch.export.load("head.pt2").module()
np.save("y.npy", program(torch.tensor(np.load("x.npy"))).numpy())
assert "gramfold" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.abs(np.load(tmp_path / "y.npy") - head.predict_proba(samples)).max() < 1e-12
    import torch

    again = head.to_torch()(torch.tensor(samples))  # a trace leaves nothing behind in the maps
    assert np.abs(again.numpy() - head.scores(samples)).max() < 1e-9


def test_two_classes_are_traced_too(blobs, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, y = blobs
    head = gf.run(gf.PACE(learn=False), Federation.split(X, y < 2, clients=4, random_state=1)).heads["1"]
    write_torch(head, tmp_path / "head.pt2")
    shares = torch.export.load(tmp_path / "head.pt2").module()(torch.tensor(X.astype(np.float32)))
    assert np.abs(shares.numpy() - head.predict_proba(X.astype(np.float32))).max() < 1e-12


# --- scikit-learn ---


def test_a_scikit_learn_estimator(federation, blobs, tmp_path):
    import joblib
    from sklearn.metrics import get_scorer
    from sklearn.utils.validation import check_is_fitted

    head = gf.run(gf.PACE(), federation).heads["1"].with_origin(Origin("backbone", "dinov2s", "77", {}))
    write_sklearn(head, tmp_path / "head.joblib")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["head.joblib"]
    model = joblib.load(tmp_path / "head.joblib")
    check_is_fitted(model)
    X, y = blobs
    assert np.array_equal(model.predict(X), head.predict(X))
    assert np.array_equal(model.predict_proba(X), head.predict_proba(X))
    assert model.score(X, y) == head.score(X, y)
    assert get_scorer("roc_auc_ovr")(model, X, y) > 0.8
    assert model.head.origin == head.origin
    with pytest.raises(HeadError):
        model.fit(X, y)


# --- the command ---


def test_the_command_writes_all_three(gramfold, federation, tmp_path):
    gf.run(gf.PACE(), federation).heads["1"].save(tmp_path / "head.safetensors")
    code, out, err = gramfold("export", "head.safetensors", "--onnx", "a.onnx", "--torch", "a.pt2", "--sklearn", "a.joblib")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "a.onnx: from features to probabilities", "a.pt2: from features to probabilities",
        "a.joblib: an estimator; it needs gramfold where it is read",
    ]  # fmt: skip
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("a.onnx", "a.pt2", "a.joblib"))
    assert gramfold("export", "head.safetensors")[2].startswith("error: say what to write")
    assert gramfold("export", "nowhere.safetensors", "--onnx", "a.onnx")[0] == 2


def test_a_trained_network_goes_to_torch_alone(federation):
    pytest.importorskip("torch", reason="torch is not installed")
    head = gf.run(gf.FedAvg(rounds=2, lr=0.1), federation).heads["1"]
    with pytest.raises(HeadError):
        onnx_model(head)
    with pytest.raises(HeadError):
        write_sklearn(head, Path("x.joblib"))
