"""A head as ONNX: its streams, what evidence it makes of them, its refinement, its offset, its probabilities."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.export.graph import Graph
from gramfold.export.maps import map_nodes
from gramfold.heads import Evidence, Head, Stream
from gramfold.numerics.arrays import to_numpy
from gramfold.solve.discriminant import BEYOND, UNLIKELY

PARTS = {
    "streams", "labels", "evidence", "refinement", "offset", "probabilistic", "method", "chosen", "temperature",
    "origin", "errors", "bounds", "unforeseen", "familiar",
}  # fmt: skip
"""The fields of a head that are written here, or say nothing about its scores."""


def head_nodes(graph: Graph, head: Head, rows: str) -> str:
    """n x classes scores of rows."""
    if head.kind != "linear":
        raise GramfoldError("a trained network is not exported to ONNX; use --torch")
    for field in dataclasses.fields(head):
        if field.name not in PARTS and getattr(head, field.name) not in (None, (), field.default):
            raise GramfoldError(f"this head has a part {field.name!r} that cannot be exported to ONNX yet; use --torch")
    mapped: dict[str, str] = {}
    total = _streams(graph, head.streams, rows, mapped)
    if head.evidence is not None:
        convert = EVIDENCE.get(type(head.evidence))
        if convert is None:
            raise GramfoldError(f"evidence of kind {type(head.evidence).__name__} cannot be exported to ONNX yet; use --torch")
        total = convert(graph, head.evidence, total)
    if head.refinement:
        total = graph.add("Add", total, _streams(graph, head.refinement, rows, mapped))
    if head.offset is not None:
        total = graph.plus(total, to_numpy(head.offset))
    if head.bounds is None:
        return total
    least, largest = (graph.constant(bound) for bound in to_numpy(head.bounds).T)
    return graph.add("Max", graph.add("Min", total, largest), least)


def _streams(graph: Graph, streams: Sequence[Stream], rows: str, mapped: dict[str, str]) -> str:
    """The streams' sum; `mapped` holds what maps have made of the rows already."""
    parts = []
    for stream in streams:
        key = stream.map.fingerprint
        if key not in mapped:
            mapped[key] = map_nodes(graph, stream.map, rows)
        parts.append(graph.matmul(mapped[key], to_numpy(stream.weights) * stream.scale))
    total = parts[0]
    for part in parts[1:]:
        total = graph.add("Add", total, part)
    return total


def _evidence(graph: Graph, evidence: Evidence, scores: str) -> str:
    mean, axes, centroids = (to_numpy(part) for part in vars(evidence.discriminant).values())
    whitened = graph.matmul(graph.plus(scores, -mean), axes)
    if axes.shape[1] == 1:
        likelihood = graph.times(_on_one_axis(graph, whitened, centroids[:, 0]), evidence.gaussian)
        return graph.add("Add", likelihood, graph.times(_as_probabilities(graph, scores, mean), evidence.cosine))
    sizes = (centroids**2).sum(1)
    products = graph.matmul(whitened, centroids.T)
    lengths = graph.one_where_zero(graph.add("Sqrt", graph.total(graph.add("Mul", whitened, whitened), 1)))
    roots = np.sqrt(sizes)
    cosine = graph.times(graph.add("Div", products, lengths), 1.0 / (roots + (roots == 0)))
    if evidence.bend:
        slope = graph.plus(graph.times(graph.add("Abs", cosine), -evidence.bend), 1.0)
        cosine = graph.add("Mul", cosine, slope)
    cosine = graph.times(cosine, evidence.cosine)
    return graph.add("Add", cosine, graph.times(graph.plus(products, -0.5 * sizes), evidence.gaussian))


def _as_probabilities(graph: Graph, scores: str, mean: np.ndarray) -> str:
    """See Discriminant: the log-odds of the scores against those of their mean."""
    contrast = np.array([[-0.5], [0.5]])
    share = float(np.clip(0.5 + mean @ contrast[:, 0], UNLIKELY / 10, 1 - UNLIKELY / 10))
    low, high = min(share, 4 * UNLIKELY) / 4, 1.0 - min(1.0 - share, 4 * UNLIKELY) / 4
    likely = graph.plus(graph.matmul(scores, contrast), 0.5)
    within = graph.add("Max", graph.add("Min", likely, graph.constant(high)), graph.constant(low))
    odds = graph.add(
        "Log", graph.times(graph.add("Div", within, graph.plus(graph.times(within, -1.0), 1.0)), (1 - share) / share)
    )
    beyond = graph.times(graph.add("Sub", likely, within), BEYOND)
    return graph.matmul(graph.add("Add", odds, beyond), contrast.T)


def _on_one_axis(graph: Graph, whitened: str, centroids: np.ndarray) -> str:
    """See Discriminant: logistic distributions, each with the wider one's tail beyond its centroid."""
    distances = np.abs(centroids)
    variances = (1.0 + distances * distances.sum()) / (1.0 + 2.0 * distances.prod())
    scales = np.sqrt(3.0 * variances) / math.pi
    deviations = graph.plus(whitened, -centroids)
    beyond = graph.add("Greater", graph.times(deviations, np.sign(centroids)), graph.constant(0.0))
    spread = graph.add("Where", beyond, graph.constant(scales.max() + 0 * scales), graph.constant(scales))
    halves = graph.times(graph.add("Abs", graph.add("Div", deviations, spread)), 0.5)
    tail = graph.add("Log", graph.plus(graph.add("Exp", graph.times(halves, -2.0)), 1.0))
    log_cosh = graph.plus(graph.add("Add", halves, tail), -math.log(2.0))
    return graph.plus(graph.times(log_cosh, -2.0), -np.log(scales))


EVIDENCE: dict[type, Callable[[Graph, Any, str], str]] = {Evidence: _evidence}
