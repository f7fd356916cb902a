"""F'F and F'Y as a growing sum. How it is held is nobody else's business: reading it changes neither it nor what comes of it.

Rows are buffered until there are as many as features, then multiplied out together: one large product is several times as fast as
many small ones. A gram that came over the wire stays the packed triangle that it came as until something is added to it.
"""

import numpy as np

from gramfold import wire
from gramfold.errors import MomentsError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

REAL = 1e-13
"""Eigenvalues below this part of the largest are rounding."""
CANCELLED = 1e-6
"""How far recovered rows may be from their gram, relative to it: a sum a billion times as large may have been subtracted."""


class Products:
    """The products of all rows (n x dim) and targets (n x outputs) that were added."""

    def __init__(self, dim: int, outputs: int, like: Array) -> None:
        self.dim, self.outputs, self.like = dim, outputs, like
        self.buffer: list[tuple[Array, Array]] = []
        """Rows not multiplied out, and their targets: a matrix, or class codes that stand for one-hot rows. Never written to."""
        self.packed: np.ndarray | None = None
        """The multiplied-out gram as its packed lower triangle. Never written to, so that copies share it."""
        self._square: Array = None
        self._cross: Array = None
        self._read: tuple[Array, Array] | None = None
        self._mirrored = False

    @classmethod
    def of(cls, gram: Array, cross: Array) -> "Products":
        """A sum given as its gram, a matrix or a packed triangle, and its cross-moment, which it keeps."""
        made = cls(cross.shape[0], cross.shape[1], arrays.zeros((0,), cross))
        if gram.ndim == 1:
            made.packed = gram
        else:
            made._square = gram
        made._cross = cross
        return made

    def copy(self) -> "Products":
        twin = Products(self.dim, self.outputs, self.like)
        twin.buffer, twin.packed = list(self.buffer), self.packed
        twin._square, twin._cross = (None if part is None else arrays.copy(part) for part in (self._square, self._cross))
        return twin

    # --- adding ---

    def append(self, rows: Array, targets: Array) -> None:
        """Add rows, which must not be written to afterwards."""
        self._changed()
        self.buffer.append((rows, targets))
        if self.buffered >= self.dim:
            self._multiply_out()

    def add(self, other: "Products") -> None:
        """Add another sum, perhaps this one itself."""
        self._changed()
        buffer = list(other.buffer)  # a list of its own: adding a sum to itself appends to the one it reads
        if self._cross is None and other._cross is not None:
            self._square, self._cross = other._laid_out_copy(), arrays.copy(other._cross)
        elif other._cross is not None:
            self._lay_out()
            if other.packed is not None:
                wire.add_lower(self._square, other.packed)
            else:
                self._square += other._square
            self._cross += other._cross
        for rows, targets in buffer:
            self.append(rows, targets)

    def settle(self) -> None:
        """Multiply buffered rows out in place, so that reading needs no second gram. Where rows are all there is they stay: they
        are fewer than a gram has."""
        if self.rows_only or not self.buffer:
            return
        if self._read is not None:
            (self._square, self._cross), self._read = self._read, None
            self.packed, self.buffer = None, []
        else:
            self._changed()
            self._multiply_out()

    def _changed(self) -> None:
        self._read, self._mirrored = None, False

    def _multiply_out(self) -> None:
        self._lay_out()
        self._add_buffer(self._square, self._cross)
        self.buffer = []

    def _lay_out(self) -> None:
        if self.packed is not None:
            self._square, self.packed = wire.unpack_lower(self.packed), None
        elif self._cross is None:
            self._square, self._cross = self._zeros()

    def _add_buffer(self, gram: Array, cross: Array) -> None:
        if all(targets.ndim == 1 for _, targets in self.buffer):
            rows = arrays.concatenate([rows for rows, _ in self.buffer])
            cross += arrays.class_sums(rows, np.concatenate([codes for _, codes in self.buffer]), self.outputs)
        else:
            rows, targets = self.rows()
            cross += rows.T @ targets
        arrays.add_gram(gram, rows)

    # --- reading ---

    @property
    def buffered(self) -> int:
        return sum(len(rows) for rows, _ in self.buffer)

    @property
    def rows_only(self) -> bool:
        """Whether nothing has been multiplied out."""
        return self._cross is None

    def rows(self) -> tuple[Array, Array]:
        """The buffered rows and their targets as two matrices."""
        wanted = [arrays.one_hot(part, self.outputs, rows) if part.ndim == 1 else part for rows, part in self.buffer]
        if not wanted:
            return arrays.zeros((0, self.dim), self.like), arrays.zeros((0, self.outputs), self.like)
        return arrays.concatenate([rows for rows, _ in self.buffer]), arrays.concatenate(wanted)

    def multiplied_out(self) -> tuple[Array, Array] | None:
        """The gram, a matrix or a packed triangle, and the cross-moment of all but the buffered rows."""
        return None if self.rows_only else (self._square if self.packed is None else self.packed, self._cross)

    def read(self) -> tuple[Array, Array]:
        """Gram, lower triangle certain, and cross-moment. Buffered rows are multiplied out beside the sum, and that is kept until
        the sum changes: multiplied out in place, they would round later sums in another way."""
        if not self.buffer and not self.rows_only:
            self._lay_out()
            return self._square, self._cross
        if self._read is None:
            gram, cross = self._zeros() if self.rows_only else (self._laid_out_copy(), arrays.copy(self._cross))
            if self.buffer:
                self._add_buffer(gram, cross)
            self._read = gram, cross
        return self._read

    def full_gram(self) -> Array:
        """The gram, symmetric."""
        gram, _ = self.read()
        if not self._mirrored:
            arrays.mirror(gram)
            self._mirrored = True
        return gram

    def _zeros(self) -> tuple[Array, Array]:
        return arrays.zeros((self.dim, self.dim), self.like), arrays.zeros((self.dim, self.outputs), self.like)

    def _laid_out_copy(self) -> Array:
        return arrays.copy(self._square) if self.packed is None else wire.unpack_lower(self.packed)


def recover_rows(gram: Array, cross: Array, most: int) -> tuple[Array, Array]:
    """At most `most` rows R and targets T with R'R = gram (given by its lower triangle) and R'T = cross.

    R = diag(l)^1/2 V' S with gram = S V diag(l) V' S, S the features' lengths: so a feature on a small scale keeps its digits.
    What the cross-moment has outside V, where the gram is nothing but rounding, goes on rows of that length.
    """
    size = gram.diagonal().clip(0.0) ** 0.5
    size = size + (size == 0)
    values, vectors = arrays.eigh(gram / size[:, None] / size)
    largest = float(abs(values).max()) if len(values) else 0.0
    real = values > REAL * largest
    real[: len(values) - min(most, len(values))] = False
    root, vectors = values[real] ** 0.5, vectors[:, real]
    wanted = cross / size[:, None]
    rows, targets = (vectors * root).T * size, (vectors / root).T @ wanted
    rest = wanted - vectors @ (vectors.T @ wanted)
    if _largest(rest) > REAL * _largest(wanted):
        left, lengths, right = arrays.svd(rest)
        spare = slice(0, most - len(rows))
        tiny = (1e-16 * largest or 1.0) ** 0.5
        rows = arrays.concatenate([rows, (tiny * left[:, spare]).T * size])
        targets = arrays.concatenate([targets, (lengths[spare, None] / tiny) * right[spare]])
    wrong = _largest((rows**2).sum(0) - gram.diagonal()) > CANCELLED * _largest(gram.diagonal())
    if wrong or _largest((rows.T @ targets - cross) / size[:, None]) > CANCELLED * _largest(wanted):
        raise MomentsError(f"these are not the moments of {most} samples: noise, or the rounding of a far larger sum, is in them")
    return rows, targets


def _largest(array: Array) -> float:
    return float(abs(array).max()) if 0 not in array.shape else 0.0
