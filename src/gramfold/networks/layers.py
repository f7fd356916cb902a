"""Small layers that several networks share."""

import torch
from torch import Tensor, nn


class Pixels(nn.Module):
    """Images n x H x W x channels, bytes or floats in [0, 1], to centred n x channels x H x W."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(torch.float32) / 255 if x.dtype == torch.uint8 else x
        return (x.movedim(-1, -3) - 0.5) / 0.25


class UnitLength(nn.Module):
    """Rows scaled to length one."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x, dim=-1)


class Pooled(nn.Module):
    """The mean over all positions of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((-2, -1))


def convolutions(width: int, channels: int) -> list[nn.Module]:
    """Three 3x3 convolutions of width, 2 width and 4 width channels, halving the image between, then the mean over positions.

    Group normalisation, since the statistics of a batch say nothing about another client's.
    """
    layers: list[nn.Module] = []
    for i, outputs in enumerate((width, 2 * width, 4 * width)):
        groups = max(g for g in range(1, min(8, outputs) + 1) if outputs % g == 0)
        layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.GroupNorm(groups, outputs), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if i < 2 else [Pooled()]
        channels = outputs
    return layers
