"""Raw data and small models for the tests of the front door: made here, read by nobody else."""

from pathlib import Path

import numpy as np
import pytest

SIDE = 12


def pictures(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n small RGB images of three classes: mostly red, green or blue."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    images = rng.integers(0, 90, (n, SIDE, SIDE, 3))
    images[np.arange(n), :, :, codes] += 120
    return images.astype(np.uint8), codes


def write_photos(folder: Path, n: int = 30, clients: tuple[str, ...] = ()) -> list[Path]:
    """The pictures as files: CLASS/IMAGE, or CLIENT/CLASS/IMAGE."""
    image_module = pytest.importorskip("PIL.Image", reason="images need pillow")
    images, codes = pictures(n)
    paths = []
    for i, (image, code) in enumerate(zip(images, codes, strict=True)):
        place = folder / clients[(i // 3) % len(clients)] if clients else folder
        place = place / ("red", "green", "blue")[code]
        place.mkdir(parents=True, exist_ok=True)
        paths.append(place / f"{i:03}.png")
        image_module.fromarray(image).save(paths[-1])
    return paths


FUNCTION = """
import numpy as np

calls = 0

def colours(images):
    global calls
    calls += len(images)
    pixels = np.stack([np.asarray(image.resize((8, 8)), dtype=np.float32) / 255 for image in images])
    return np.concatenate([pixels.mean((1, 2)), pixels.std((1, 2)), pixels[:, ::2, ::2].reshape(len(images), -1)], axis=1)

def letters(texts):
    return np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz "] for text in texts], dtype=float)

letters.kind = "texts"
"""


def write_function(folder: Path) -> str:
    """A file with two functions that are backbones; gives back its path."""
    path = folder / "own_backbone.py"
    path.write_text(FUNCTION)
    return str(path)


def write_tokens_model(path: Path, size: int = 28, patch: int = 7, width: int = 6) -> str:
    """An ONNX model like a vision transformer's beginning: tokens n x (1 + patches) x width, and a class score behind them.

    Gives back the name of the tokens' tensor.
    """
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    rng = np.random.default_rng(3)
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = {
        "filters": rng.standard_normal((width, 3, patch, patch)).astype(np.float32) / patch,
        "shape": np.array([0, width, -1]),
        "scores": rng.standard_normal((width, 2)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["pixels", "filters"], ["patches"], strides=[patch, patch]),
        helper.make_node("Reshape", ["patches", "shape"], ["flat"]),
        helper.make_node("Transpose", ["flat"], ["rows"], perm=[0, 2, 1]),
        helper.make_node("ReduceMax", ["rows"], ["top"], axes=[1], keepdims=1),
        helper.make_node("Concat", ["top", "rows"], ["tokens"], axis=1),
        helper.make_node("MatMul", ["tokens", "scores"], ["scored"]),
    ]
    batch = helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, ["n", 3, size, size])
    scored = helper.make_tensor_value_info("scored", onnx.TensorProto.FLOAT, ["n", None, 2])
    given = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "tokens", [batch], [scored], given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.save(model, str(path))
    return "tokens"
