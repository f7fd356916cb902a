"""A head as a PyTorch module."""

from typing import Any

import torch
from torch import Tensor, nn

from gramfold.heads import Head
from gramfold.numerics.arrays import is_traced
from gramfold.wire import Packet


class HeadModule(nn.Module):
    """Scores of samples, as the head gives them: a forward pass puts the head together from the module's buffers."""

    def __init__(self, head: Head) -> None:
        super().__init__()
        packet = head.pack()
        self._kind, self._meta = type(head), packet.meta
        self._places = {name: name.replace(".", "_") for name in packet.arrays}
        for name, place in self._places.items():
            self.register_buffer(place, torch.as_tensor(packet[name]).clone(memory_format=torch.contiguous_format))

    def forward(self, samples: Tensor) -> Tensor:
        parts = {name: getattr(self, place) for name, place in self._places.items()}
        head = self._kind.assemble(Packet(parts, self._meta))
        rows = samples if is_traced() else head.rows(samples)
        scores: Any = head.forward(rows)  # numbers are not looked through: that would wait for the device
        return scores  # type: ignore[no-any-return]
