"""Learning at a client: which of its samples the metric is fitted to, and the sums over them that are asked for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramfold.features import Map, MetricMap
from gramfold.federation import Samples
from gramfold.methods.learning.rules import RULES
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting
from gramfold.moments import Moments
from gramfold.numerics import arrays, lots
from gramfold.numerics.arrays import Array
from gramfold.uploads import NamedSums

if TYPE_CHECKING:
    from gramfold.methods.learning.phase import Learning

TOOK_PART = "metric"
"""In a client's memory: that its samples are in the metric."""


def seen(train: Samples) -> np.ndarray:
    """Which samples the metric may see."""
    return lots.shares(lots.lots(train.inputs)) >= RULES.unseen


def of_seen(train: Samples, may: np.ndarray | None = None) -> Samples:
    """Those samples. `may`: which they are, where that is known."""
    return train.take(np.flatnonzero(seen(train) if may is None else may))


def unseen(clients: Sequence[ClientData], map: Map, all_split: bool = False) -> list[np.ndarray]:
    """The held-out samples of each client: those whose labels the map was not fitted to. `all_split`: of late clients, whose
    samples are all new to it, the same part."""
    split = [all_split or (map.saw_labels and (client.contributed or TOOK_PART in client.memory)) for client in clients]
    trains = [counting(client) for client in clients]
    return [~seen(train) if each else np.ones(train.n, bool) for train, each in zip(trains, split, strict=True)]


def local(client: ClientData, learning: "Learning") -> Moments | NamedSums:
    """The moments, or those of the gradients, of a client's samples that the metric may see; or their counts."""
    train = counting(client)
    if learning.counting is not None:
        return learning.counting.count(train)
    train, space = of_seen(train), learning.asked
    client.memory[TOOK_PART] = np.ones(1)
    if not train.n:
        outputs = len(space.labels) if space.labels is not None else train.targets.shape[1] if learning.weights is None else 1
        return Moments(space.map.dim, outputs, labels=space.labels, fingerprint=space.map.fingerprint)
    if learning.weights is not None:
        return _of_gradients(train, learning)
    if learning.offsets is not None:
        train = learning.offsets.without(train, learning.offsets.offset(train))
    return space.fold(replace(client, train=train))


def _of_gradients(train: Samples, learning: "Learning") -> Moments:
    """The moments of gradients, each no longer than the longest that counts."""
    total, pilot = None, learning.pilot
    assert learning.longest is not None
    assert learning.weights is not None
    for block in arrays.blocks(train.n, pilot.dim):
        inputs, weights = train.inputs[block], None if train.weights is None else train.weights[block]
        at = pilot.comparable(inputs)
        for combination, longest in zip(combinations(inputs, learning.weights.shape[1]), learning.longest, strict=True):
            rows = gradients(pilot, learning.weights, at, combination)
            squares = arrays.row_squares(rows)[:, None]
            rows = rows * (float(longest) / squares.clip(float(longest), None)) ** 0.5 if float(longest) else rows * 0.0
            nothing = arrays.zeros((len(rows), 1), rows)
            part = Moments.from_features(rows, nothing, None, pilot.fingerprint, weights=weights, copy=False)
            total = part if total is None else total.__iadd__(part)
    assert total is not None
    return total.settle()


def gradients(pilot: MetricMap, weights: Array, at: Array, combination: np.ndarray) -> Array:
    """Those of a head's outputs, combined, at comparable inputs."""
    head = arrays.like(weights, at)
    return pilot.gradients_at(at, arrays.like(combination, head) @ head.T)


def combinations(inputs: Array, outputs: int) -> Sequence[np.ndarray]:
    """Combinations of outputs (n x outputs) whose gradients' products sum, or sum on average, to those of all outputs."""
    if outputs <= RULES.all_outputs:
        return [np.broadcast_to(row, (inputs.shape[0], outputs)) for row in np.eye(outputs)]
    return [lots.signs(lots.lots(inputs), outputs)]
