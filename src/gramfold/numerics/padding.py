"""Rows of several clients as one stack: each client's from its place's beginning, zeros behind."""

import functools
from collections.abc import Sequence

import numpy as np

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array


class Padding:
    """From rows one client after another (N x ...) to a stack (clients x most x ...), and back."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.clients, self.most = len(self.sizes), max(self.sizes, default=0)
        self.even = all(size == self.most for size in self.sizes)

    @functools.cached_property
    def places(self) -> np.ndarray:
        """Where each row goes, counted through the whole stack."""
        return np.concatenate([np.arange(size) + k * self.most for k, size in enumerate(self.sizes)]).astype(np.int64)

    @functools.cached_property
    def whose(self) -> np.ndarray:
        """Which client's each row is."""
        return np.repeat(np.arange(self.clients), self.sizes)

    @functools.cached_property
    def there(self) -> np.ndarray:
        """Which places have a row (clients x most)."""
        return np.asarray(np.arange(self.most) < np.array(self.sizes)[:, None])

    def __call__(self, rows: Array) -> Array:
        shape = (self.clients, self.most, *rows.shape[1:])
        if self.even:
            return rows.reshape(shape)
        stack = arrays.zeros_of((self.clients * self.most, *rows.shape[1:]), rows)
        stack[arrays.like(self.places, rows)] = rows
        return stack.reshape(shape)

    def split(self, stack: Array) -> list[Array]:
        """Each client's rows (or samples) of a stack."""
        return [stack[k, :size] for k, size in enumerate(self.sizes)]
