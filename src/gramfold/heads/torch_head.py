"""TorchHead: a head that is a trained network. Its scores are the logits of a softmax, so they are log-probabilities."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gramfold import networks
from gramfold.errors import MALFORMED, GramfoldError
from gramfold.heads import Head, Stream
from gramfold.heads.head import Mapped, list_of, origin_of
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
            "unforeseen": self.unforeseen, **self._origin_meta(), **({"ordered": True} if self.ordered else {}),
        }  # fmt: skip
        return Packet(parts, meta)

    @classmethod
    def assemble(cls, packet: Packet) -> "TorchHead":
        meta = packet.meta
        labels = None if meta["labels"] is None else tuple(list_of(meta["labels"]))
        return cls(
            labels=labels, method=meta["method"], chosen=meta["chosen"], origin=origin_of(meta), network=meta["network"],
            state=packet.arrays, unforeseen=float(meta.get("unforeseen", 0.0)), ordered=meta.get("ordered") is True,
        )  # fmt: skip

    @classmethod
    def unpack(cls, packet: Packet) -> "TorchHead":
        """The head in a packet, checked: the network that it describes is made once there are weights for all of it."""
        try:
            head = cls.assemble(packet)
            head._check_words()
            head._check_floor()
            described = dict(head.network)
            if described.get("pretrained"):
                raise GramfoldError("a head's file must hold all of its weights, and this one names another file")
            if not (
                all(type(side) is int and side > 0 for side in head.shape)
                and type(described["seed"]) is int
                and described["seed"] >= 0
            ):
                raise ValueError("its network's shape or seed is no whole number")
            wanted = networks.shapes(described, len(packet.arrays))
            classes = described["classes"] if head.labels is None else len(head.labels)
        except MALFORMED as error:
            raise GramfoldError(f"not a gramfold head: {error}") from None
        if described["classes"] != classes or wanted.keys() != packet.arrays.keys():
            raise GramfoldError("the head's labels or weights are not those of its network")
        for name, shape in wanted.items():
            given = packet.arrays[name]
            if given.shape != shape or given.dtype != np.float32 or not np.isfinite(given).all():
                raise GramfoldError(f"the head's weights {name} are of the wrong shape or not finite")
        return head
