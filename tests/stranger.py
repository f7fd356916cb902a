"""A method as somebody outside gramfold would write it: nearest class mean, in one round."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramfold.extend import ClientData, Head, Map, Method, NamedSums, Record, Stream, Task, draw
from gramfold.features import Linear
from gramfold.numerics.arrays import to_numpy


@dataclass(frozen=True)
class Means(Record, kind="stranger/means"):
    map: Map
    labels: tuple[int | str, ...]
    means: Any = None


@dataclass(frozen=True)
class ClassMeans(Method):
    """`own`: how many times a client's own samples count in its class means."""

    name: ClassVar[str] = "class-means"
    summary: ClassVar[str] = "the class whose mean is nearest"
    paper: ClassVar[str] = "folklore"

    own: float = 1.0

    def begin(self, task: Task) -> Means:
        assert task.labels is not None
        return Means(draw(Linear(), task.inputs, task.seed), task.labels)

    def local(self, client: ClientData, broadcast: Means) -> NamedSums:
        rows, codes = broadcast.map(client.train.inputs), to_numpy(client.train.targets)
        members = np.eye(len(broadcast.labels))[codes]
        return NamedSums({"sums": members.T @ rows, "counts": members.sum(0)})

    def aggregate(self, total: NamedSums, broadcast: Means) -> Means:
        means = total["sums"] / np.maximum(total["counts"], 1)[:, None]
        return Means(broadcast.map, broadcast.labels, means)

    def personalize(self, client: ClientData, broadcast: Means) -> Head:
        mine, shared = self.local(client, broadcast), broadcast.means
        weight = self.own * mine["counts"][:, None]
        return self._head(broadcast, (shared + self.own * mine["sums"]) / (1 + weight))

    def global_head(self, broadcast: Means) -> Head:
        return self._head(broadcast, broadcast.means)

    def _head(self, broadcast: Means, means: np.ndarray) -> Head:
        """-|x - mean|^2 / 2 up to what all classes share."""
        stream = Stream(broadcast.map, np.ascontiguousarray(means.T))
        return Head([stream], broadcast.labels, offset=-0.5 * (means**2).sum(1), method=self.name)
