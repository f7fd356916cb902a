"""What a client adds of its own to a regression on a table, taken out of its targets before they are folded.

At one site values are higher throughout, at another a column counts for more. To a fit of all samples that is noise, which drowns
what sites have in common. So each client fits what the pilot's head leaves of its targets, by an offset or, where its samples are
sure of it, along all columns; and folds targets without that part, beside the targets as they are. Pilot after pilot both become
better: it is how a model with random effects is fitted, and takes no round of its own.

The part depends on which samples are the client's, so what clients have in common, and the metric, depend on the cut, by nature.
Who has no such part, as a newcomer does, gets a head of the targets as they are.

It is a wrapper: over samples before they are folded (`Common.beside`) or given to a head (`taken_out`), and over the head after
that (`OwnPart.put_back`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.features import Map, MetricMap
from gramfold.features.metric import CENTRE, PLAIN, REACHES, SCALE, TAILS
from gramfold.federation import Samples
from gramfold.heads import Head, Stream
from gramfold.methods.learning.client import of_seen
from gramfold.methods.learning.rules import RULES
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting, root_weights, together
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.solve.free_ridge import FreeRidge
from gramfold.uploads import GroupedMoments
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Common(Record, kind="own part/common"):
    """The last pilot and its head: what a client's targets are compared with. It travels on with the method's broadcasts, so that
    a part follows from samples alone, whenever they are folded, forgotten or given again."""

    pilot: Map
    weights: Array

    def part(self, train: Samples) -> Array:
        """The weights of [1, z], z being the standardised columns, from samples of a client."""
        rows = self.pilot(train.inputs)
        left = arrays.float64(arrays.like(train.targets, rows)) - rows @ arrays.like(self.weights, rows)
        return fitted(self.along(train.inputs), left, root_weights(train, rows))

    @property
    def along(self) -> MetricMap:
        """[1, z], where columns go no farther than their tails begin: far out a site has few samples, or none, and its own slopes
        are not to be trusted."""
        assert isinstance(self.pilot, MetricMap)
        ends = dict.fromkeys((TAILS, REACHES), self.pilot.tails)
        columns = {name: self.pilot.arrays[name] for name in (CENTRE, SCALE)}
        return MetricMap({PLAIN: self.pilot.plain.description, "blocks": [], **ends}, columns)

    def without(self, train: Samples, own: Array) -> Samples:
        """Samples whose targets are less a part."""
        plain = self.along(train.inputs)
        less = arrays.float64(arrays.like(train.targets, plain)) - plain @ arrays.like(own, plain)
        return Samples(train.inputs, less, train.weights, train.blocks)

    def beside(self, client: ClientData) -> ClientData:
        """A client as it is folded: its targets less its part, and beside these its targets as they are."""
        train = counting(client)
        less = self.without(train, self.part(of_seen(train))).targets
        both = arrays.concatenate([less, arrays.float64(arrays.like(train.targets, less))], axis=1)
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

    def taken_out(self, clients: Sequence[ClientData], judging: Sequence[np.ndarray]) -> tuple[list[ClientData], "OwnPart"]:
        """Clients whose targets are less their parts, and these. `judging`: which samples have no say in them."""
        trains = [counting(client) for client in clients]
        parts = [self.part(of_seen(train, ~judges)) for train, judges in zip(trains, judging, strict=True)]
        less = [self.without(train, part) for train, part in zip(trains, parts, strict=True)]
        plain, padding = self.along(together(clients)[0].inputs), Padding([train.n for train in trains])
        weights = arrays.stack(parts)
        found = [replace(client, train=train) for client, train in zip(clients, less, strict=True)]
        return found, OwnPart(self.along, weights, padding(plain) @ weights)


@dataclass(frozen=True, eq=False)
class OwnPart:
    """What clients took out of their targets, and a basis of candidates: one that shares nothing takes it back."""

    moves: ClassVar[bool] = False
    map: Map
    weights: Array
    """Of all clients (clients x features x outputs)."""
    values: Array
    """What it is at the clients' samples (clients x n x outputs)."""

    def solution(self, coordinates: Array) -> tuple[Array, float]:
        return coordinates, 0.0

    def put_back(self, heads: Sequence[Head]) -> list[Head]:
        """The clients' heads for targets less their parts, made heads for the targets."""
        own = [Stream(self.map, arrays.copy(weights)) for weights in self.weights]
        return [replace(head, streams=[*head.streams, stream]) for head, stream in zip(heads, own, strict=True)]


def fitted(plain: Array, left: Array, roots: Array | None) -> Array:
    """The weights of [1, z] that explain what is left, as far as it is sure. `roots`: of the samples' weights."""
    own = arrays.zeros((plain.shape[1], left.shape[1]), plain)
    once = arrays.zeros((len(left), 1), plain) + 1.0 if roots is None else roots**2
    n = float(once.sum())
    if n <= 2:
        return own
    mean = (once * left).sum(0) / n
    noise = (once * (left - mean) ** 2).sum(0) / (n - 1) / n
    own[0] = mean * (1 - noise / (mean**2 + noise * 1e-9 + 1e-300)).clip(0.0, 1.0)  # shrunk as Stein's estimator is
    straight = FreeRidge(plain[:, 1:], roots)
    # left out, a sample is off its offset by a little more
    least, chosen = float((once * (left - own[0]) ** 2).sum()) * (1 + 2 / n) * np.exp(-2 * RULES.own_slopes / n), None
    for gamma in RULES.own_penalties:
        fit, coordinates = straight.fit(left, gamma)
        error = float((once * (left - fit) ** 2).sum())
        if error < least * (1 - 1e-9):
            least, chosen = error, coordinates
    if chosen is not None:
        own[1:], own[0] = straight.solution(chosen)
    return own
