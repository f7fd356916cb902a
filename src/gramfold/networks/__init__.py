"""The models for gradient training: described by a short string, built where needed. Importing this does not import torch."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gramfold.networks.description import describe
from gramfold.numerics import arrays

if TYPE_CHECKING:
    from gramfold.networks.network import Network


def build(description: dict[str, object], device: str = "cpu") -> "Network":
    """The network of a description, on a device; built once per thread, since calling it is not thread-safe."""
    arrays.require_torch()
    from gramfold.networks.network import built

    return built(description, device)


def shapes(description: Mapping[str, Any], most: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all weights of the network of a description from elsewhere, by name: nothing is allocated, and no more
    than about `most` of them are looked at."""
    arrays.require_torch()
    from gramfold.networks.network import weight_shapes

    return weight_shapes(description, most)


__all__ = ["build", "describe", "shapes"]
