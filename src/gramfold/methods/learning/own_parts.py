"""What a client adds of its own to a regression on a table, taken out of its targets before they are folded.

At one site values are higher throughout, at another a column counts for more. To a fit of all samples that is noise, which drowns
what sites have in common. So each client fits what the pilot's head leaves of its targets, by an offset or, where its samples are
sure of it, along all columns; and folds targets without that part, beside the targets as they are. Pilot after pilot both become
better: it is how a model with random effects is fitted, and takes no round of its own.

The part depends on which samples are the client's, so what clients have in common, and the metric, depend on the cut, by nature.
Strangers, who have no such part, get a head of the targets as they are.
"""

from dataclasses import dataclass, replace

import numpy as np

from gramfold.features import Map, MetricMap
from gramfold.features.metric import CENTRE, PLAIN, REACHES, SCALE, TAILS
from gramfold.federation import Samples
from gramfold.heads import Head, Stream
from gramfold.methods.spaces import root_weights
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.free_ridge import FreeRidge
from gramfold.wire.record import Record

GAMMAS = np.logspace(-2, 3, 11)
"""Penalties tried, in units of the centred rows' mean squared length."""
WORTH = 10.0
"""How much more likely, as a logarithm, its left-out samples must be with a part along all columns than with an offset alone."""


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

    def without(self, train: Samples, own: Array, beside: bool = False) -> Samples:
        """Samples whose targets are less a part; `beside` these, the targets as they are."""
        plain = self.along(train.inputs)
        targets = arrays.float64(arrays.like(train.targets, plain))
        less = targets - plain @ arrays.like(own, plain)
        return Samples(train.inputs, arrays.concatenate([less, targets], axis=1) if beside else less, train.weights, train.blocks)

    def put_back(self, head: Head, own: Array) -> Head:
        """A head for the targets less a part, made one for the targets."""
        return replace(head, streams=[*head.streams, Stream(self.along, own)])


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
    least, chosen = float((once * (left - own[0]) ** 2).sum()) * (1 + 2 / n) * np.exp(-2 * WORTH / n), None
    for gamma in GAMMAS:
        fit, coordinates = straight.fit(left, float(gamma))
        error = float((once * (left - fit) ** 2).sum())
        if error < least * (1 - 1e-9):
            least, chosen = error, coordinates
    if chosen is not None:
        own[1:], own[0] = straight.solution(chosen)
    return own
