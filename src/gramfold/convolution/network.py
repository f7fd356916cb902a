"""A network as far as it has been solved: what its layers make of images, and the patches that the next layer is solved from."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold import stopwatch
from gramfold.convolution.description import SOLVED, Step, parse
from gramfold.errors import GramfoldError
from gramfold.features import ACTIVATIONS, fingerprint_of
from gramfold.features.base import MOST_DRAWN, whole
from gramfold.moments import Implied
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

CONTRAST_FLOOR = 1e-3
"""Added to a patch's variance before it is divided by it: flat patches are noise. Pixels have a variance of about one."""


class ConvolutionMap:
    """Callable on images (n x H x W x channels, bytes or floats in [0, 1]) once all layers are there: [1, what they end in].

    `description` is {"kind": "convolution", "network": text, "shape": H W channels, "seed": number}; the arrays are "layer.0",
    "layer.1", ...: numbers of a patch x filters, the constant's row first. With fewer of them the network ends before the first
    layer that has none. A `fingerprint` that is given is trusted.
    """

    kind: ClassVar[str] = "convolution"
    implied: ClassVar[Implied] = Implied()

    def __init__(self, description: Mapping[str, Any], layers: Mapping[str, Array], fingerprint: str | None = None) -> None:
        self.description = {"kind": self.kind, **description}
        height, width, channels = (whole(side, "shape") for side in self.description["shape"])
        self.shape = (height, width, channels)
        self.inputs = height * width * channels
        self.arrays: Mapping[str, Array] = {f"layer.{number}": layers[f"layer.{number}"] for number in range(len(layers))}
        steps = parse(str(self.description["network"]), self.shape)
        places = [place for place, step in enumerate(steps) if step.kind in SOLVED]
        if len(layers) >= len(places):
            raise GramfoldError(f"{len(layers)} layers for a network that has {len(places) - 1}")
        for place, weights in zip(places, self.arrays.values(), strict=False):
            if tuple(weights.shape) != (steps[place].patch, steps[place].output[2]):
                raise GramfoldError(f"layer {steps[place].text} has weights of shape {tuple(weights.shape)}")
        self._before: Sequence[Step] = steps[: places[len(layers)]]
        self.next = steps[places[len(layers)]]
        """The first layer that is not solved; the classes' layer when all are."""
        self.complete = len(layers) == len(places) - 1
        self.labels_seen = any(steps[place].solved for place in places[: len(layers)])
        """Whether a layer was solved for labels."""
        self.dim = self.next.patch
        if self._widest() > MOST_DRAWN:
            raise GramfoldError(f"images of shape {self.shape} become too large in {self.description['network']!r}")
        self._fingerprint = fingerprint

    @classmethod
    def restore(cls, description: Mapping[str, Any], arrays: Mapping[str, Array], fingerprint: str | None) -> "ConvolutionMap":
        return cls(description, arrays, fingerprint)

    @property
    def steps(self) -> Sequence[Step]:
        """The terms before the next layer, those with weights solved."""
        return self._before

    @functools.cached_property
    def fingerprint(self) -> str:
        return self._fingerprint or fingerprint_of(self.description, self.arrays)

    def __repr__(self) -> str:
        return f"ConvolutionMap({self.description['network']!r}, {len(self.arrays)} layers solved)"

    @classmethod
    def begin(cls, network: str, shape: Sequence[int], seed: int) -> "ConvolutionMap":
        """The network without any layer yet."""
        return cls({"network": network, "shape": list(shape), "seed": seed}, {})

    def grown(self, weights: Array) -> "ConvolutionMap":
        """The network with its next layer solved."""
        return ConvolutionMap(self.description, {**self.arrays, f"layer.{len(self.arrays)}": weights})

    def __call__(self, inputs: Array) -> Array:
        """float64 features (n x dim), of the inputs' kind."""
        if not self.complete:
            raise GramfoldError("this network has layers yet to be solved")
        inputs = inputs[None] if inputs.ndim == 3 else inputs
        if arrays.is_traced():
            return self.patches(inputs)
        parts = [self.patches(inputs[block]) for block in self.blocks(len(inputs))]
        return arrays.concatenate(parts) if parts else arrays.zeros((0, self.dim), inputs)

    def blocks(self, samples: int) -> list[slice]:
        """Slices of samples whose widest layer is of moderate size: memory does not grow with their number."""
        return arrays.blocks(samples, self._widest())

    def _widest(self) -> int:
        """The most numbers that a sample becomes on its way."""
        steps = [*self._before, self.next]
        return max(max(step.positions * step.patch * (step.kind in SOLVED), math.prod(step.output)) for step in steps)

    def patches(self, inputs: Array) -> Array:
        """The patches of some images under the next layer, (n positions) x dim, those of one image one after another."""
        if tuple(inputs.shape[1:]) != self.shape:
            raise GramfoldError(f"expected images of shape {self.shape}, got an array of shape {tuple(inputs.shape)}")
        arrays.require_torch()
        import torch

        with stopwatch.phase("features"):
            x = pixels(torch.as_tensor(inputs))
            weights = iter(self.arrays.values())
            for step in self._before:
                x = _apply(step, x, next(weights) if step.kind in SOLVED else None)
            columns = _columns(self.next, x)
            rows = columns.new_ones((x.shape[0] * self.next.positions, self.dim))
            rows[:, 1:] = columns.transpose(1, 2).reshape(-1, self.dim - 1)
            return arrays.like(rows, inputs)


def pixels(x: "Tensor") -> "Tensor":
    """float64 n x channels x H x W, centred; a fixed scale, so that there is nothing to agree on."""
    import torch

    scale = 255.0 if x.dtype == torch.uint8 else 1.0
    return (x.to(torch.float64).movedim(-1, 1) / scale - 0.5) / 0.25


def _columns(step: Step, x: "Tensor") -> "Tensor":
    """The patches of a layer's input, n x numbers x positions, without the constant."""
    from torch.nn import functional

    if step.kind == "dense":
        return x.reshape(x.shape[0], -1, 1)
    columns = functional.unfold(x, step.size)
    if step.contrast:
        columns -= columns.mean(1, keepdim=True)
        columns /= (columns.square().mean(1, keepdim=True) + CONTRAST_FLOOR).sqrt()
    return columns


def _apply(step: Step, x: "Tensor", weights: Array) -> "Tensor":
    import torch
    from torch.nn import functional

    match step.kind:
        case "conv" | "dense":
            matrix = torch.as_tensor(weights, device=x.device)
            out = matrix[1:].T @ _columns(step, x)
            out += matrix[0][:, None]
            return out.reshape(x.shape[0], *(step.output[2], *step.output[:2]))
        case "pad":
            return functional.pad(x, [step.size] * 4)
        case "max":
            return functional.max_pool2d(x, step.size)
        case "mean":
            return functional.avg_pool2d(x, step.size)
        case "grid":
            return functional.adaptive_avg_pool2d(x, step.size)
        case "split":
            return functional.relu_(torch.cat([x, -x], 1).sub_(step.numbers[0]))
    activated: Tensor = ACTIVATIONS[step.kind](x)
    return activated
