"""TorchHead: a head that is a trained network. Its scores are the logits of a softmax, so they are log-probabilities."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gramfold import networks
from gramfold.errors import MALFORMED, HeadError
from gramfold.heads import Head, Mapped, Stream
from gramfold.heads.packing import described, description
from gramfold.heads.soundness import require_description
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet

BATCH = 512
"""Samples that go through the network at a time."""


@dataclass(frozen=True, repr=False)
class TorchHead(Head):
    """A network, described, with its weights; the same face as every head."""

    kind: ClassVar[str] = "torch"

    streams: tuple[Stream, ...] = ()
    labels: tuple[int | str, ...] | None = None
    probabilistic: bool = True
    network: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Array] = field(default_factory=dict)
    """The trained tensors, by name."""

    @property
    def inputs(self) -> int:
        return int(np.prod(self.network["shape"]))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.network["shape"])

    def forward(self, inputs: Array, mapped: Mapped | None = None) -> Array:
        """n x classes logits: NumPy for NumPy inputs, torch otherwise."""
        arrays.require_torch()
        import torch

        if arrays.is_sparse(inputs):
            raise HeadError(f"{self.whose} is sparse, which a trained network does not take; use .toarray()")
        x = torch.as_tensor(inputs)
        model = networks.build(dict(self.network), str(x.device))
        state = {name: torch.as_tensor(tensor, device=x.device) for name, tensor in self.state.items()}
        with torch.no_grad():
            parts = [model(state, model.prepare(x[i : i + BATCH], state)) for i in range(0, max(len(x), 1), BATCH)]
        # a network that diverged knows nothing, and says so by scoring all classes alike
        logits = torch.cat(parts).nan_to_num(nan=0.0, posinf=1e30, neginf=-1e30)
        return arrays.like(logits, inputs)

    def pack(self) -> Packet:
        """Everything, frozen weights included, so that the file needs nothing else."""
        model = networks.build(dict(self.network))
        parts = {name: arrays.to_numpy(tensor) for name, tensor in model.full_state(self.state).items()}
        return Packet(parts, {"network": {**self.network, "pretrained": None}, **description(self)})

    @classmethod
    def assemble(cls, packet: Packet) -> "TorchHead":
        return cls(network=packet.meta["network"], state=packet.arrays, **described(packet.meta))

    @classmethod
    def unpack(cls, packet: Packet) -> "TorchHead":
        """The head in a packet, checked: the network that it describes is made once there are weights for all of it."""
        try:
            head = cls.assemble(packet)
            require_description(head)
            network = dict(head.network)
            if network.get("pretrained"):
                raise HeadError("a head's file must hold all of its weights, and this one names another file")
            if not (
                all(type(side) is int and side > 0 for side in head.shape)
                and type(network["seed"]) is int
                and network["seed"] >= 0
            ):
                raise ValueError("its network's shape or seed is no whole number")
            wanted = networks.shapes(network, len(packet.arrays))
            classes = network["classes"] if head.labels is None else len(head.labels)
        except MALFORMED as error:
            raise HeadError(f"not a gramfold head: {error}") from None
        if network["classes"] != classes or wanted.keys() != packet.arrays.keys():
            raise HeadError("the head's labels or weights are not those of its network")
        for name, shape in wanted.items():
            given = packet.arrays[name]
            if given.shape != shape or given.dtype != np.float32 or not np.isfinite(given).all():
                raise HeadError(f"the head's weights {name} are of the wrong shape or not finite")
        return head
