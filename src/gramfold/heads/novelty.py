"""How far a sample is from all that a head has seen: its leverage f'A^-1 f, made readable by those of training samples."""

import functools
from dataclasses import dataclass

import numpy as np

from gramfold.errors import HeadError
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array

COLUMNS, EXACT = 16, 64
"""Of a sketch, from which leverages are known to a relative sqrt(2 / COLUMNS), be there as many features as there may. Up to
EXACT features keep the root itself."""
MOST = 99
"""Quantiles of training samples that are kept: how unusual a sample is, in per cent."""
REFERENCE = 128
"""Training samples whose leverages are looked at."""
NEARLY = 0.95
"""A leverage beyond which a sample determines its own fit: without it, it cannot be computed."""


class Root:
    """A's root along `directions` (features x columns), and as heads keep it: one for all heads that share it."""

    def __init__(self, along: Array) -> None:
        plain = arrays.to_numpy(along)
        self.along, self.unit = along, float(np.abs(plain).max()) or 1.0
        self.kept = (plain / self.unit).astype(np.float32)

    def leverages(self, rows: Array) -> np.ndarray:
        return np.asarray(arrays.to_numpy(((rows @ self.along) ** 2).sum(1)))


@dataclass(frozen=True)
class Novelty:
    """`root` (features x columns): |f root|^2 is f'A^-1 f up to a constant, A being the Gram matrix of the features seen.
    `usual`: ascending, what that was of training samples when left out."""

    root: np.ndarray
    usual: np.ndarray

    @classmethod
    def of(cls, root: Root, rows: Array, seen: bool) -> "Novelty":
        """From A's root, and features of some training samples; `seen`: whether they are part of A."""
        return cls.of_leverages(root, root.leverages(rows), seen)

    @classmethod
    def of_leverages(cls, root: Root, leverages: np.ndarray, seen: bool) -> "Novelty":
        """The same from what `root.leverages` are."""
        if seen:  # without the sample itself it would have been farther away
            within = np.minimum(leverages, NEARLY)
            leverages = leverages / (1.0 - within)
        usual = np.quantile(leverages, np.arange(1, MOST + 1) / (MOST + 1)) if len(leverages) > MOST else np.sort(leverages)
        return cls(root.kept, (usual / root.unit**2).astype(np.float32))

    def __call__(self, features: Array) -> np.ndarray:
        """For every row, the part of training samples that were less unusual: from 0 to almost 1."""
        root = arrays.float64(arrays.like(self.root, features))
        leverages = arrays.to_numpy(((features @ root) ** 2).sum(1))
        n = len(self.usual)
        return np.asarray(np.interp(leverages, [0.0, *self.usual], np.arange(n + 1) / (n + 1)))

    def check(self, dim: int) -> None:
        """Raise unless this, which came from elsewhere, is of so many features."""
        if self.root.ndim != 2 or len(self.root) != dim or self.usual.ndim != 1 or not 0 < len(self.usual) <= MOST:
            raise HeadError(f"a head of {dim} features cannot have this novelty")
        if not (np.isfinite(self.root).all() and np.isfinite(self.usual).all()) or (np.diff(self.usual) < 0).any():
            raise HeadError("a head's novelty must be finite, and in ascending order")


@functools.lru_cache(maxsize=4)
def directions(dim: int) -> np.ndarray:
    """What roots are sketched along (dim x columns): all directions where these are few."""
    if dim <= EXACT:
        return np.eye(dim)
    signs = seeds.frozen(0, "novelty").choice([-1.0, 1.0], (dim, COLUMNS))
    return np.asarray(signs / np.sqrt(COLUMNS))


def root_of(rows: Array) -> Root:
    """A's root along `directions`, where only features (n x m) of some samples are at hand: A = F'F + p I, p being the mean of
    its eigenvalues. With F = U s V' it is V ((s^2 + p)^-1/2 - p^-1/2) V' + p^-1/2 I."""
    along = arrays.like(directions(rows.shape[1]), rows)
    values, vectors = arrays.eigh(arrays.outer_gram(rows))
    values = values.clip(0.0, None)
    penalty = float(values.sum()) / rows.shape[1] or 1.0
    real = values > 1e-12 * float(values.max())
    right = rows.T @ (vectors[:, real] / values[real] ** 0.5)
    change = (values[real] + penalty) ** -0.5 - penalty**-0.5
    return Root(right @ (change[:, None] * (right.T @ along)) + penalty**-0.5 * along)
