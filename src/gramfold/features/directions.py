"""A map of wide, sparse rows to a few directions: phi(z), z = sqrt(r) U'x / |x|, of the columns that were kept. U is learned
and travels with the map; rows are never made dense."""

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import FeaturesError
from gramfold.features.base import DrawnMap, LearnedMap, draw_described, require_rows, whole
from gramfold.moments import Implied
from gramfold.numerics import arrays, stopwatch
from gramfold.numerics.arrays import Array

COLUMNS, DIRECTIONS = "columns", "directions"
HAIR = 1e-4
"""By how much directions that were rounded to float32 may lengthen the square of a row, relative to it."""


class DirectionsMap(LearnedMap):
    """Callable on rows, sparse or not. `description` is {"kind": "directions", "inputs": number, "map": the description of a
    drawn map of the directions}; the arrays are "columns" (k places) and "directions" (k x r, orthonormal)."""

    kind: ClassVar[str] = "directions"
    tabular: ClassVar[bool] = False
    saw_labels: ClassVar[bool] = False

    def __init__(self, description: Mapping[str, Any], learned: Mapping[str, Array], fingerprint: str | None = None) -> None:
        super().__init__(description, learned, fingerprint)
        self.inputs, self.after = whole(self.description["inputs"], "inputs"), draw_described(self.description["map"])
        if set(learned) != {COLUMNS, DIRECTIONS}:
            raise FeaturesError("a map to directions needs its columns and its directions")
        self.arrays: Mapping[str, Array] = {name: learned[name] for name in (COLUMNS, DIRECTIONS)}
        places = arrays.to_numpy(learned[COLUMNS])
        if places.ndim != 1 or places.dtype.kind not in "iu" or (np.diff(places) <= 0).any():
            raise FeaturesError("the columns of a map to directions must be whole numbers, each larger than the one before")
        if len(places) and not 0 <= places[0] <= places[-1] < self.inputs:
            raise FeaturesError(f"the columns of a map to directions must be among its {self.inputs} inputs")
        if tuple(learned[DIRECTIONS].shape) != (len(places), self.after.inputs):
            raise FeaturesError(f"directions must be {self.after.inputs} of {len(places)} numbers each")
        self.columns, self.dim = places, self.after.dim

    @classmethod
    def of(cls, inputs: int, columns: Array, directions: Array, after: DrawnMap) -> "DirectionsMap":
        return cls({"inputs": inputs, "map": after.description}, {COLUMNS: columns, DIRECTIONS: directions})

    def before(self, after: DrawnMap) -> "DirectionsMap":
        """The same directions, with another map of them."""
        return DirectionsMap({"inputs": self.inputs, "map": after.description}, self.arrays)

    @functools.cached_property
    def directions(self) -> np.ndarray:
        """U in float64, in the units of z."""
        numbers: np.ndarray = arrays.to_numpy(self.arrays[DIRECTIONS]).astype(np.float64)
        return np.asarray(numbers * self.after.inputs**0.5)

    @property
    def implied(self) -> Implied:
        return self.after.implied_of(self.after.inputs * (1 + HAIR))

    def one_unit(self, inputs: bool | None) -> bool | None:
        return self.after.one_unit(True)

    def __repr__(self) -> str:
        return f"DirectionsMap({self.inputs} -> {self.after.inputs} -> {self.dim})"

    def comparable(self, inputs: Array) -> Array:
        """Rows of length one."""
        return of_length_one(inputs, np.arange(self.inputs))

    def __call__(self, inputs: Array) -> Array:
        """float64 features (n x dim)."""
        require_rows(inputs, self.inputs)
        if arrays.is_traced():
            return self._features(inputs)
        with stopwatch.phase("features"):
            cuts = arrays.blocks(inputs.shape[0], self.dim if arrays.is_sparse(inputs) else self.inputs) or [slice(0, 0)]
            return arrays.concatenate([self._features(inputs[rows]) for rows in cuts])

    def _features(self, inputs: Array) -> Array:
        rows = of_length_one(inputs, self.columns)
        along = rows @ self.directions if arrays.is_sparse(rows) else rows @ arrays.like(self.directions, rows)
        return self.after(along)


def of_length_one(inputs: Array, columns: np.ndarray) -> Array:
    """Some columns of rows that are scaled to length one, in float64, sparse where they are; a row of zeros stays."""
    if arrays.is_sparse(inputs):
        rows = inputs.astype(np.float64)
        largest = abs(rows).max(1).toarray().reshape(-1)
        rows = rows.multiply(1 / np.where(largest > 0, largest, 1.0)[:, None]).tocsr()  # squares neither vanish nor overflow
        lengths = np.asarray(rows.multiply(rows).sum(1)).reshape(-1) ** 0.5
        return rows.multiply(1 / np.where(lengths > 0, lengths, 1.0)[:, None]).tocsr()[:, columns]
    rows = arrays.float64(inputs)
    largest = arrays.row_max(abs(rows))
    rows = rows / (largest + (largest == 0))[:, None]
    squares = arrays.row_squares(rows)
    return (rows / ((squares + (squares == 0)) ** 0.5)[:, None])[:, columns]
