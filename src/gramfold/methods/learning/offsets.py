"""A client's own offset in a regression on a table, subtracted from its targets before they are folded.

At one site values are higher throughout. To a fit of all samples that is noise, which drowns what sites have in common. So each
client estimates the offset that the pilot's head leaves in its targets, shrunk by how uncertain it is, and folds targets less
the offset beside the targets as they are. Pilot after pilot, both get better: this is how a model with random effects is fitted,
and it takes no round of its own. (Clients' own slopes were subtracted as well, until it turned out that heads are the same
without: candidates find them.)

An offset depends on which samples are the client's, so the shared model, and the metric, depend on the cut. A client without an
offset, as a newcomer is, gets a head of the targets as they are.

It wraps samples before they are folded (`ClientOffsets.beside`) or given to a head (`subtracted`), the sum (`split`), and the
head after that (`added_back`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.features import Map
from gramfold.federation import Samples
from gramfold.heads import Head
from gramfold.methods.learning.client import of_seen
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting, often_of
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.uploads import GroupedMoments
from gramfold.wire.record import Record


@dataclass(frozen=True)
class ClientOffsets(Record, kind="learning/offsets"):
    """The last pilot and its head, from whose predictions offsets are estimated. It travels on with the method's broadcasts, so
    that an offset follows from samples alone, whenever they are folded, forgotten or given again."""

    pilot: Map
    weights: Array

    def offset(self, train: Samples) -> np.ndarray:
        """A client's offset, one number for each target, from samples of it."""
        rows = self.pilot(train.inputs)
        left = arrays.float64(arrays.like(train.targets, rows)) - rows @ arrays.like(self.weights, rows)
        return shrunk_mean(arrays.to_numpy(left), often_of(train))

    def without(self, train: Samples, offset: np.ndarray) -> Samples:
        """Samples whose targets are less an offset."""
        targets = arrays.float64(train.targets)
        return Samples(train.inputs, targets - arrays.like(offset, targets), train.weights, train.blocks)

    def beside(self, client: ClientData) -> ClientData:
        """A client as it is folded: its targets less its offset, and beside these its targets as they are."""
        train = counting(client)
        less = self.without(train, self.offset(of_seen(train))).targets
        both = arrays.concatenate([less, arrays.float64(train.targets)], axis=1)
        return replace(client, train=Samples(train.inputs, both, train.weights, train.blocks))

    @staticmethod
    def split(total: Moments | GroupedMoments) -> tuple[Any, Moments]:
        """The moments of targets less the offsets, by group perhaps, and of targets as they are, from the folded sum."""
        outputs = total.outputs // 2
        first, last = slice(0, outputs), slice(outputs, 2 * outputs)
        if isinstance(total, Moments):
            return total.of_outputs(first), total.of_outputs(last)
        less = {group: moments.of_outputs(first) for group, moments in total.groups.items()}
        return GroupedMoments(less, total.fingerprints), total.total().of_outputs(last)

    def subtracted(
        self, clients: Sequence[ClientData], unseen: Sequence[np.ndarray]
    ) -> tuple[list[ClientData], list[np.ndarray]]:
        """Clients whose targets are less their offsets, and these. `unseen`: which samples offsets are not estimated from."""
        trains = [counting(client) for client in clients]
        offsets = [self.offset(of_seen(train, ~mask)) for train, mask in zip(trains, unseen, strict=True)]
        less = [self.without(*each) for each in zip(trains, offsets, strict=True)]
        return [replace(client, train=train) for client, train in zip(clients, less, strict=True)], offsets


def added_back(head: Head, offset: np.ndarray) -> Head:
    """A head for targets less an offset, made one for the targets."""
    return replace(head, offset=offset if head.offset is None else head.offset + offset)


def shrunk_mean(left: np.ndarray, often: np.ndarray) -> np.ndarray:
    """The mean of residuals, for each target, shrunk by its standard error, as in Stein's estimator."""
    n = float(often.sum())
    if n <= 2:
        return np.zeros(left.shape[1])
    mean = np.average(left, axis=0, weights=often)
    noise = (often[:, None] * (left - mean) ** 2).sum(0) / (n - 1) / n
    return np.asarray(mean * (1 - noise / (mean**2 + noise * 1e-9 + 1e-300)).clip(0.0, 1.0))
