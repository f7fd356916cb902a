"""Small layers that several networks share."""

import torch
from torch import Tensor, nn


class Pixels(nn.Module):
    """Images n x H x W x channels, bytes or floats in [0, 1], to centred n x channels x H x W."""

    def forward(self, x: Tensor) -> Tensor:
        return pixels(x.movedim(-1, -3))


def pixels(x: Tensor) -> Tensor:
    """Bytes, or floats in [0, 1], centred."""
    x = x.to(torch.float32) / 255 if x.dtype == torch.uint8 else x
    return (x - 0.5) / 0.25


MOMENTUM = 0.1
"""The weight of a batch in the running statistics."""


class Norm(nn.BatchNorm2d):
    """Batch normalisation as a function: in training its samples weigh as `share` says (padding nothing), and the running
    statistics come out as `fresh` instead of being written in place, so that clients can be trained side by side."""

    share: Tensor
    fresh: dict[str, Tensor]

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        known: dict[str, Tensor] = {key: getattr(self, key) for key in ("running_mean", "running_var")}
        mean = self.share @ x.mean((-2, -1))
        variance = self.share @ (x - mean[:, None, None]).square().mean((-2, -1))
        largest = self.share.max()
        pixels = x.shape[-2] * x.shape[-1] / largest
        alone = largest == 1  # a batch of one has no statistics of its own
        found = {"running_mean": mean, "running_var": variance * (pixels / (pixels - 1).clamp(min=1))}
        self.fresh = {key: torch.where(alone, old, torch.lerp(old, found[key].detach(), MOMENTUM)) for key, old in known.items()}
        mean, variance = (torch.where(alone, known[key], own) for key, own in zip(known, (mean, variance), strict=True))
        scale = self.weight * (variance + self.eps).rsqrt()
        return x * scale[:, None, None] + (self.bias - mean * scale)[:, None, None]


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
