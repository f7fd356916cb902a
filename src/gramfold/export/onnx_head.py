"""A head as ONNX: its streams, what evidence it makes of them, its refinement, its offset, its probabilities."""

import dataclasses
from collections.abc import Sequence
from functools import cached_property, partial, reduce

from gramfold.errors import HeadError
from gramfold.export.graph import Graph
from gramfold.export.maps import map_nodes
from gramfold.heads import Head, Stream
from gramfold.numerics.arrays import to_numpy
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.evidence import Evidence

PARTS = {
    "streams", "labels", "evidence", "refinement", "offset", "probabilistic", "method", "chosen", "temperature",
    "origin", "errors", "bounds", "unforeseen", "familiar",
}  # fmt: skip
"""The fields of a head that are written here, or say nothing about its scores."""


def head_nodes(graph: Graph, head: Head, rows: str) -> str:
    """n x classes scores of rows."""
    if head.kind != "linear":
        raise HeadError("a trained network is not exported to ONNX; use --torch")
    for field in dataclasses.fields(head):
        if field.name not in PARTS and getattr(head, field.name) not in (None, (), field.default):
            raise HeadError(f"this head has a part {field.name!r} that cannot be exported to ONNX yet; use --torch")
    mapped: dict[str, str] = {}
    total = _streams(graph, head.streams, rows, mapped)
    if head.evidence is not None:
        total = _evidence(graph, head.evidence, total)
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


class PlaceNodes:
    """The parts of a `Place`, as nodes that are added once they are asked for; what no sample changes, as numbers."""

    def __init__(self, graph: Graph, discriminant: Discriminant, scores: str) -> None:
        self.graph, self.scores = graph, scores
        self.mean, self.axes, self.centroids = (to_numpy(part) for part in vars(discriminant).values())
        self.squares = (self.centroids**2).sum(1)

    @cached_property
    def whitened(self) -> str:
        return self.graph.matmul(self.graph.plus(self.scores, -self.mean), self.axes)

    @cached_property
    def products(self) -> str:
        return self.graph.matmul(self.whitened, self.centroids.T)

    @cached_property
    def lengths(self) -> str:
        return self.graph.total(self.graph.add("Mul", self.whitened, self.whitened), 1)


def _evidence(graph: Graph, evidence: Evidence, scores: str) -> str:
    place = PlaceNodes(graph, evidence.discriminant, scores)
    parts = [
        graph.times(term.to_onnx(graph, place), weight) for term, weight in zip(evidence.terms, evidence.weights, strict=True)
    ]
    return reduce(partial(graph.add, "Add"), parts)
