"""A layer in closed form, from the folded moments of its patches and the codes of the labels of the images they are from.

    codes    Q (classes x places x filters), drawn: a patch at place t of an image of class c has the targets Q[c, t]
    solved   W = (C + r I)^-1 B,  B = cov(p, Q[c, t])           ridge for these; outputs scaled to mean 0, variance 1
    drawn    V = Z R, Z = (C + e I)^-1/2                        drawn wavelets R in the space where patches are white

Were the targets the same at all places of an image, solved filters would span no more directions than there are classes. Drawn
filters cost nothing, since C, the patches' covariance, follows from the same moments.
"""

import functools
from dataclasses import dataclass

import numpy as np

from gramfold.convolution.description import Step
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import choose_penalty
from gramfold.solve.ridge import Spectrum, factorise

WHITENING, RIDGE = 0.1, 1.0
"""e, and r of a convolution, in units of the patches' mean variance. Labels explain next to nothing of a single patch, and that
little in directions in which patches hardly vary: without a heavy ridge such filters see noise."""


@dataclass(frozen=True)
class Layer:
    """`weights`: patch numbers x filters, the constant's row first, solved filters before drawn ones. `scales` (2 x solved
    ones): what the codes are multiplied by, and what is then added, for outputs of mean 0 and variance 1."""

    weights: Array
    scales: Array


@functools.lru_cache(maxsize=8)
def codes(step: Step, seed: int, number: int, classes: int) -> np.ndarray:
    """Q (classes x places x solved filters) of a layer, which is the network's `number`-th. Its mean over the classes is zero:
    what all images look like at a place is nothing to learn."""
    drawn = seeds.frozen(seed, f"encoder/{number}").standard_normal((classes, step.positions, step.solved))
    drawn -= drawn.mean(0)
    drawn.flags.writeable = False
    return drawn


def solve_layer(total: Moments, step: Step, seed: int, number: int, penalty: float | None) -> Layer:
    """A layer of a network from the moments of its patches, with their codes where it has solved filters; `penalty` None:
    RIDGE for a convolution, by GCV for a dense layer."""
    mean, covariance = _covariance(total)
    parts, scales = list[Array](), arrays.zeros((2, 0), covariance)
    if step.solved:
        mean_code = total.cross[0] / total.n
        cross = total.cross[1:] / total.n - mean[:, None] * mean_code[None, :]
        ridge = _ridge(total, step, covariance) if penalty is None else penalty / total.n
        filters = factorise(covariance, ridge).solve(cross)
        variance = (filters * (covariance @ filters)).sum(0)
        scale = 1.0 / (variance * (variance > 0) + (variance <= 0)) ** 0.5
        scales = arrays.concatenate([scale[None, :], -(mean_code * scale)[None, :]])
        parts.append(_around(mean, filters * scale))
    if step.drawn:
        parts.append(_drawn(mean, covariance, step, seed, number))
    return Layer(arrays.concatenate(parts, axis=1), scales)


def _ridge(total: Moments, step: Step, covariance: Array) -> float:
    """r of a layer, where none is given."""
    if step.kind == "conv":
        return RIDGE * float(covariance.diagonal().mean()) or 1.0
    return choose_penalty(total.lower_gram, total.cross, float(total.squares.sum()), total.n) / total.n


def _around(mean: Array, filters: Array) -> Array:
    """Filters with the constant that makes their outputs' mean zero."""
    return arrays.concatenate([-(mean @ filters)[None, :], filters])


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
    return _around(mean, filters)


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
