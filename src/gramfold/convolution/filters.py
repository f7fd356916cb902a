"""A layer in closed form, from the folded moments of its patches and the labels of the images they are from.

    solved   W = (Gram + r I)^-1 B Q                    least squares for the labels, encoded by a drawn Q
    drawn    V = Z R, Z = (C + e I)^-1/2                drawn wavelets R in the space where patches are white

The solved ones span at most as many directions as there are classes, whatever their number: drawn ones lift this limit at no
cost, since C, the patches' covariance, follows from the same moments.
"""

from dataclasses import dataclass

import numpy as np

from gramfold.convolution.description import Step
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import choose_penalty
from gramfold.solve.ridge import Spectrum, factorise

WHITENING = 0.1
"""e, in units of the patches' mean variance."""


@dataclass(frozen=True)
class Layer:
    """`weights`: patch numbers x filters, the constant's row first, solved filters before drawn ones. `codes`: classes x solved
    ones, what those were solved for."""

    weights: Array
    codes: Array


def solve_layer(total: Moments, step: Step, seed: int, number: int, penalty: float | None) -> Layer:
    """A layer of a network; `penalty` None: by GCV. Beside drawn filters, whose outputs have mean 0 and a variance near 1, solved
    ones are scaled to the same by their codes."""
    if penalty is None:
        penalty = choose_penalty(total.lower_gram, total.cross, float(total.squares.sum()), total.n)
    solution = factorise(total.lower_gram, penalty).solve(total.cross)
    codes = arrays.like(seeds.frozen(seed, f"encoder/{number}").standard_normal((total.outputs, step.solved)), solution)
    if not step.drawn:
        return Layer(solution @ codes, codes)
    mean, covariance = _covariance(total)
    codes = codes - (total.squares / total.n) @ codes
    out = solution[1:] @ codes
    variance = (out * (covariance @ out)).sum(0)
    codes = codes / (variance + (variance <= 0)) ** 0.5
    drawn = _drawn(mean, covariance, step, seed, number)
    return Layer(arrays.concatenate([solution @ codes, drawn], axis=1), codes)


def _covariance(total: Moments) -> tuple[Array, Array]:
    """Mean and covariance of the patches: the constant's row of the gram holds their sums."""
    gram = total.gram / total.n
    mean = gram[1:, 0]
    return mean, gram[1:, 1:] - mean[:, None] * mean[None, :]


def _drawn(mean: Array, covariance: Array, step: Step, seed: int, number: int) -> Array:
    """Filters of unit length in the whitened space, around the patches' mean."""
    spectrum = Spectrum.of(covariance)
    floor = WHITENING * float(spectrum.values.mean()) or 1.0
    rng = seeds.frozen(seed, f"filters/{number}")
    directions = _wavelets(rng, step) if step.kind == "conv" else rng.standard_normal((len(mean), step.drawn))
    directions /= np.sqrt((directions**2).sum(0))
    turned = spectrum.rotate(arrays.like(directions, covariance))
    filters = spectrum.vectors @ (turned / ((spectrum.values + floor) ** 0.5)[:, None])
    return arrays.concatenate([-(mean @ filters)[None, :], filters])


def _wavelets(rng: np.random.RandomState, step: Step) -> np.ndarray:
    """Waves under Gaussian windows, of every place, width, frequency, direction and phase, half of them in one weight for all
    channels: what whitened patches of real images look like."""
    size, channels, count = step.size, step.shape[2], step.drawn
    row, column, angle, frequency, phase, width, plain = rng.uniform(size=(7, count))
    y, x = (np.arange(size)[:, None] - place * (size - 1) for place in (row, column))
    width = 0.5 * (size / 1.5) ** width  # from half a pixel to a third of the patch, evenly on a log scale
    windows = np.exp(-(y[:, None] ** 2 + x[None] ** 2) / (2 * width**2))
    turned = y[:, None] * np.sin(np.pi * angle) + x[None] * np.cos(np.pi * angle)
    waves = windows * np.cos(np.pi * frequency * turned + 2 * np.pi * phase)
    weights = np.where(plain < 0.5, 1.0, rng.standard_normal((channels, count)))
    return np.asarray((weights[:, None, None] * waves).reshape(-1, count))
