"""What a client adds of its own to a regression on a table, taken out of its targets before they are folded.

At one site values are higher throughout. To a fit of all samples that is noise, which drowns what sites have in common. So each
client takes the offset that the pilot's head leaves of its targets, as far as it is sure of it, and folds targets without it,
beside the targets as they are. Pilot after pilot both become better: it is how a model with random effects is fitted, and takes
no round of its own. (Slopes of a client's own were taken out as well, until it was seen that heads are the same without: its
candidates find them.)

The part depends on which samples are the client's, so what clients have in common, and the metric, depend on the cut, by nature.
Who has no such part, as a newcomer does, gets a head of the targets as they are.

It is a wrapper: over samples before they are folded (`Common.beside`) or given to a head (`taken_out`), over the sum (`split`),
and over the head after that (`put_back`).
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
class Common(Record, kind="own part/common"):
    """The last pilot and its head: what a client's targets are compared with. It travels on with the method's broadcasts, so that
    a part follows from samples alone, whenever they are folded, forgotten or given again."""

    pilot: Map
    weights: Array

    def part(self, train: Samples) -> np.ndarray:
        """A client's offset, one number for each target, from samples of it."""
        rows = self.pilot(train.inputs)
        left = arrays.float64(arrays.like(train.targets, rows)) - rows @ arrays.like(self.weights, rows)
        return shrunk_mean(arrays.to_numpy(left), often_of(train))

    def without(self, train: Samples, part: np.ndarray) -> Samples:
        """Samples whose targets are less a part."""
        targets = arrays.float64(train.targets)
        return Samples(train.inputs, targets - arrays.like(part, targets), train.weights, train.blocks)

    def beside(self, client: ClientData) -> ClientData:
        """A client as it is folded: its targets less its part, and beside these its targets as they are."""
        train = counting(client)
        less = self.without(train, self.part(of_seen(train))).targets
        both = arrays.concatenate([less, arrays.float64(train.targets)], axis=1)
        return replace(client, train=Samples(train.inputs, both, train.weights, train.blocks))

    @staticmethod
    def split(total: Moments | GroupedMoments) -> tuple[Any, Moments]:
        """The moments of targets less the parts, by group perhaps, and of those as they are, from the sum of what was folded."""
        outputs = total.outputs // 2
        first, last = slice(0, outputs), slice(outputs, 2 * outputs)
        if isinstance(total, Moments):
            return total.of_outputs(first), total.of_outputs(last)
        less = {group: moments.of_outputs(first) for group, moments in total.groups.items()}
        return GroupedMoments(less, total.fingerprints), total.total().of_outputs(last)

    def taken_out(self, clients: Sequence[ClientData], unseen: Sequence[np.ndarray]) -> tuple[list[ClientData], list[np.ndarray]]:
        """Clients whose targets are less their parts, and these. `unseen`: which samples the parts are not computed from."""
        trains = [counting(client) for client in clients]
        parts = [self.part(of_seen(train, ~mask)) for train, mask in zip(trains, unseen, strict=True)]
        less = [self.without(train, part) for train, part in zip(trains, parts, strict=True)]
        return [replace(client, train=train) for client, train in zip(clients, less, strict=True)], parts


def put_back(head: Head, part: np.ndarray) -> Head:
    """A head for targets less a part, made one for the targets."""
    return replace(head, offset=part if head.offset is None else head.offset + part)


def shrunk_mean(left: np.ndarray, often: np.ndarray) -> np.ndarray:
    """The mean of what is left, for each target, shrunk as far as it is not sure, as Stein's estimator is."""
    n = float(often.sum())
    if n <= 2:
        return np.zeros(left.shape[1])
    mean = np.average(left, axis=0, weights=often)
    noise = (often[:, None] * (left - mean) ** 2).sum(0) / (n - 1) / n
    return np.asarray(mean * (1 - noise / (mean**2 + noise * 1e-9 + 1e-300)).clip(0.0, 1.0))
