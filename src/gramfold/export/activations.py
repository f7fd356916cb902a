"""The activations as ONNX operators, by name; the definitions are those of features/maps.py."""

import math
from collections.abc import Callable

from gramfold.export.graph import Graph

Convert = Callable[[Graph, str], str]


def _hardswish(graph: Graph, x: str) -> str:
    clipped = graph.add("Clip", graph.plus(x, 3.0), graph.constant(0.0), graph.constant(6.0))
    return graph.times(graph.add("Mul", x, clipped), 1 / 6)


def _gelu(graph: Graph, x: str) -> str:
    single = graph.cast(graph.times(x, 1 / math.sqrt(2)), "FLOAT")  # onnxruntime has no other erf
    erf = graph.double(graph.add("Erf", single))
    return graph.add("Mul", graph.times(x, 0.5), graph.plus(erf, 1.0))


def _softshrink(graph: Graph, x: str) -> str:
    beyond = graph.add("Max", graph.plus(graph.add("Abs", x), -0.5), graph.constant(0.0))
    return graph.add("Mul", graph.add("Sign", x), beyond)


ACTIVATIONS: dict[str, Convert] = {
    "identity": lambda graph, x: x,
    "relu": lambda graph, x: graph.add("Max", x, graph.constant(0.0)),
    "hardswish": _hardswish,
    "tanh": lambda graph, x: graph.add("Tanh", x),
    "sigmoid": lambda graph, x: graph.add("Sigmoid", x),
    "gelu": _gelu,
    "leakyrelu": lambda graph, x: graph.add("Max", x, graph.times(x, 0.01)),
    "softshrink": _softshrink,
}
