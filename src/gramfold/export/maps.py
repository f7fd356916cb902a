"""Feature maps as ONNX: one converter for each kind of description, and for each kind of map."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gramfold.errors import HeadError
from gramfold.export.activations import ACTIVATIONS
from gramfold.export.convolution import convolution
from gramfold.export.graph import Graph
from gramfold.features import (
    Bias,
    Chain,
    Concat,
    DeepMap,
    DirectionsMap,
    DrawnMap,
    FeatureMap,
    Fourier,
    Linear,
    Map,
    Normalize,
    Nystroem,
    Pairs,
    Projection,
    layer_names,
)
from gramfold.features.metric import MetricMap
from gramfold.numerics.arrays import to_numpy

Place = tuple[int, int, str]
"""What a map is drawn for: inputs, seed, and its name in a stack."""


def map_nodes(graph: Graph, of: Map, rows: str) -> str:
    """The features of rows under a map."""
    convert = MAPS.get(of.kind)
    if convert is None:
        raise HeadError(f"a map of kind {of.kind!r} cannot be exported to ONNX yet; known: {', '.join(MAPS)}")
    return convert(graph, of, rows)


def _spec(graph: Graph, spec: FeatureMap, rows: str, place: Place) -> str:
    convert = SPECS.get(type(spec))
    if convert is None:
        known = ", ".join(kind.__name__ for kind in SPECS)
        raise HeadError(f"the feature map {type(spec).__name__} cannot be exported to ONNX yet; known: {known}")
    return convert(graph, spec, rows, place)


# --- descriptions ---


def _normalize(graph: Graph, spec: Normalize, rows: str, place: Place) -> str:
    squares = graph.one_where_zero(graph.total(graph.add("Mul", rows, rows), 1))
    return graph.add("Mul", rows, graph.add("Sqrt", graph.add("Div", graph.constant(float(place[0])), squares)))


def _projection(graph: Graph, spec: Projection, rows: str, place: Place) -> str:
    return ACTIVATIONS[spec.activation](graph, graph.matmul(rows, spec.matrix(*place)))


def _fourier(graph: Graph, spec: Fourier, rows: str, place: Place) -> str:
    frequencies, phases = spec.waves(*place)
    return graph.add("Cos", graph.plus(graph.matmul(rows, frequencies), phases))


def _nystroem(graph: Graph, spec: Nystroem, rows: str, place: Place) -> str:
    points = spec.landmarks
    squares = graph.plus(graph.total(graph.add("Mul", rows, rows), 1), (points**2).sum(1))
    distance = graph.add("Sub", squares, graph.matmul(rows, 2 * points.T))
    near = graph.add("Exp", graph.times(graph.add("Max", distance, graph.constant(0.0)), -spec.gamma / place[0]))
    return graph.matmul(near, spec.whitening())


def _chain(graph: Graph, spec: Chain, rows: str, place: Place) -> str:
    inputs, seed, name = place
    for i, part in enumerate(spec.parts):
        rows, inputs = _spec(graph, part, rows, (inputs, seed, f"{name}/{i}")), part.width(inputs)
    return rows


def _concat(graph: Graph, spec: Concat, rows: str, place: Place) -> str:
    inputs, seed, name = place
    parts = [_spec(graph, part, rows, (inputs, seed, f"{name}/{i}")) for i, part in enumerate(spec.parts)]
    return graph.add("Concat", *parts, axis=1)


SPECS: dict[type[FeatureMap], Callable[[Graph, Any, str, Place], str]] = {
    Linear: lambda graph, spec, rows, place: rows,
    Bias: lambda graph, spec, rows, place: graph.ones(rows),
    Normalize: _normalize,
    Projection: _projection,
    Fourier: _fourier,
    Pairs: _fourier,
    Nystroem: _nystroem,
    Chain: _chain,
    Concat: _concat,
}


# --- maps ---


def _drawn(graph: Graph, of: DrawnMap, rows: str) -> str:
    return _spec(graph, of.spec, rows, (of.inputs, of.description["seed"], str(of.description["name"])))


def _deep(graph: Graph, of: DeepMap, rows: str) -> str:
    rows = _drawn(graph, of.base, rows)
    for layer in range(of.layers):
        inner, outer = (to_numpy(of.arrays[name]) for name in layer_names(layer))
        wide = ACTIVATIONS[of.description["activation"]](graph, graph.matmul(rows, of.drawn(layer)))
        rows = graph.add("Add", rows, graph.matmul(graph.matmul(wide, inner), outer.T))
    return rows


def _metric(graph: Graph, of: MetricMap, rows: str) -> str:
    if of.columns is None:
        rows = _normalize(graph, Normalize(), rows, (of.inputs, 0, ""))
    else:
        centre, scale = (to_numpy(part) for part in of.columns)
        rows = graph.add("Div", graph.plus(rows, -centre), graph.constant(scale))
        if of.tails is not None:
            within = graph.add("Max", graph.add("Min", rows, graph.constant(of.tails)), graph.constant(-of.tails))
            beyond = graph.add("Max", graph.times(graph.add("Abs", rows), 1 / of.tails), graph.constant(1.0))
            rows = graph.add("Add", within, graph.add("Mul", within, graph.add("Log", beyond)))
        if of.reach is not None:
            rows = graph.add("Max", graph.add("Min", rows, graph.constant(of.reach)), graph.constant(-of.reach))
    parts = [_drawn(graph, of.plain, rows)]
    for block in of.blocks:
        axes = to_numpy(block.metric.axes)
        turned = graph.add("Add", graph.times(rows, to_numpy(block.metric.base)), graph.matmul(graph.matmul(rows, axes), axes.T))
        parts.append(_drawn(graph, block.map, turned))
    return graph.add("Concat", *parts, axis=1)


def _directions(graph: Graph, of: DirectionsMap, rows: str) -> str:
    squares = graph.one_where_zero(graph.total(graph.add("Mul", rows, rows), 1))
    kept = graph.add("Gather", graph.add("Div", rows, graph.add("Sqrt", squares)), graph.constant(of.columns, np.int64), axis=1)
    return _drawn(graph, of.after, graph.matmul(kept, of.directions))


MAPS: dict[str, Callable[[Graph, Any, str], str]] = {
    "drawn": _drawn,
    "deep": _deep,
    "metric": _metric,
    "directions": _directions,
    "convolution": convolution,
}
