"""A head as a PyTorch program, which runs without gramfold: `torch.export.load(FILE).module()(features)`."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from gramfold import wire
from gramfold.errors import HeadError
from gramfold.heads import Head
from gramfold.imports import require

if TYPE_CHECKING:
    from torch import Tensor


def write_torch(head: Head, path: Path) -> None:
    """Scores, or probabilities where the head gives them, of any number of samples."""
    torch = require("torch", "torch", "exporting to PyTorch")
    module = head.to_torch()

    class Program(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.head = module

        def forward(self, features: "Tensor") -> "Tensor":
            scores: Tensor = self.head(features)
            if not head.probabilistic:
                return scores
            shares: Tensor = torch.softmax(scores / head.temperature, dim=1)
            return (1.0 - head.unforeseen) * shares + head.unforeseen / shares.shape[1]

    sample = torch.rand((2, *head.shape), dtype=torch.float32)
    module(sample)  # matrices that are drawn when first used are there before the trace
    try:
        program = torch.export.export(Program(), (sample,), dynamic_shapes=({0: torch.export.Dim("n")},))
    except Exception as error:  # tracing raises what it meets
        raise HeadError(
            f"this head cannot be traced by PyTorch: {type(error).__name__}; use --onnx, or Head.to_torch()"
        ) from error
    content = io.BytesIO()
    torch.export.save(program, content)
    wire.write_atomically(path, content.getbuffer(), public=True)
