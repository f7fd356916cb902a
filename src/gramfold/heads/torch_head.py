"""TorchHead: a head that is a trained network. Its scores are the logits of a softmax, so they are log-probabilities."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gramfold import networks
from gramfold.errors import GramfoldError
from gramfold.heads import Head, Stream
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

    def forward(self, inputs: Array) -> Array:
        """n x classes logits: NumPy for NumPy inputs, torch otherwise."""
        arrays.require_torch()
        import torch

        if arrays.is_sparse(inputs):
            raise GramfoldError(f"{self._whose} is sparse, which a trained network does not take; use .toarray()")
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
        meta = {
            "head": self.kind, "network": {**self.network, "pretrained": None},
            "labels": None if self.labels is None else list(self.labels),
            "method": self.method, "chosen": json.loads(json.dumps(dict(self.chosen))),
        }  # fmt: skip
        return Packet(parts, meta)

    @classmethod
    def assemble(cls, packet: Packet) -> "TorchHead":
        meta = packet.meta
        labels = None if meta["labels"] is None else tuple(meta["labels"])
        return cls(labels=labels, method=meta["method"], chosen=meta["chosen"], network=meta["network"], state=packet.arrays)

    @classmethod
    def unpack(cls, packet: Packet) -> "TorchHead":
        try:
            model = networks.build(dict(packet.meta["network"]))
            head = cls.assemble(packet)
        except (KeyError, TypeError) as error:
            raise GramfoldError(f"not a gramfold head: {error}") from None
        for name, tensor in model.full_state({}).items():
            given = packet.arrays.get(name)
            if given is None or given.shape != tuple(tensor.shape) or not np.isfinite(given).all():
                raise GramfoldError(f"the head's weights {name} are missing, of the wrong shape or not finite")
        return head
