"""What methods share that solve a network layer by layer: a round for each, in which the moments of its patches are folded."""

from typing import Any

import numpy as np

from gramfold.convolution import ConvolutionMap, parse
from gramfold.errors import GramfoldError
from gramfold.federation import Samples, Task
from gramfold.methods.analytic import labels_of
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet

DEFAULT = "contrast+conv:20:6:200+split:0.4+grid:2"
"""The network unless another is given."""


def first_word(name: str, network: str, task: Task) -> dict[str, Any]:
    """What a method of this name tells everybody about its network before the first round."""
    if len(task.shape) != 3:
        raise GramfoldError(f"{name} takes images (n x height x width x channels); this data holds rows of {task.inputs} numbers")
    if task.labels is None:
        raise GramfoldError(f"{name} classifies; for regression use another method")
    arrays.require_torch()
    parse(network, task.shape)
    described = {"network": network, "shape": list(task.shape), "seed": task.seed}
    return {"features": described, "labels": list(task.labels), "layers": 0}


def network_of(broadcast: Packet, prefix: str = "") -> ConvolutionMap:
    """The network as far as a broadcast brings it."""
    names = [f"layer.{number}" for number in range(broadcast.meta["layers"])]
    return ConvolutionMap(broadcast.meta["features"], {name: broadcast[prefix + name] for name in names})


def fold_patches(network: ConvolutionMap, train: Samples, broadcast: Packet) -> Moments:
    """The moments of a client's patches under the next layer, each with the label of its image, block by block."""
    total = Moments(
        network.dim, len(broadcast.meta["labels"]), labels=labels_of(broadcast), fingerprint=network.fingerprint,
        like=arrays.zeros((0,), train.inputs),
    )  # fmt: skip
    codes = arrays.to_numpy(train.targets)
    for block in network.blocks(len(codes)):
        rows, repeated = network.patches(train.inputs[block]), np.repeat(codes[block], network.next.positions)
        total += Moments.from_features(rows, repeated, total.labels, network.fingerprint, copy=False)
    return total.settle()


def with_layer(broadcast: Packet, weights: dict[str, Array]) -> Packet:
    """The broadcast with a further layer's weights, under their names; earlier ones need not travel again."""
    known = broadcast.arrays
    meta = {**broadcast.meta, "layers": broadcast.meta["layers"] + 1}
    return Packet({**known, **weights}, meta, known=frozenset(known))
