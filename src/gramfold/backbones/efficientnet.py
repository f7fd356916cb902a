"""EfficientNet-Lite0 (Tan and Le, 2019, without squeeze-and-excitation): 1280 numbers per image, from its packaged weights."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold.backbones.base import IMAGES, Backbone, file_pieces, fingerprint, finished
from gramfold.backbones.pixels import Pixels
from gramfold.backbones.pooling import MEAN
from gramfold.errors import FileError
from gramfold.imports import require

if TYPE_CHECKING:
    from torch import Tensor

STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
"""Blocks, and the stride of the first."""
COLOURS = Pixels(224, (127 / 255,) * 3, (128 / 255,) * 3)
"""As the weights were trained: with ImageNet's own mean and spread, half as many of their classes come out right."""
EPSILON = 1e-3
"""Of the batch normalisation, as the weights were trained."""


class EfficientNetLite(Backbone):
    """The network up to the mean over the image; its classes are left away."""

    kind, pooling, name = IMAGES, MEAN, "efficientnet-lite0"

    def __init__(self, path: Path, device: str = "cpu") -> None:
        self._torch = require("torch", "torch", "efficientnet-lite0")
        try:
            loaded = self._torch.load(path, map_location=device, weights_only=True)
        except Exception as error:  # torch raises what its parts raise
            raise FileError(f"{path} holds no readable weights: {error}") from None
        self._half = device.startswith("cuda")
        self._weights = {
            name: value.half() if self._half and value.is_floating_point() else value for name, value in loaded.items()
        }
        self._device, self.pixels = device, COLOURS
        self.fingerprint = fingerprint([self.name, self.pixels.describe()], file_pieces(path))

    def prepare(self, sample: Any) -> np.ndarray:
        return self.pixels(sample)

    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        images = self._torch.as_tensor(np.stack(batch), device=self._device)
        with self._torch.inference_mode():
            rows = forward(self._weights, images.half() if self._half else images)
        return finished(rows.float().cpu().numpy(), len(batch), self.name)


def forward(weights: Mapping[str, "Tensor"], x: "Tensor") -> "Tensor":
    """n x 1280 features of n x 3 x H x W images."""
    x = _step(weights, x, "_conv_stem", "_bn0", stride=2)
    number = 0
    for blocks, stride in STAGES:
        for i in range(blocks):
            x = _block(weights, x, f"_blocks.{number}.", stride if i == 0 else 1)
            number += 1
    return _step(weights, x, "_conv_head", "_bn1").mean((2, 3))


def _block(weights: Mapping[str, "Tensor"], x: "Tensor", name: str, stride: int) -> "Tensor":
    """Widen, filter each channel for itself, narrow again; the input is added where it fits."""
    wide = _step(weights, x, f"{name}_expand_conv", f"{name}_bn0") if f"{name}_expand_conv.weight" in weights else x
    wide = _step(weights, wide, f"{name}_depthwise_conv", f"{name}_bn1", stride, groups=wide.shape[1])
    narrow = _step(weights, wide, f"{name}_project_conv", f"{name}_bn2", active=False)
    return narrow + x if narrow.shape == x.shape else narrow


def _step(
    weights: Mapping[str, "Tensor"], x: "Tensor", conv: str, norm: str, stride: int = 1, groups: int = 1, active: bool = True
) -> "Tensor":
    """A convolution whose output is ceil(input / stride), its normalisation, and perhaps a ReLU that ends at six."""
    from torch.nn import functional

    filters = weights[f"{conv}.weight"]
    borders = [max((-(-side // stride) - 1) * stride + filters.shape[2] - side, 0) for side in (x.shape[3], x.shape[2])]
    x = functional.pad(x, [part for border in borders for part in (border // 2, border - border // 2)])
    x = functional.conv2d(x, filters, stride=stride, groups=groups)
    mean, variance, scale, shift = (weights[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
    x = functional.batch_norm(x, mean, variance, scale, shift, training=False, eps=EPSILON)
    return functional.relu6(x) if active else x
