"""A network as far as it has been solved: what its layers make of images, and the patches that the next layer is solved from."""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramfold.convolution.description import SOLVED, Step, parse
from gramfold.convolution.filters import codes
from gramfold.errors import FeaturesError
from gramfold.features import ACTIVATIONS
from gramfold.features.base import MOST_DRAWN, LearnedMap, whole
from gramfold.moments import Implied
from gramfold.numerics import arrays, stopwatch
from gramfold.numerics.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

ON_CHIP, ON_DEVICE = 2 * 2**20, 2**28
"""How many bytes the widest layer may take at a time: what a processor's cache holds, and what keeps an accelerator busy."""

CONTRAST_FLOOR = 1e-3
"""Added to a patch's variance before it is divided by it: flat patches are noise. Pixels have a variance of about one."""


class ConvolutionMap(LearnedMap):
    """Callable on images (n x H x W x channels, bytes or floats in [0, 1]) once all layers are there: [1, what they end in].

    `description` is {"kind": "convolution", "network": text, "shape": H W channels, "seed": number}; the arrays are "layer.0",
    "layer.1", ...: numbers of a patch x filters, the constant's row first. With fewer of them the network ends before the first
    layer that has none.
    """

    kind: ClassVar[str] = "convolution"
    implied: ClassVar[Implied] = Implied()
    tabular: ClassVar[bool] = False

    def __init__(self, description: Mapping[str, Any], layers: Mapping[str, Array], fingerprint: str | None = None) -> None:
        super().__init__(description, layers, fingerprint)
        height, width, channels = (whole(side, "shape") for side in self.description["shape"])
        self.shape = (height, width, channels)
        self.inputs = height * width * channels
        self.arrays: Mapping[str, Array] = {f"layer.{number}": layers[f"layer.{number}"] for number in range(len(layers))}
        steps = parse(str(self.description["network"]), self.shape)
        places = [place for place, step in enumerate(steps) if step.kind in SOLVED]
        if len(layers) >= len(places):
            raise FeaturesError(f"{len(layers)} layers for a network that has {len(places) - 1}")
        for place, weights in zip(places, self.arrays.values(), strict=False):
            if tuple(weights.shape) != (steps[place].patch, steps[place].output[2]):
                raise FeaturesError(f"layer {steps[place].text} has weights of shape {tuple(weights.shape)}")
        self._before: Sequence[Step] = steps[: places[len(layers)]]
        self.next = steps[places[len(layers)]]
        """The first layer that is not solved; the classes' layer when all are."""
        self.complete = len(layers) == len(places) - 1
        self.saw_labels = any(steps[place].solved for place in places[: len(layers)])
        """Whether a layer was solved for labels."""
        self.dim = self.next.patch
        if self._widest() > MOST_DRAWN:
            raise FeaturesError(f"images of shape {self.shape} become too large in {self.description['network']!r}")

    @property
    def coded(self) -> bool:
        """Whether the next layer's patches have codes of labels for targets, rather than labels."""
        return not self.complete and self.next.solved > 0

    def codes(self, classes: int) -> np.ndarray | None:
        """Those codes, classes x places x solved filters; None where labels are the targets."""
        return codes(self.next, int(self.description["seed"]), len(self.arrays), classes) if self.coded else None

    @property
    def steps(self) -> Sequence[Step]:
        """The terms before the next layer, those with weights solved."""
        return self._before

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

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
            raise FeaturesError("this network has layers yet to be solved")
        return self.patches(inputs[None] if inputs.ndim == 3 else inputs)

    def blocks(self, samples: int) -> list[slice]:
        """Slices of samples whose patches under the next layer are of moderate size: memory does not grow with their number."""
        return arrays.blocks(samples, self.next.positions * self.dim)

    def _widest(self) -> int:
        """The most numbers that a sample becomes on its way."""
        steps = [*self._before, self.next]
        return max(max(step.positions * step.patch * (step.kind in SOLVED), math.prod(step.output)) for step in steps)

    def patches(self, inputs: Array) -> Array:
        """The patches of some images under the next layer, (n positions) x dim, those of one image one after another."""
        if tuple(inputs.shape[1:]) != self.shape:
            raise FeaturesError(f"expected images of shape {self.shape}, got an array of shape {tuple(inputs.shape)}")
        arrays.require_torch()
        import torch

        with stopwatch.phase("features"):
            images = torch.as_tensor(inputs)
            layers = [torch.as_tensor(weights, device=images.device) for weights in self.arrays.values()]
            if arrays.is_traced():
                return self._patches(images, layers)
            rows = torch.empty((len(images) * self.next.positions, self.dim), dtype=torch.float64, device=images.device)
            cached = ON_CHIP if images.device.type == "cpu" else ON_DEVICE
            each, positions = max(1, cached // (8 * self._widest())), self.next.positions
            for start in range(0, len(images), each):
                some = images[start : start + each]
                self._patches(some, layers, rows[start * positions : (start + len(some)) * positions])
            return arrays.like(rows, inputs)

    def _patches(self, images: "Tensor", layers: "Sequence[Tensor]", out: "Tensor | None" = None) -> "Tensor":
        """The same of few images, written into `out` where that is given."""
        x, weights = pixels(images).movedim(1, -1), iter(layers)
        threshold = None
        for step, after in itertools.pairwise([*self._before, self.next]):
            if step.kind in SOLVED:
                x = _solved(step, x, next(weights))
            elif step.kind == "split" and after.kind == "grid":
                threshold = step.numbers[0]
            elif step.kind == "grid" and threshold is not None:
                x, threshold = _split_grid(threshold, step, x), None
            else:
                x = _fixed(step, x)
        return _rows(self.next, x, out)


def pixels(x: "Tensor") -> "Tensor":
    """float64 n x channels x H x W, centred; a fixed scale, so that there is nothing to agree on."""
    import torch

    scale = 255.0 if x.dtype == torch.uint8 else 1.0
    return (x.to(torch.float64).movedim(-1, 1) / scale - 0.5) / 0.25


def _rows(step: Step, x: "Tensor", out: "Tensor | None" = None) -> "Tensor":
    """The patches of a layer's input (n x H x W x channels), (n positions) x numbers: a constant one, then channel by channel."""
    rows = x.new_empty((x.shape[0] * step.positions, step.patch)) if out is None else out
    rows[:, 0] = 1.0
    channels, places = x.shape[3], (step.patch - 1) // x.shape[3]
    patches = _patches_by_place(step, x).reshape(len(rows), places, channels)
    rows[:, 1:].view(len(rows), channels, places).copy_(patches.transpose(1, 2))
    return rows


def _patches_by_place(step: Step, x: "Tensor") -> "Tensor":
    """The same without the constant and place by place, which is how they lie in memory: ten times as quick."""
    size = step.size
    views = x.unfold(1, size, 1).unfold(2, size, 1).permute(0, 1, 2, 4, 5, 3) if step.kind == "conv" else x
    patches = views.reshape(x.shape[0] * step.positions, step.patch - 1)
    if step.contrast:
        patches = patches - patches.mean(1, keepdim=True)
        patches /= (patches.square().mean(1, keepdim=True) + CONTRAST_FLOOR).sqrt()
    return patches


def _solved(step: Step, x: "Tensor", weights: "Tensor") -> "Tensor":
    """A layer's output; its weights are channel by channel."""
    import torch

    channels, filters = x.shape[3], weights.shape[1]
    by_place = weights[1:].reshape(channels, -1, filters).movedim(0, 1).reshape(-1, filters)
    return torch.addmm(weights[0], _patches_by_place(step, x), by_place).reshape(x.shape[0], *step.output)


def _fixed(step: Step, x: "Tensor") -> "Tensor":
    """What a step without weights makes of n x H x W x channels."""
    import torch
    from torch.nn import functional

    n, size = x.shape[0], step.size if step.numbers else 0
    height, width, channels = step.shape
    match step.kind:
        case "pad":
            return functional.pad(x, [0, 0, *[size] * 4])
        case "max" | "mean":
            x = x[:, : height // size * size, : width // size * size]
            squares = x.reshape(n, height // size, size, width // size, size, channels)
            if step.kind == "mean":
                return squares.mean((2, 4))
            rows = functools.reduce(torch.maximum, squares.unbind(2))  # far quicker than amax
            return functools.reduce(torch.maximum, rows.unbind(3))
        case "grid":
            return _grid(step, x, channels)
        case "split":
            beyond = functional.softshrink(x, step.numbers[0])
            return torch.cat([beyond, -beyond], -1).relu_()
    activated: Tensor = ACTIVATIONS[step.kind](x)
    return activated


def _grid(step: Step, x: "Tensor", channels: int) -> "Tensor":
    """The mean of every cell, as a product: far quicker than a pooling layer."""
    import torch

    height, width, _ = step.shape
    cells = torch.kron(_cells(height, step.size, x), _cells(width, step.size, x))
    return (cells @ x.reshape(x.shape[0], height * width, channels)).reshape(x.shape[0], step.size, step.size, channels)


def _split_grid(threshold: float, step: Step, x: "Tensor") -> "Tensor":
    """A split and the grid after it, without ever laying out the split's numbers: they are twice as many as a convolution's.
    What lies above t is max(x, t) - t, and means of both are taken before t is."""
    import torch

    above = _grid(step, x.clamp(min=threshold), x.shape[3])
    below = _grid(step, x.clamp_(max=-threshold), x.shape[3])
    return torch.cat([above - threshold, -threshold - below], -1)


def _cells(length: int, count: int, like: "Tensor") -> "Tensor":
    """count x length: each row takes the mean of one of `count` stretches that cover `length` places, some of them twice."""
    cells = like.new_zeros((count, length))
    for i in range(count):
        start, stop = i * length // count, -(-(i + 1) * length // count)
        cells[i, start:stop] = 1.0 / (stop - start)
    return cells
