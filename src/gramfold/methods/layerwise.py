"""Base of methods that solve a network layer by layer: one round per layer, in which the moments of its patches are folded."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.convolution import ConvolutionMap, Layer, layers, parse, solve_layer
from gramfold.errors import MethodError
from gramfold.federation import Samples, Task
from gramfold.methods.asked import Asked
from gramfold.methods.protocol import Method
from gramfold.methods.spaces import Space
from gramfold.moments import Moments
from gramfold.numerics import arrays

DEFAULT = "contrast+conv:20:6:200+split:0.4+grid:2"
"""The default network."""


@dataclass(frozen=True)
class Layerwise(Method):
    """`network`: a preset ("lenet" and "five" are like FedACnnL's) or terms joined by `+`. `penalty`: a ridge penalty; None: by
    GCV."""

    input_kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    penalties: ClassVar[tuple[str, ...]] = ("penalty",)

    network: str = DEFAULT
    penalty: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        layers(self.network)

    @property
    def rounds(self) -> int:
        return layers(self.network) + 1

    def first(self, task: Task) -> Space:
        """The network, no layer solved yet."""
        if len(task.shape) != 3:
            raise MethodError(
                f"{self.name} takes images (n x height x width x channels); this data holds rows of {task.inputs} numbers"
            )
        if task.labels is None:
            raise MethodError(f"{self.name} classifies; for regression use another method")
        arrays.require_torch()
        parse(self.network, task.shape)
        return Space.of(ConvolutionMap.begin(self.network, task.shape, task.seed), task)

    def asked(self, broadcast: Any) -> Asked:
        return asked(broadcast.space)


def network_of(space: Space) -> ConvolutionMap:
    assert isinstance(space.map, ConvolutionMap)
    return space.map


def asked(space: Space) -> Space:
    """What this round's moments are in: those of a layer with solved filters have the labels' codes for targets."""
    network = network_of(space)
    return replace(space, labels=None, outputs=network.next.solved) if network.coded else space


def fold_patches(space: Space, train: Samples) -> Moments:
    """The moments of a client's patches under the next layer, block by block: with the codes of their images' labels, or with the
    labels themselves."""
    network, classes = network_of(space), len(space.labels or ())
    encoder = network.codes(classes)
    labels = None if encoder is not None else space.labels
    total = Moments(
        network.dim, classes if encoder is None else network.next.solved, labels=labels, fingerprint=network.fingerprint,
        like=arrays.zeros((0,), train.inputs),
    )  # fmt: skip
    labelled = arrays.to_numpy(train.targets)
    for block in network.blocks(len(labelled)):
        rows, some = network.patches(train.inputs[block]), labelled[block]
        if encoder is None:
            targets = np.repeat(some, network.next.positions)
        else:
            targets = arrays.like(encoder[some].reshape(-1, network.next.solved), rows)
        total += Moments.from_features(rows, targets, labels, network.fingerprint, copy=False)
    return total.settle()


def with_next_layer(space: Space, total: Moments, seed: int, penalty: float | None) -> tuple[Space, Layer]:
    """The network with its next layer solved from the folded moments of its patches, and that layer."""
    network = network_of(space)
    layer = solve_layer(total, network.next, seed, len(network.arrays), penalty)
    return replace(space, map=network.grown(layer.weights)), layer
