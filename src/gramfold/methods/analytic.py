"""What the analytic methods share: a frozen feature map, and one round in which moments are folded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold import features, moments
from gramfold.errors import GramfoldError
from gramfold.features import DrawnMap, FeatureMap, Map
from gramfold.federation import Samples, Task
from gramfold.heads import Head, Stream
from gramfold.methods.protocol import ClientData, Method
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import choose_penalty
from gramfold.solve.ridge import Factor, factorise
from gramfold.wire import Packet

MapLike = str | FeatureMap
FOLDED = "folded"
"""In a client's memory: its samples are part of the sum, so to be honest about them they must be left out again."""


def draw_map(spec: MapLike, task: Task, stream: str = "features") -> DrawnMap:
    """The map for a task. Streams of different names get different numbers from one seed."""
    parsed = features.parse(spec) if isinstance(spec, str) else spec
    return features.draw(parsed, task.inputs, task.seed, stream)


def described_map(broadcast: Packet, name: str = "features") -> DrawnMap:
    """The map that a broadcast tells of."""
    return features.draw_described(broadcast.meta[name])


def labels_of(broadcast: Packet) -> moments.Labels | None:
    labels = broadcast.meta["labels"]
    return None if labels is None else tuple(labels)


def target_rows(train: Samples, broadcast: Packet, like: Array) -> Array:
    """The targets as rows: one-hot for classes."""
    if broadcast.meta["labels"] is None:
        return arrays.float64(arrays.like(train.targets, like))
    return arrays.one_hot(train.targets, len(broadcast.meta["labels"]), like)


def factor_of(broadcast: Packet) -> Factor:
    """The factor of the pooled system that a broadcast brings."""
    return Factor(broadcast["factor"], broadcast.meta["fallback"])


def extend(broadcast: Packet, parts: Mapping[str, Array], meta: Mapping[str, Any] | None = None, triangular: str = "") -> Packet:
    """The broadcast with other arrays and more metadata."""
    return Packet(parts, {**broadcast.meta, **(meta or {})}, frozenset(filter(None, [triangular])))


def check_space(upload: Any, phi: Map, labels: moments.Labels | None) -> None:
    """Raise unless the upload is moments of this map's features, with these classes (None: with values)."""
    if not isinstance(upload, Moments):
        raise GramfoldError(f"moments were expected, not {upload.kind}")
    outputs = upload.outputs if labels is None else len(labels)
    Moments(phi.dim, outputs, labels=labels, fingerprint=phi.fingerprint).require_same_space(upload)


@dataclass(frozen=True)
class Analytic(Method):
    """One round: every client sends the moments of its mapped features."""

    features: MapLike = "bias+linear"

    def begin(self, task: Task) -> Packet:
        return Packet({}, {"features": draw_map(self.features, task).description, "labels": task.labels and list(task.labels)})

    def map(self, broadcast: Packet) -> Map:
        """The feature map whose moments are folded."""
        return described_map(broadcast)

    def local(self, client: ClientData, broadcast: Packet) -> Moments:
        phi, labels = self.map(broadcast), labels_of(broadcast)
        inputs, targets = client.train
        total = None
        for block in arrays.blocks(len(inputs), phi.dim):
            part = Moments.from_features(phi(inputs[block]), targets[block], labels, phi.fingerprint, copy=False)
            total = part if total is None else total.__iadd__(part)
        if total is None:
            raise GramfoldError(f"client {client.name!r} has no training samples; leave it out")
        client.memory[FOLDED] = np.array(1)
        return total.settle()

    def check(self, upload: Any, broadcast: Packet) -> None:
        check_space(upload, self.map(broadcast), labels_of(broadcast))

    def parameters(self) -> Mapping[str, Any]:
        given = super().parameters()
        return {key: value.describe() if isinstance(value, FeatureMap) else value for key, value in given.items()}

    def shared_head(self, broadcast: Packet, weights: Array) -> Head:
        return Head([Stream(self.map(broadcast), weights)], labels_of(broadcast), method=self.name)


def solve_pooled(total: Moments, penalty: float | None) -> tuple[float, Factor]:
    """The penalty (by GCV where None) and the factorised system gram + penalty I of folded moments."""
    if penalty is None:
        penalty = choose_penalty(total.lower_gram, total.cross, float(total.squares.sum()), total.n)
    return penalty, factorise(total.lower_gram, penalty)
