"""The models that gradients train: described in a few words, built where needed. Importing this does not import torch."""

from typing import TYPE_CHECKING

from gramfold.errors import GramfoldError
from gramfold.networks.description import describe

if TYPE_CHECKING:
    from gramfold.networks.network import Network


def require_torch() -> None:
    """Raise, with a word on what to do, unless PyTorch can be imported."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise GramfoldError("gradient methods need PyTorch: install gramfold[torch]") from None


def build(description: dict[str, object], device: str = "cpu") -> "Network":
    """The network that a description tells of, on a device; built once per thread, since calling it is not thread-safe."""
    require_torch()
    from gramfold.networks.network import built

    return built(description, device)


__all__ = ["build", "describe", "require_torch"]
