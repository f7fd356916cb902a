"""ONNX files: a head over its features, or from pixels to probabilities where its backbone is ONNX too.

features    n x d float32, or images n x H x W x 3 bytes
scores      n x classes float32
probabilities, of a head that gives them
label       n labels, as text or whole numbers
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from gramfold import wire
from gramfold.backbones import IMAGES, Backbone, reopen
from gramfold.backbones.onnx_model import OnnxBackbone
from gramfold.backbones.pixels import SHARPNESS, Pixels
from gramfold.backbones.pooling import BOTH, CLS
from gramfold.errors import HeadError
from gramfold.export.graph import OPSET, Graph
from gramfold.export.onnx_head import head_nodes
from gramfold.features import DrawnMap
from gramfold.heads import Head
from gramfold.numerics import memory
from gramfold.origin import BACKBONE
from gramfold.version import __version__

FEATURES, PICTURES = "features", "images"


def write_onnx(head: Head, path: Path, *, head_only: bool = False, backbone_name: str | None = None) -> str:
    """Write a head, with its backbone in front where that is one of images in ONNX; says which of both was done.

    `backbone_name`: what the backbone is called here, where that is another name than it had.
    """
    backbone = None if head_only else _backbone(head, backbone_name)
    model = onnx_model(head, backbone)
    wire.write_atomically(path, model.SerializeToString(), public=True)
    return "from features" if backbone is None else "from pixels"


def _backbone(head: Head, name: str | None) -> OnnxBackbone | None:
    origin = head.origin
    known = origin is not None and origin.kind == BACKBONE
    if not known or not (origin.name == "dinov2s" or origin.name.startswith("onnx:")):  # type: ignore[union-attr]
        return None
    backbone: Backbone = reopen(origin, name=name)  # type: ignore[arg-type]
    return backbone if isinstance(backbone, OnnxBackbone) and backbone.kind == IMAGES else None


def onnx_model(head: Head, backbone: OnnxBackbone | None = None) -> Any:
    """The onnx.ModelProto of a head, over a backbone if one is given."""
    for map in (stream.map for stream in head.streams):
        if isinstance(map, DrawnMap):
            memory.ask(3 * 8 * map.spec.drawn(map.inputs), f"the matrices of {map!r}", "export a head of a smaller map")
    graph = Graph()
    helper, types = graph.onnx.helper, graph.onnx.TensorProto
    version, before = OPSET, None
    if backbone is not None:
        if head.origin is not None:
            head.origin.require(backbone.origin, f"backbone {backbone.name}")
        before = backbone.model()
        version = _opset(graph, before)
        given = helper.make_tensor_value_info(PICTURES, types.UINT8, ["n", "height", "width", 3])
        rows = _in_front(graph, backbone, before)
    elif len(head.shape) == 3:
        given = helper.make_tensor_value_info(PICTURES, types.FLOAT, ["n", *head.shape])
        rows = graph.double(PICTURES)
    else:
        given = helper.make_tensor_value_info(FEATURES, types.FLOAT, ["n", head.inputs])
        rows = graph.double(FEATURES)
    outputs = _outputs(graph, head, head_nodes(graph, head, rows))
    made = helper.make_graph(graph.nodes, "gramfold", [given], outputs, graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", version)], producer_name="gramfold", ir_version=8)
    model.producer_version = __version__
    about = {"method": head.method, "labels": json.dumps(head.labels), "chosen": json.dumps(dict(head.chosen), default=str)}
    origin = {} if head.origin is None else {"origin": head.origin.to_json()}
    helper.set_model_props(model, {f"gramfold.{key}": value for key, value in {**about, **origin}.items()})
    return model


def _outputs(graph: Graph, head: Head, scores: str) -> list[Any]:
    helper, types = graph.onnx.helper, graph.onnx.TensorProto
    outputs = int(head.streams[0].weights.shape[1])
    made = [helper.make_tensor_value_info(graph.cast(scores, "FLOAT", "scores"), types.FLOAT, ["n", outputs])]
    if head.labels is None:
        return made
    if head.probabilistic:
        shares = graph.add("Softmax", graph.times(scores, 1.0 / head.temperature), axis=1)
        shares = graph.plus(graph.times(shares, 1.0 - head.unforeseen), head.unforeseen / outputs)
        made.append(helper.make_tensor_value_info(graph.cast(shares, "FLOAT", "probabilities"), types.FLOAT, ["n", outputs]))
    text = isinstance(head.labels[0], str)
    names = graph.words(head.labels) if text else graph.constant(head.labels, np.int64)  # type: ignore[arg-type]
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    label = graph.add("Gather", names, best, name="label", axis=0)
    return [*made, helper.make_tensor_value_info(label, types.STRING if text else types.INT64, ["n"])]


# --- the backbone in front ---


def _opset(graph: Graph, model: Any) -> int:
    """The operator set that the backbone is written in, which the rest is then written in too."""
    others = [entry.domain for entry in model.opset_import if entry.domain not in ("", "ai.onnx")]
    version = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if others or not 13 <= version <= 21:
        raise HeadError(f"the backbone's ONNX operators ({version or others}) cannot be joined; use --head-only")
    return int(version)


def _in_front(graph: Graph, backbone: OnnxBackbone, model: Any) -> str:
    """Preprocessing, the backbone and its pooling: n x d features of n x H x W x 3 bytes."""
    inner = model.graph
    prepared = _preprocessed(graph, backbone.pixels)
    graph.nodes.append(graph.onnx.helper.make_node("Identity", [prepared], [inner.input[0].name]))
    graph.nodes.extend(inner.node)
    graph.constants.extend(inner.initializer)
    return graph.double(_pooled(graph, inner.output[0].name, backbone))


def _preprocessed(graph: Graph, pixels: Pixels) -> str:
    """As `Pixels` does it for images up to its size; larger ones are sampled and not averaged: reduce them beforehand."""
    single = graph.add("Transpose", graph.cast(PICTURES, "FLOAT"), perm=[0, 3, 1, 2])
    shape = graph.add("Concat", graph.part(graph.add("Shape", single), 0, 0, 2), graph.whole(pixels.size, pixels.size), axis=0)
    resized = graph.add("Resize", single, "", "", shape, mode="cubic", cubic_coeff_a=SHARPNESS)
    clipped = graph.add("Clip", resized, graph.constant(0, np.float32), graph.constant(255, np.float32))
    mean, std = (np.asarray(part, dtype=np.float32).reshape(3, 1, 1) for part in (pixels.mean, pixels.std))
    scaled = graph.add("Div", clipped, graph.constant(255, np.float32))
    centred = graph.add("Sub", scaled, graph.constant(mean, np.float32))
    return graph.add("Div", centred, graph.constant(std, np.float32))


def _pooled(graph: Graph, tokens: str, backbone: OnnxBackbone) -> str:
    """As pooling.py does it."""
    rank = backbone.rank()
    if rank == 2:
        return tokens
    if rank == 4:
        area = graph.cast(graph.add("ReduceProd", graph.part(graph.add("Shape", tokens), 0, 2, 4), keepdims=0), "FLOAT")
        return graph.add("Div", graph.total(tokens, 2, 3, keep=False), area)
    first = graph.reshape(graph.part(tokens, 1, 0, 1), 0, -1)
    if backbone.pooling == CLS:
        return first
    others = graph.part(tokens, 1, 1, np.iinfo(np.int64).max)
    count = graph.cast(graph.part(graph.add("Shape", others), 0, 1, 2), "FLOAT")
    mean = graph.add("Div", graph.total(others, 1, keep=False), count)
    return graph.add("Concat", first, mean, axis=1) if backbone.pooling == BOTH else mean
