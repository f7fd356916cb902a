"""What analytic methods fold moments in: a feature map and the classes, and the small sums around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramfold import features
from gramfold.errors import GramfoldError
from gramfold.features import Bias, Concat, DrawnMap, FeatureMap, Linear, Map, MetricMap
from gramfold.federation import Samples, Task
from gramfold.heads import Head, Stream
from gramfold.methods.asked import Asked
from gramfold.methods.protocol import ClientData
from gramfold.moments import Implied, Labels, Moments, check_consistent, check_implied, require_same_space
from gramfold.numerics import arrays, memory
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.origin import BACKBONE, SERIES
from gramfold.solve.gcv import CAUTION
from gramfold.solve.units import Units
from gramfold.uploads import GroupedMoments
from gramfold.wire import Packet
from gramfold.wire.record import Record

MapLike = str | FeatureMap
FEWER = "give fewer columns, or a smaller map: features='bias+relu:2000', or for many columns 'raw+bias+linear@directions:512'"


def draw_map(spec: MapLike, task: Task, stream: str = "features") -> DrawnMap:
    """The map for a task. Streams with different names draw different numbers from one seed."""
    parsed = features.parse(spec) if isinstance(spec, str) else spec
    return features.draw(parsed, task.inputs, task.seed, stream)


def plain_term(task: Task, bounded: bool = False) -> str:
    """The linear features of a map that nobody named: of rows of one length where a backbone made them, or a bound is asked for;
    else the columns as they are, in units that follow from the origin or are tried."""
    return "linear" if bounded or one_unit(task) else "columns"


def one_unit(task: Task) -> bool | None:
    """Whether a task's inputs share a unit: embeddings do, a table's columns do not; None: nobody says."""
    if task.origin is None or task.origin.options.get("kind") == SERIES:
        return None
    return task.origin.kind == BACKBONE


def straight(map: Map) -> int:
    """How many of a map's features, the first ones, are an intercept and a table's columns; none of rows of one length."""
    plain = map.plain if isinstance(map, MetricMap) and map.tabular else map
    spec = plain.spec if isinstance(plain, DrawnMap) else None
    begins = isinstance(spec, Concat) and tuple(spec.parts[:2]) == (Bias(), Linear())
    return 1 + map.inputs if begins else 0


@dataclass(frozen=True)
class Space(Record, Asked, kind="space"):
    """What all clients agree on: the features, and the classes (None: regression)."""

    map: Map
    labels: Labels | None
    outputs: int | None = None
    """Classes, or continuous targets; None: not known."""
    one_unit: bool | None = None
    """Whether the inputs share a unit; None: nobody says."""

    @classmethod
    def of(cls, map: Map, task: Task) -> "Space":
        return cls(map, task.labels, task.outputs, one_unit(task))

    def with_labels(self, labels: Labels | None) -> "Space":
        """The same features, and these classes; values stay values."""
        return self if labels is None else replace(self, labels=labels, outputs=len(labels))

    def units(self, map: Map | None = None) -> Units:
        """In which a ridge on the features, or on those of another map of the inputs, penalises them."""
        map = self.map if map is None else map
        ones = map.implied.ones
        return Units(ones[0] if ones else None, map.one_unit(self.one_unit))

    @property
    def caution(self) -> float:
        """How many times a degree of freedom counts when a penalty is chosen for the features."""
        return CAUTION if self.map.tabular else 1.0

    @property
    def classification(self) -> bool:
        return self.labels is not None

    @property
    def implied(self) -> Implied:
        return self.map.implied

    def targets(self, train: Samples, like: Array) -> Array:
        """The targets as rows: one-hot for classes."""
        if self.labels is None:
            return arrays.float64(arrays.like(train.targets, like))
        return arrays.one_hot(train.targets, len(self.labels), like)

    def fold(self, client: ClientData) -> Moments:
        """The moments of a client's samples, block by block."""
        train, total = counting(client), None
        width = self.map.dim
        memory.ask(2 * 8 * width * min(train.n, width), f"client {client.name!r}: sums of {width} features", FEWER)
        for block in arrays.blocks(train.n, self.map.dim):
            rows, weights = self.map(train.inputs[block]), None if train.weights is None else train.weights[block]
            part = Moments.from_features(
                rows, train.targets[block], self.labels, self.map.fingerprint, weights=weights, copy=False
            )  # fmt: skip
            total = part if total is None else total.__iadd__(part)
        assert total is not None
        return total.settle()

    def check_packet(self, packet: Packet) -> None:
        """Raise unless a packet claims to be moments in this space. Nothing is made of it: it may claim any size."""
        claimed = packet.meta
        if claimed.get("kind") != Moments.kind:
            raise GramfoldError(f"expected moments, got {claimed.get('kind')}")
        squares, labels = packet.arrays.get("squares"), claimed.get("labels")
        outputs = squares.shape[0] if squares is not None and squares.ndim == 1 else 0
        listed = tuple(labels) if isinstance(labels, list) else labels
        require_same_space(self._moments(outputs), (claimed.get("dim"), outputs, listed, claimed.get("fingerprint")))

    def check(self, upload: Any) -> None:
        """Raise unless an upload is moments in this space, and those of some samples under this map."""
        if not isinstance(upload, Moments):
            raise GramfoldError(f"expected moments, got {upload.kind}")
        require_same_space(self._moments(upload.outputs), upload.space)
        check_consistent(upload)
        check_implied(upload, self.map.implied)

    def _moments(self, found: int) -> tuple[Any, ...]:
        """The space of moments here; with as many outputs as were found, where the number is not known."""
        known = len(self.labels) if self.labels is not None else self.outputs
        return self.map.dim, found if known is None else known, self.labels, self.map.fingerprint

    def head(
        self, weights: Array, method: str, chosen: Mapping[str, Any] | None = None, temperature: float | None = None
    ) -> Head:
        """A linear head on the features; with a temperature it gives probabilities."""
        return Head(
            [Stream(self.map, weights)], self.labels, method=method, chosen=chosen or {}, **with_temperature(temperature)
        )  # fmt: skip


@dataclass(frozen=True)
class OneGroup(Asked):
    """Moments of one group, each group with a space of its own; `known`: what holds for the features of all."""

    spaces: Sequence[Space]
    known: Implied = field(default_factory=Implied)

    @property
    def implied(self) -> Implied:
        return self.known

    def check_packet(self, packet: Packet) -> None:
        claimed = packet.meta.get("groups")
        if packet.meta.get("kind") != GroupedMoments.kind or not isinstance(claimed, dict) or len(claimed) != 1:
            raise GramfoldError("expected moments of one group")
        ((name, meta),) = claimed.items()
        if not name.isdecimal() or int(name) >= len(self.spaces):
            raise GramfoldError(f"there is no group {name}")
        part = {"squares": packet.arrays[f"{name}/squares"]} if f"{name}/squares" in packet.arrays else {}
        self.spaces[int(name)].check_packet(Packet(part, meta))

    def check(self, upload: Any) -> None:
        if not isinstance(upload, GroupedMoments) or len(upload.groups) != 1:
            raise GramfoldError("expected moments of one group")
        if upload.fingerprints != tuple(space.map.fingerprint for space in self.spaces):
            raise GramfoldError("the groups' feature maps are not those that were sent")
        for group, moments in upload.groups.items():
            self.spaces[group].check(moments)


def with_temperature(temperature: float | None) -> dict[str, Any]:
    """The arguments of a head with that temperature; None: its scores are not probabilities."""
    return {} if temperature is None else {"probabilistic": True, "temperature": temperature}


def counting(client: ClientData) -> Samples:
    """The samples of a client that count: one with a weight of zero is one that is not there."""
    train = client.train
    if train.weights is not None and not train.weights.all():
        train = train.take(np.flatnonzero(train.weights))
    if not train.n:
        raise GramfoldError(f"client {client.name!r} has no training samples; leave it out")
    return train


def blocks_of(clients: Sequence[ClientData]) -> list[np.ndarray] | None:
    """What each client's samples that count are part of, each of itself where a client does not say; None where none does."""
    trains = [counting(client) for client in clients]
    if all(train.blocks is None for train in trains):
        return None
    return [np.arange(train.n) if train.blocks is None else np.asarray(train.blocks) for train in trains]


def together(clients: Sequence[ClientData]) -> tuple[Samples, Padding]:
    """The samples of clients that count, one client's after another's."""
    trains = [counting(client) for client in clients]
    padding = Padding([train.n for train in trains])
    if len(trains) == 1:
        return trains[0], padding
    inputs, targets = (arrays.concatenate([train[i] for train in trains]) for i in range(2))
    if all(train.weights is None for train in trains):
        return Samples(inputs, targets), padding
    return Samples(inputs, targets, np.concatenate([often_of(train) for train in trains])), padding


def often_of(train: Samples) -> np.ndarray:
    """How often each sample counts: its weight, or once."""
    return np.ones(train.n) if train.weights is None else arrays.to_numpy(train.weights).astype(float)


def root_weights(train: Samples, like: Array) -> Array | None:
    """The square roots of the samples' weights as a column, None where there are none: times these, rows and targets enter a
    least-squares problem with their weights."""
    return None if train.weights is None else arrays.like(np.sqrt(train.weights)[:, None], like)


def scaled(rows: Array, roots: Array | None) -> Array:
    return rows if roots is None else rows * roots


def left_out_by_mean(targets: Array, scores: Array, leverage: float, weights: Array | float = 1.0) -> Array:
    """Approximate leave-one-out scores, from the mean leverage h of a sample of weight one.

    A residual grows by 1 / (1 - h) = 1 + h / (1 - h), and with a weight w (n x 1) by 1 + w h / (1 - h): the second term is the
    sample's leverage against the others alone, which is proportional to its weight.
    """
    return targets - (targets - scores) * (1.0 + leverage / max(1.0 - leverage, 1e-3) * weights)
