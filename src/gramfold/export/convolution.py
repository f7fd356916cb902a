"""Networks without gradients as ONNX. Convolutions are products with patches, in float64: onnxruntime's own are not."""

from collections.abc import Iterator

import numpy as np

from gramfold.convolution.description import Step
from gramfold.convolution.network import CONTRAST_FLOOR, ConvolutionMap
from gramfold.export.activations import ACTIVATIONS
from gramfold.export.graph import Graph
from gramfold.numerics.arrays import Array, to_numpy


def convolution(graph: Graph, of: ConvolutionMap, images: str) -> str:
    """The features of n x H x W x channels images in [0, 1]."""
    x = graph.add("Transpose", graph.times(graph.plus(images, -0.5), 4.0), perm=[0, 3, 1, 2])
    weights = iter(of.arrays.values())
    for step in of.steps:
        x = _step(graph, step, x, weights)
    return graph.add("Concat", graph.ones(x), graph.reshape(x, 0, -1), axis=1)


def _step(graph: Graph, step: Step, x: str, weights: Iterator[Array]) -> str:
    height, width, _ = step.shape
    match step.kind:
        case "conv":
            matrix = to_numpy(next(weights))
            patches = graph.add("Transpose", _patches(graph, step, x), perm=[0, 2, 3, 1])
            return graph.add("Transpose", graph.plus(graph.matmul(patches, matrix[1:]), matrix[0]), perm=[0, 3, 1, 2])
        case "dense":
            matrix = to_numpy(next(weights))
            rows = graph.plus(graph.matmul(graph.reshape(x, 0, -1), matrix[1:]), matrix[0])
            return graph.reshape(rows, 0, -1, 1, 1)
        case "pad":
            borders = graph.whole(0, 0, step.size, step.size, 0, 0, step.size, step.size)
            return graph.add("Pad", x, borders, graph.constant(0.0))
        case "max":
            return graph.add("MaxPool", x, kernel_shape=[step.size] * 2, strides=[step.size] * 2)
        case "mean":
            return _averages(graph, x, *(_squares(side, step.size) for side in (height, width)))
        case "grid":
            return _averages(graph, x, *(_cells(side, step.size) for side in (height, width)))
        case "split":
            both = graph.add("Concat", x, graph.add("Neg", x), axis=1)
            return graph.add("Max", graph.plus(both, -step.numbers[0]), graph.constant(0.0))
    return ACTIVATIONS[step.kind](graph, x)


def _patches(graph: Graph, step: Step, x: str) -> str:
    """n x (channels size size) x H' x W', in the order of torch's unfold: the channel first."""
    (height, width, channels), size = step.shape, step.size
    down, across = height - size + 1, width - size + 1
    rows = [graph.part(x, 2, i, i + down) for i in range(size)]
    parts = [graph.reshape(graph.part(row, 3, j, j + across), 0, channels, 1, down, across) for row in rows for j in range(size)]
    patches = graph.reshape(graph.add("Concat", *parts, axis=2) if len(parts) > 1 else parts[0], 0, -1, down, across)
    if not step.contrast:
        return patches
    share = 1.0 / (channels * size**2)
    centred = graph.add("Sub", patches, graph.times(graph.total(patches, 1), share))
    variance = graph.times(graph.total(graph.add("Mul", centred, centred), 1), share)
    return graph.add("Div", centred, graph.add("Sqrt", graph.plus(variance, CONTRAST_FLOOR)))


def _averages(graph: Graph, x: str, rows: np.ndarray, columns: np.ndarray) -> str:
    return graph.matmul(graph.add("MatMul", graph.constant(rows), x), columns.T)


def _squares(side: int, size: int) -> np.ndarray:
    """Means of `size` neighbours each; what is left at the end is dropped."""
    matrix = np.zeros((side // size, side))
    for i in range(side // size):
        matrix[i, i * size : (i + 1) * size] = 1 / size
    return matrix


def _cells(side: int, cells: int) -> np.ndarray:
    """Means of `cells` ranges that cover the side and may overlap by one, as torch's adaptive pooling has them."""
    matrix = np.zeros((cells, side))
    for i in range(cells):
        first, last = i * side // cells, -(-(i + 1) * side // cells)
        matrix[i, first:last] = 1 / (last - first)
    return matrix
