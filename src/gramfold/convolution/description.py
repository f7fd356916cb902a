"""The notation for networks without gradients: terms joined by `+`, such as "conv:16:5+relu+max:2+dense:64+relu".

    pad:P                          a border of P zeros
    contrast                       the next convolution's patches get mean 0 and variance 1, each for itself
    conv:SOLVED:SIZE[:DRAWN]       filters of SIZE x SIZE: SOLVED from codes of labels, DRAWN ones in the patches' whitened space
    dense:SOLVED[:DRAWN]           the same on the whole input
    max:SIZE, mean:SIZE            the largest or the mean of every SIZE x SIZE square
    grid:SIZE                      the mean of every cell of a SIZE x SIZE grid
    split:THRESHOLD                what lies above the threshold, beside what lies below its negative
    relu, tanh, gelu ...           an activation

A linear layer that gives the classes follows by itself. Convolutions, dense layers and that last one take a round each.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from gramfold.errors import FeaturesError
from gramfold.features import ACTIVATIONS

PRESETS = {
    "lenet": "pad:2+conv:6:5+relu+max:2+pad:2+conv:16:5+relu+max:2+dense:120+relu+dense:84+relu",
    "five": ("contrast+pad:1+conv:32:3+split:0+max:2+pad:1+conv:64:3+split:0+max:2+pad:1+conv:64:3+split:0+dense:128+relu"),
}
SOLVED = ("conv", "dense")
_ARITY = {"pad": (1, 1), "conv": (2, 3), "dense": (1, 2), "max": (1, 1), "mean": (1, 1), "grid": (1, 1), "contrast": (0, 0)}
"""The minimum and maximum number of a term's arguments, which are whole numbers."""


@dataclass(frozen=True)
class Step:
    """One term: its name and numbers, and the shape (height, width, channels) of what comes in."""

    kind: str
    numbers: tuple[float, ...] = ()
    shape: tuple[int, int, int] = (0, 0, 0)
    contrast: bool = False
    """Of a convolution: whether its patches are normalised."""

    @property
    def text(self) -> str:
        return ":".join([self.kind, *(f"{number:g}" for number in self.numbers)])

    @property
    def size(self) -> int:
        """Of a convolution's side, of a pooling square, of a grid or of a border."""
        return int(self.numbers[1 if self.kind == "conv" else 0])

    @property
    def solved(self) -> int:
        return int(self.numbers[0])

    @property
    def drawn(self) -> int:
        place = 2 if self.kind == "conv" else 1
        return int(self.numbers[place]) if len(self.numbers) > place else 0

    @property
    def patch(self) -> int:
        """Numbers per patch, the constant one included."""
        height, width, channels = self.shape
        return 1 + channels * (self.size**2 if self.kind == "conv" else height * width)

    @property
    def positions(self) -> int:
        """Patches per sample."""
        return (self.shape[0] - self.size + 1) * (self.shape[1] - self.size + 1) if self.kind == "conv" else 1

    @property
    def output(self) -> tuple[int, int, int]:
        """The shape of what goes out."""
        height, width, channels = self.shape
        match self.kind:
            case "pad":
                return height + 2 * self.size, width + 2 * self.size, channels
            case "conv":
                return height - self.size + 1, width - self.size + 1, self.solved + self.drawn
            case "dense":
                return 1, 1, self.solved + self.drawn
            case "max" | "mean":
                return height // self.size, width // self.size, channels
            case "grid":
                return self.size, self.size, channels
            case "split":
                return height, width, 2 * channels
        return self.shape


def layers(network: str) -> int:
    """How many layers are solved for, the last one not counted: known without the images' shape.

    >>> layers("lenet")
    4
    """
    return sum(step.kind in SOLVED for step in _steps(network))


@functools.lru_cache(maxsize=64)
def parse(network: str, shape: tuple[int, int, int]) -> Sequence[Step]:
    """The steps of a network for images of this shape; the last, a dense layer without units, stands for the classes' layer."""
    steps, contrast = [], False
    for step in (*_steps(network), Step("dense", (0,))):
        made = Step(step.kind, step.numbers, shape, contrast and step.kind == "conv")
        if step.kind == "contrast":
            contrast = True
            continue
        if min(made.output[:2]) < 1 or (step.kind == "grid" and min(shape[:2]) < step.size):
            raise FeaturesError(f"{step.text} does not fit its input of {shape[0]} x {shape[1]}; choose another network")
        contrast = contrast and step.kind != "conv"
        shape = made.output
        steps.append(made)
    return tuple(steps)


def _steps(network: str) -> list[Step]:
    return [_step(term.strip()) for term in PRESETS.get(network, network).split("+")]


def _step(term: str) -> Step:
    kind, *given = term.split(":")
    try:
        if kind in ACTIVATIONS and not given:
            return Step(kind)
        if kind == "split" and len(given) == 1 and float(given[0]) >= 0:
            return Step(kind, (float(given[0]),))
        least, most = _ARITY[kind]
        numbers = tuple(int(number) for number in given)
        filters = numbers[0] + sum(numbers[2:]) if kind == "conv" else sum(numbers)
        if not least <= len(numbers) <= most or min(numbers, default=0) < 0 or (numbers and not filters) or 0 in numbers[1:2]:
            raise ValueError
        return Step(kind, numbers)
    except (KeyError, ValueError, IndexError):
        known = "pad, contrast, conv, dense, max, mean, grid, split, an activation, or a preset: " + ", ".join(PRESETS)
        raise FeaturesError(f"cannot read {term!r} of a network; a term is one of {known} (docs/convolution.md)") from None
