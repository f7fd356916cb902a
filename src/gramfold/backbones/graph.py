"""An ONNX model read from a file, and the part of it that leads to an inner tensor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gramfold.errors import BackboneError, FileError
from gramfold.imports import require


def read_model(path: Path) -> Any:
    """The onnx.ModelProto in a file."""
    onnx = require("onnx", "onnx", "reading an ONNX model")
    if not path.is_file():
        raise FileError(f"no such model file: {path}")
    try:
        return onnx.load(str(path))
    except Exception as error:  # protobuf's errors share no base
        raise FileError(f"{path} is not a readable ONNX model: {type(error).__name__}") from None


def weight_files(path: Path) -> list[Path]:
    """The model's file, and those beside it that hold its weights, where they are not in it."""
    onnx = require("onnx", "onnx", "reading an ONNX model")
    tensors = onnx.load(str(path), load_external_data=False).graph.initializer
    names = {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}
    return [path, *(path.parent / name for name in sorted(names))]


def cut(model: Any, tensor: str) -> None:
    """Make an inner tensor the model's only output, and drop what it does not need."""
    onnx = require("onnx", "onnx", "cutting an ONNX model")
    graph = model.graph
    if tensor not in {name for node in graph.node for name in node.output}:
        ends = [name for node in graph.node[-3:] for name in node.output]
        raise BackboneError(f"the model has no tensor {tensor!r}; its last ones are {', '.join(ends)}")
    needed, kept = {tensor}, []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
            needed.update(_captured(node))
    kept.reverse()
    _replace(graph.node, kept)
    _replace(graph.initializer, [weights for weights in graph.initializer if weights.name in needed])
    _replace(graph.value_info, [])
    _replace(graph.output, [onnx.helper.make_tensor_value_info(tensor, onnx.TensorProto.FLOAT, None)])


def _captured(node: Any) -> set[str]:
    """The tensors that a node's inner graphs take from outside."""
    inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return {name for graph in inner for part in graph.node for name in (*part.input, *_captured(part))}


def _replace(field: Any, values: Sequence[Any]) -> None:
    """Give a repeated protobuf field these values instead of those it has; they may be among them."""
    copies = [type(value).FromString(value.SerializeToString()) for value in values]
    del field[:]
    field.extend(copies)
