"""The models for gradient training: described by a short string, built where needed. Importing this does not import torch."""

from typing import TYPE_CHECKING

from gramfold.networks.description import describe
from gramfold.numerics import arrays

if TYPE_CHECKING:
    from gramfold.networks.network import Network


def build(description: dict[str, object], device: str = "cpu") -> "Network":
    """The network of a description, on a device; built once per thread, since calling it is not thread-safe."""
    arrays.require_torch()
    from gramfold.networks.network import built

    return built(description, device)


__all__ = ["build", "describe"]
