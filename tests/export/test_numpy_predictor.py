"""A head exported for NumPy alone gives what the head gives, in a Python that has nothing else."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gramfold as gf
from gramfold.errors import HeadError
from gramfold.export import numpy_predictor, write_numpy
from gramfold.export.numpy_predictor import Predictor
from gramfold.features import ACTIVATIONS
from gramfold.federation import digits_as_images
from gramfold.heads import Head
from gramfold.methods import ANALYTIC

pytest.importorskip("onnx", reason="onnx is not installed")
CLOSE = 1e-6
"""Scores leave the graph in float32."""


def assert_same(head: Head, samples: np.ndarray, folder: Path) -> None:
    write_numpy(head, folder / "head.npz")
    found, scores = Predictor(folder / "head.npz")(samples), head.scores(samples)
    size = np.abs(scores[np.isfinite(scores)]).max()  # a class that a client may not choose has -inf
    np.testing.assert_allclose(found["scores"], scores, rtol=CLOSE, atol=CLOSE * max(1.0, size))
    assert ("probabilities" in found) == head.probabilistic
    if head.probabilistic:
        np.testing.assert_allclose(found["probabilities"], head.predict_proba(samples), atol=CLOSE)
    if head.labels is not None:
        assert found["label"].tolist() == head.predict(samples).tolist()


@pytest.mark.parametrize("method", ANALYTIC, ids=lambda method: method.name)
def test_every_analytic_methods_heads(method, federation, blobs, tmp_path):
    assert_same(gf.run(method(), federation).heads["2"], blobs[0], tmp_path)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_every_activation(activation, federation, blobs, tmp_path):
    head = gf.run(gf.AFL(features=f"bias+linear+{activation}:9"), federation).heads["2"]
    assert_same(head, blobs[0], tmp_path)


@pytest.mark.parametrize("kind", ["two words", "values", "wide"])
def test_heads_of_every_kind_of_target(kind, rng, tmp_path):
    X = rng.standard_normal((240, 5000 if kind == "wide" else 6))
    y = {"two words": np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)], "values": X[:, 0] ** 2, "wide": np.arange(240) % 3}[
        kind
    ]
    federation = gf.Federation.split(X, y, clients=3, partition="iid", regression=kind == "values")
    assert_same(gf.run(gf.PACE(), federation).heads["0"], X, tmp_path)


def test_it_runs_where_there_is_nothing_but_numpy(federation, blobs, tmp_path, gramfold):
    head = gf.run(gf.PACE(), federation).heads["2"]
    head.save(tmp_path / "head.safetensors")
    code, out, err = gramfold("export", str(tmp_path / "head.safetensors"), "--numpy", str(tmp_path / "head.npz"))
    assert code == 0, err
    assert str(numpy_predictor.__file__) in out
    program = tmp_path / "numpy_predictor.py"
    program.write_text(Path(numpy_predictor.__file__).read_text())
    (tmp_path / "alone").mkdir()
    for part in Path(np.__file__).parents[1].glob("numpy*"):
        (tmp_path / "alone" / part.name).symlink_to(part)
    rows = "\n".join(",".join(map(repr, row)) for row in blobs[0][:5].tolist())
    alone = f"import sys, runpy; sys.path.insert(0, {str(tmp_path / 'alone')!r})"
    start = f"{alone}; runpy.run_path({str(program)!r}, run_name='__main__')"
    command = [sys.executable, "-I", "-S", "-c", start, str(tmp_path / "head.npz")]
    ran = subprocess.run(command, input=rows, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    np.testing.assert_allclose([answer["probabilities"] for answer in answers], head.predict_proba(blobs[0][:5]), atol=CLOSE)
    assert [answer["label"] for answer in answers] == head.predict(blobs[0][:5]).tolist()


def test_the_predictor_imports_numpy_and_no_more_than_comes_with_python():
    tree = ast.parse(Path(numpy_predictor.__file__).read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in named} - set(sys.stdlib_module_names) == {"numpy"}


def test_rows_that_do_not_fit_and_heads_of_images_are_refused(federation, tmp_path):
    head = gf.run(gf.AFL(), federation).heads["2"]
    write_numpy(head, tmp_path / "head.npz")
    with pytest.raises(ValueError, match=f"rows of {head.inputs} numbers"):
        Predictor(tmp_path / "head.npz")(np.zeros((2, head.inputs + 1)))
    with pytest.raises(ValueError, match="finite rows"):
        Predictor(tmp_path / "head.npz")(np.full((2, head.inputs), np.nan))
    pytest.importorskip("torch", reason="convolution needs PyTorch")
    images = gf.Federation.from_dataset(digits_as_images(), clients=2, partition="iid")
    head = gf.run(gf.PaceCNN(network="contrast+conv:5:4:10+split:0.4+grid:2"), images).heads["0"]
    with pytest.raises(HeadError, match="a head of images is not written for NumPy"):
        write_numpy(head, tmp_path / "images.npz")
