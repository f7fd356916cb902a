"""PACE on several labels, and on ordered classes: a calibrated head of two classes for each column, on one pooled ridge.

    server     S + P = T T', W = (S + P)^-1 M for the columns (1, y_1, ..., y_L), one penalty by GCV over all
               of label l: the weights (w_0 - w_l, w_l), its count, the discriminant of its left-out scores
    client     PACE of two classes for each label, by these; T, W, and the features are those of all

Weights of a ridge are linear in the targets, so those of "has it not" are those of 1 less those of "has it".
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.federation import Samples
from gramfold.heads import Head
from gramfold.heads.ordered import OrderedClasses
from gramfold.heads.several import SeveralLabels
from gramfold.methods.pace import PACE
from gramfold.methods.pace.broadcast import Streams
from gramfold.methods.pace.server import Pooling, solved, units_of
from gramfold.methods.protocol import ClientData
from gramfold.methods.targets.columns import OnColumns
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.wire.record import Record

NO, YES = 0, 1


@dataclass(frozen=True)
class Calibrated(Record, kind="targets/calibrated"):
    """What clients are sent once for all labels, and of each label its count and its discriminant."""

    inner: Streams
    counts: Array
    """Of all samples that count, and of those that have each label."""
    discriminants: Sequence[Discriminant]

    @property
    def chosen(self) -> Any:
        return self.inner.chosen

    def pooled_root(self, along: Array) -> Array | None:
        return self.inner.pooled_root(along)

    def of(self, label: int) -> Streams:
        """What PACE's clients would be sent if there were no other label."""
        joint = solved(self.inner.pooled)
        counts = np.asarray(arrays.to_numpy(self.counts), float)
        pooled = replace(
            joint, weights=two(joint.weights, label), discriminant=self.discriminants[label], spread=None,
            counts=np.array([counts[0] - counts[1 + label], counts[1 + label]]),
        )  # fmt: skip
        return replace(self.inner, space=self.inner.space.with_labels((NO, YES)), pooled=pooled)


def two(columns: Array, label: int) -> Array:
    """Of columns for 1 and for each label those of "has it not" and "has it"."""
    has = columns[:, 1 + label]
    return arrays.stack([columns[:, 0] - has, has]).T


@dataclass(frozen=True)
class OnLabels(OnColumns):
    """Columns: ones, and whether a sample has each label."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many labels."""

    @property
    def outputs(self) -> int:
        return 1 + self.count

    @abstractmethod
    def marks(self, targets: np.ndarray) -> np.ndarray:
        """Whether each sample has each label."""

    def columns(self, targets: np.ndarray) -> np.ndarray:
        return np.concatenate([np.ones((len(targets), 1)), self.marks(targets)], axis=1)

    def solved(self, total: Moments, broadcast: Streams) -> Calibrated:
        method = self.inner
        assert isinstance(method, PACE)
        space = broadcast.space
        make = Pooling(method.penalty, method._regime, broadcast.seed, units_of(space), space.caution)
        ridge = make.ridge(total)
        pooled = make.of(ridge)
        counts = np.clip(arrays.to_numpy(total.squares), 0.0, None)  # sums of squares of 0 and 1 are sums
        counts = np.minimum(counts, counts[0])
        found = []
        for label in range(self.count):
            of_both = np.array([counts[0] - counts[1 + label], counts[1 + label]])
            weights, cross = two(ridge.weights, label), two(total.cross, label)
            found.append(Discriminant.from_moments(weights, cross, ridge.penalty, of_both, ridge.leverage))
        return Calibrated(replace(broadcast, pooled=pooled), counts, found)

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Calibrated) -> list[Head]:
        marked = [self.marks(np.asarray(arrays.to_numpy(client.train.targets))).astype(np.int64) for client in clients]
        by_label = []
        for label in range(self.count):
            of_label = [
                replace(client, train=Samples(client.train.inputs, marks[:, label], client.train.weights, client.train.blocks))
                for client, marks in zip(clients, marked, strict=True)
            ]
            by_label.append(self.inner.personalize_many(of_label, broadcast.of(label)))
        return [self.together(parts) for parts in zip(*by_label, strict=True)]

    def global_head(self, broadcast: Calibrated) -> Head | None:
        heads = [self.inner.global_head(broadcast.of(label)) for label in range(self.count)]
        return self.together([head for head in heads if head is not None])

    @abstractmethod
    def together(self, parts: Sequence[Head]) -> Head:
        """One head of those of all labels."""


@dataclass(frozen=True)
class Several(OnLabels):
    """Any number of labels a sample."""

    @property
    def count(self) -> int:
        return len(self.names)

    def marks(self, targets: np.ndarray) -> np.ndarray:
        return targets

    def together(self, parts: Sequence[Head]) -> Head:
        thresholds = tuple(float(part.chosen.get("f1_from", 0.0)) for part in parts)
        return SeveralLabels(
            labels=self.names,
            probabilistic=True,
            method=self.name,
            chosen=of_all(parts),
            parts=tuple(parts),
            thresholds=thresholds,
        )


@dataclass(frozen=True)
class Ordered(OnLabels):
    """Classes that have an order, the least first: the labels are "above this class", for each but the last."""

    @property
    def count(self) -> int:
        return len(self.names) - 1

    def marks(self, targets: np.ndarray) -> np.ndarray:
        return (targets[:, None] > np.arange(self.count)).astype(float)

    def together(self, parts: Sequence[Head]) -> Head:
        return OrderedClasses(labels=self.names, probabilistic=True, method=self.name, chosen=of_all(parts), parts=tuple(parts))


def of_all(parts: Sequence[Head]) -> dict[str, float]:
    """What was chosen, as the mean over labels; shares and weights alone, not what a part says of its own accuracy."""
    keys = [key for key in parts[0].chosen if "leave_one_out" not in key and key not in ("f1_from", "group")]
    values = {key: [part.chosen[key] for part in parts if key in part.chosen] for key in keys}
    return {key: float(np.mean(found)) for key, found in values.items() if all(isinstance(one, int | float) for one in found)}
