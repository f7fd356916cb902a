"""Learning at a client: which of its samples may have a say, and the sums over them that are asked for."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gramfold.features import Map, MetricMap
from gramfold.federation import Samples
from gramfold.methods.learning.own_parts import Common
from gramfold.methods.learning.state import State
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting
from gramfold.moments import Moments
from gramfold.numerics import arrays, lots
from gramfold.numerics.arrays import Array
from gramfold.uploads import NamedSums

UNSEEN = 0.35
"""The share of samples that the metric never sees: a third of them judges as well as all, and the metric loses nothing by it."""
FEW_OUTPUTS = 10
"""Up to so many outputs gradients are summed over all of them; beyond, one random combination for every sample does as well."""
TOOK_PART = "metric"
"""In a client's memory: that its samples are in the metric."""


def seen(train: Samples) -> np.ndarray:
    """Which samples the metric may see."""
    return lots.shares(lots.lots(train.inputs)) >= UNSEEN


def local(client: ClientData, learning: State) -> Moments | NamedSums:
    """The moments, or those of the gradients, of a client's samples that the metric may see; or their counts."""
    train = counting(client)
    if learning.counting is not None:
        return learning.counting.count(train)
    train = train.take(np.flatnonzero(seen(train)))
    client.memory[TOOK_PART] = np.ones(1)
    space = learning.asked
    if not train.n:
        outputs = len(space.labels) if space.labels is not None else train.targets.shape[1] if learning.weights is None else 1
        return Moments(space.map.dim, outputs, labels=space.labels, fingerprint=space.map.fingerprint)
    if learning.weights is None:
        if learning.common is not None:
            train = learning.common.without(train, learning.common.part(train))
        return space.fold(replace(client, train=train))
    total = None
    for block in arrays.blocks(train.n, learning.pilot.dim):
        inputs, weights = train.inputs[block], None if train.weights is None else train.weights[block]
        at = learning.pilot.comparable(inputs)
        assert learning.longest is not None
        for combination, longest in zip(combinations(inputs, learning.weights.shape[1]), learning.longest, strict=True):
            rows = gradients(learning.pilot, learning.weights, at, combination)
            squares = arrays.row_squares(rows)[:, None]
            rows = rows * (float(longest) / squares.clip(float(longest), None)) ** 0.5 if float(longest) else rows * 0.0
            nothing = arrays.zeros((len(rows), 1), rows)
            part = Moments.from_features(rows, nothing, None, space.map.fingerprint, weights=weights, copy=False)
            total = part if total is None else total.__iadd__(part)
    assert total is not None
    return total.settle()


def gradients(pilot: MetricMap, weights: Array, at: Array, combination: np.ndarray) -> Array:
    """Those of a head's outputs, combined, at comparable inputs."""
    head = arrays.like(weights, at)
    return pilot.gradients_at(at, arrays.like(combination, head) @ head.T)


def combinations(inputs: Array, outputs: int) -> Sequence[np.ndarray]:
    """Combinations of outputs (n x outputs) whose gradients' products sum, or sum on average, to those of all outputs."""
    if outputs <= FEW_OUTPUTS:
        return [np.broadcast_to(row, (inputs.shape[0], outputs)) for row in np.eye(outputs)]
    return [lots.signs(lots.lots(inputs), outputs)]


def unseen(client: ClientData, map: Map, train: Samples) -> np.ndarray | None:
    """Which of a client's samples the map has not seen, with their labels; None: all."""
    if not map.saw_labels or not (client.contributed or TOOK_PART in client.memory):
        return None
    return ~seen(train)


def own_part(common: Common, train: Samples) -> Array:
    """A client's own part, from samples that the metric may see: the others judge."""
    return common.part(train.take(np.flatnonzero(seen(train))))


def parts_of(common: Common, trains: Sequence[Samples]) -> list[Array]:
    """The same of several clients."""
    return [own_part(common, train) for train in trains]
