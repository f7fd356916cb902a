"""The leading directions of wide rows, words say, found by a randomised range finder in sums (Halko, Martinsson and Tropp 2011):

    client   in how many of its samples each column is not zero          server   the columns that two samples have, the commonest
    client   Y = Z'(Z Omega), Z its rows of length one                   server   Q of Y = Q R
    client   Y = Z'(Z Q)                                                 server   the leading eigenvectors of Y (Q'Y)^-1 Y'

Omega comes from the shared seed. Y is tall and thin (columns x directions), and no row is ever made dense. All are sums over
samples, so the directions are those of pooled data, however that is cut among clients; labels have no say in them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gramfold import features
from gramfold.errors import MethodError
from gramfold.features import DirectionsMap, of_length_one
from gramfold.federation import Task
from gramfold.methods.learning.columns import require_counts
from gramfold.methods.learning.phase import Learned
from gramfold.methods.phases import Phase
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.uploads import NamedSums

WIDE = 4096
"""From more inputs on their directions are found first, where nobody says otherwise: their Gram matrix would be too large."""
DEFAULT = 512
"""Directions, where there is room."""
SPARE = 32
"""So many more than are asked for, and never more than twice as many, so that the last are found as well as the first."""
COMMON = 16384
"""The most columns that are kept."""
ROUNDS = 3
SMALLEST = 1e-9
"""The least variance along a direction, relative to the largest."""
COUNTS, PRODUCTS = "counts", "products"
_SPEC = re.compile(r"(.+)@directions:(\d+)")


@dataclass(frozen=True)
class DirectionsPlan:
    """`dim` directions, and the map of them."""

    map: str
    dim: int

    @classmethod
    def of(cls, spec: Any) -> "DirectionsPlan | None":
        """The plan that a feature map's text asks for; None where it asks for none."""
        found = _SPEC.fullmatch(spec.replace(" ", "")) if isinstance(spec, str) else None
        if found is None:
            return None
        if int(found[2]) < 1:
            raise MethodError(f"{spec!r} asks for no direction; write for example raw+bias+linear@directions:{DEFAULT}")
        features.parse(found[1])
        return cls(found[1], int(found[2]))

    @property
    def rounds(self) -> int:
        return ROUNDS

    def begin(self, start: Any, seed: int) -> "Finding":
        return Finding(start, seed, start.space.map.inputs, self.map, self.dim)

    def traffic(self, task: Task, moments: Callable[[int, int], int], number: int, message: int) -> int:
        """The bytes of its rounds at a client, at most: counts, two products and the basis between them, the columns and their
        directions."""
        columns = min(task.inputs, COMMON)
        return 4 * task.inputs + 4 * columns * (3 * sought(self.dim) + self.dim + 2) + 6 * message

    def width(self, inputs: int) -> int:
        return features.parse(self.map).width(min(self.dim, inputs))


def default(samples: int | None, masked: bool = False) -> str:
    """The text of a map that finds as many directions as so many samples can tell; under a secure sum half as many."""
    dim = DEFAULT if samples is None else min(DEFAULT, samples // 2 - SPARE if masked else samples)
    return f"raw+bias+linear@directions:{max(dim, 1)}"


def sought(dim: int) -> int:
    """The directions in which products are taken to find so many."""
    return dim + min(dim, SPARE)


@dataclass(frozen=True)
class Finding(Phase, kind="learning/directions"):
    """Where the search stands: the counts asked for, or, with columns, the products with a basis."""

    inputs: int
    map: str
    dim: int
    columns: np.ndarray | None = None
    basis: Array | None = None
    """None: drawn from the seed."""

    @property
    def _width(self) -> int:
        assert self.columns is not None
        return min(sought(self.dim), len(self.columns))

    # --- the client ---

    def local(self, client: ClientData) -> NamedSums:
        """The sums that are asked for, over a client's samples."""
        train = counting(client)
        if train.inputs.shape[1] != self.inputs:
            raise MethodError(f"asked for the directions of {self.inputs} columns, the samples have {train.inputs.shape[1]}")
        weights = None if train.weights is None else np.asarray(train.weights, np.float64)
        sparse = arrays.is_sparse(train.inputs)
        cuts = arrays.blocks(train.n, sought(self.dim) if sparse else self.inputs)
        if self.columns is None:
            counts = sum(_counts(train.inputs[rows], None if weights is None else weights[rows]) for rows in cuts)
            return NamedSums({COUNTS: np.asarray(counts, np.float32 if weights is None and train.n < 2**24 else np.float64)})
        basis, total = self._basis(), np.zeros((len(self.columns), self._width))
        for block in cuts:
            rows = of_length_one(train.inputs[block], self.columns)
            rows = rows if sparse else arrays.to_numpy(rows)
            along = rows @ basis
            total += rows.T @ (along if weights is None else along * weights[block][:, None])
        return NamedSums({PRODUCTS: total.astype(np.float32)})

    def _basis(self) -> np.ndarray:
        if self.basis is not None:
            return np.asarray(arrays.to_numpy(self.basis), np.float64)
        assert self.columns is not None
        return seeds.generator(self.seed, "directions").standard_normal((len(self.columns), self._width))

    # --- the server ---

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {COUNTS: (self.inputs,)} if self.columns is None else {PRODUCTS: (len(self.columns), self._width)}

    def check(self, upload: Any) -> None:
        super().check(upload)
        if self.columns is not None:
            return
        counts = arrays.to_numpy(upload[COUNTS])
        require_counts(counts, counts)

    def after(self, total: NamedSums) -> "Finding | Learned":
        if self.columns is None:
            return replace(self, columns=_commonest(arrays.to_numpy(total[COUNTS])))
        products = np.asarray(arrays.to_numpy(total[PRODUCTS]), np.float64)
        if self.basis is None:
            return replace(self, basis=arrays.qr(products)[0].astype(np.float32))
        directions = _leading(products, self._basis(), self.dim)
        after = features.draw(features.parse(self.map), directions.shape[1], self.seed, "features/directions")
        return Learned(DirectionsMap.of(self.inputs, self.columns, directions.astype(np.float32), after))


def _counts(rows: Array, weights: np.ndarray | None) -> np.ndarray:
    present = csr_array(rows if arrays.is_sparse(rows) else arrays.to_numpy(rows)) != 0
    return np.asarray((np.ones(present.shape[0]) if weights is None else weights) @ present)


def _commonest(counts: np.ndarray) -> np.ndarray:
    """The columns that at least two samples have, and of those the commonest; equal ones by their place."""
    shared = np.flatnonzero(counts > 1.5)  # counts from a secure sum are as good as whole
    if not len(shared):
        raise MethodError("no two samples have a column in common that is not zero: there is nothing to learn from all of them")
    order = np.argsort(-np.round(counts[shared]), kind="stable")[:COMMON]
    return np.sort(shared[order]).astype(np.int32)


def _leading(products: np.ndarray, basis: np.ndarray, dim: int) -> np.ndarray:
    """The leading eigenvectors of A from Y = A Q, by Nystroem: exact where A's rank is at most that of Q."""
    middle = basis.T @ products
    values, vectors = np.linalg.eigh((middle + middle.T) / 2)
    real = values > SMALLEST * values[-1]
    if not values[-1] > 0:
        raise MethodError("all samples are zero in the columns that they share: there is nothing to learn from them")
    root = products @ (vectors[:, real] / values[real] ** 0.5)
    q, r = arrays.qr(root)
    left, sizes, _ = arrays.svd(r)
    lead = sizes**2 > SMALLEST * sizes[0] ** 2
    found = q @ left[:, lead][:, :dim]
    signs = np.sign(found[abs(found).argmax(0), np.arange(found.shape[1])])
    return np.asarray(found * signs)
