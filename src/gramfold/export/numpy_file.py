"""A head for `numpy_predictor.py`, which needs nothing but NumPy: the steps of its ONNX graph and their numbers, as an .npz."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from gramfold import wire
from gramfold.errors import HeadError
from gramfold.export.numpy_predictor import OPERATORS
from gramfold.export.onnx_file import onnx_model
from gramfold.heads import Head

IMPLIED = {"ConstantOfShape": {"value": 1.0}}
"""Options that ONNX has as tensors."""


def write_numpy(head: Head, path: Path) -> None:
    """Write a head of rows of numbers. Writing needs the extra `onnx`; reading needs NumPy."""
    if len(head.shape) != 1:
        raise HeadError("a head of images is not written for NumPy; use --onnx")
    graph = onnx_model(head).graph
    steps = [_step(node) for node in graph.node]
    unknown = sorted({step[0] for step in steps} - OPERATORS.keys())
    if unknown:
        raise HeadError(f"NumPy's predictor knows no {', '.join(unknown)}; use --onnx")
    said = {"inputs": head.inputs, "outputs": [output.name for output in graph.output]}
    content: dict[str, Any] = {tensor.name: _array(tensor) for tensor in graph.initializer}
    content |= {"steps": np.array(json.dumps(steps)), "about": np.array(json.dumps(said))}
    file = io.BytesIO()
    np.savez_compressed(file, **content)
    wire.write_atomically(path, file.getvalue(), public=True)


def _step(node: Any) -> tuple[str, list[str], str, dict[str, Any]]:
    """Operator, inputs, output, options."""
    import onnx

    inputs = list(node.input)
    if node.op_type in IMPLIED:
        return node.op_type, inputs, node.output[0], IMPLIED[node.op_type]
    options = {option.name: onnx.helper.get_attribute_value(option) for option in node.attribute}
    if node.op_type == "Cast":
        options["to"] = onnx.helper.tensor_dtype_to_np_dtype(options["to"]).name
    return node.op_type, inputs, node.output[0], options


def _array(tensor: Any) -> np.ndarray:
    import onnx

    found = onnx.numpy_helper.to_array(tensor)
    if found.dtype != object:
        return np.asarray(found)
    return np.array([word.decode() if isinstance(word, bytes) else word for word in found], dtype=str)
