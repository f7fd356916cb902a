"""Moments: what a client says about its data, once. Everything analytic folds through this type.

With features F (n x m) and targets Y (n x C) the moments are the gram F'F, the cross-moment F'Y, the sums of squared
targets (for classes: the class counts) and n. They add up: the moments of pooled data are the sum of the clients'.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gramfold import wire
from gramfold.errors import MomentsError, shortened
from gramfold.moments import codec, rounding, samples
from gramfold.moments.checks import check_exact_counts, check_possible, check_symmetric
from gramfold.moments.forgetting import check_remainder
from gramfold.moments.products import Products, recover_rows
from gramfold.moments.rounding import Rounded
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import Magnitude
from gramfold.wire import Packet

Labels = tuple[int | str, ...]

SPACE = ("feature dimension", "number of targets", "class list", "feature map")
HAIR = 1e-9
"""What rounding may leave below zero after a subtraction, relative to the largest; more means those samples were never in."""


class Moments:
    """Gram, cross-moment, target squares and n of a labelled feature set; `+` folds, `-` forgets.

    >>> import numpy as np
    >>> F, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    >>> left, right = Moments.from_features(F[:2], y[:2], classes=2), Moments.from_features(F[2:], y[2:], classes=2)
    >>> pooled = Moments.from_features(F, y, classes=2)
    >>> bool(np.allclose((left + right).gram, pooled.gram)), (pooled - right).n
    (True, 2)

    A value: `+` and `-` are pure, and reading changes neither what is sent nor what later additions give, bit for bit. `+=`
    writes to its left side. Arrays that are read must not be written to.
    """

    kind: ClassVar[str] = "moments"

    def __init__(
        self, dim: int, outputs: int, *, labels: Labels | None = None, fingerprint: str = "", like: Array | None = None
    ) -> None:
        """Moments of no samples: the zero of the addition. `labels` is None for regression targets."""
        self.dim, self.outputs, self.labels, self.fingerprint = dim, outputs, labels, fingerprint
        self.products = Products(dim, outputs, np.empty(0) if like is None else like)
        self.squares: Array = arrays.zeros((outputs,), self.products.like)
        self.exact_n = 0.0
        """n as it was summed: not a whole number where noise was added to it."""
        self.extra_weight = 0.0
        """By how much the samples' weights sum to more than n."""
        self.rounding = 0.0
        """By how much an entry of the gram may be off, in units of the lengths of its two features: see `rounded`."""
        self.rounded_factor: Rounded | None = None
        """What travels of moments that were rounded; a sum of them is exact again, and travels so."""

    # --- making them ---

    @classmethod
    def from_features(
        cls,
        features: Array,
        targets: Array,
        classes: int | Sequence[int | str] | None = None,
        fingerprint: str = "",
        *,
        weights: Array | None = None,
        copy: bool = True,
    ) -> "Moments":
        """The moments of features (n x m) with class codes 0..C-1, or with continuous targets where `classes` is None.

        `classes` is the number of classes or their labels. The features are promoted to float64 block by block. With weights w
        (n numbers, none negative) these are F'diag(w)F, F'diag(w)Y and sums of w y^2: a weight of 2 is a row twice, but n stays
        the number of samples; `weight` is their sum. With `copy=False` the arrays may be kept, and must not be written to
        afterwards.
        """
        labels = None
        if classes is not None:
            labels = tuple(range(int(classes))) if isinstance(classes, Integral) else tuple(np.asarray(classes).tolist())
        targets, outputs = samples.checked_targets(features, targets, None if labels is None else len(labels))
        weights = None if weights is None else samples.checked_weights(weights, len(features))
        n, m = features.shape
        total = cls(m, outputs, labels=labels, fingerprint=fingerprint, like=arrays.zeros((0,), features))
        found = Magnitude()
        for block in arrays.blocks(n, m):
            rows = arrays.float64(features[block])
            wanted = targets[block]
            found.look(features=rows, targets=wanted)
            total.exact_n += len(rows)
            squares = samples.squares(rows, wanted, outputs, None if weights is None else weights[block])
            total.squares = total.squares + squares
            if weights is not None:
                total.extra_weight += float(weights[block].sum()) - len(rows)
                rows, wanted = samples.weighted(rows, wanted, outputs, weights[block])
            elif len(rows) < m and copy:  # buffered rows are kept as they are, so they must be nobody else's
                rows, wanted = arrays.copy(rows), arrays.copy(wanted)
            total.products.append(rows, wanted)
        found.require_enough()
        return total.settle()

    @classmethod
    def from_arrays(
        cls,
        gram: Array,
        cross: Array,
        squares: Array,
        n: int,
        *,
        labels: Labels | None = None,
        fingerprint: str = "",
        exact_counts: bool = True,
    ) -> "Moments":
        """Moments given as full arrays, checked. `exact_counts`: whether class counts must be whole and sum to n."""
        check_symmetric(gram)
        moments = cls(len(gram), cross.shape[1], labels=labels, fingerprint=fingerprint, like=arrays.zeros((0,), gram))
        moments.exact_n, moments.squares = float(n), arrays.copy(arrays.float64(squares))
        moments.products = Products.of(*(arrays.copy(arrays.float64(part)) for part in (gram, cross)))
        check_possible(moments)
        if exact_counts:
            check_exact_counts(moments)
        return moments

    def copy(self) -> "Moments":
        twin = self._same_space(self.exact_n, self.squares, self.products.copy(), self.extra_weight)
        twin.rounding, twin.rounded_factor = self.rounding, self.rounded_factor
        return twin

    def times(self, count: int) -> "Moments":
        """Those of the same samples, each there so many times."""
        products = Products.of(count * self.lower_gram, count * self.cross)
        many = self._same_space(count * self.exact_n, count * self.squares, products, count * self.extra_weight)
        many.rounding = self.rounding
        return many

    def rounded(self, precision: str) -> "Moments":
        """The same to fewer digits ("float32", "float16" or "int8"; "float64": as they are), and to travel in so many bits."""
        found = rounding.rounded(self, precision)
        if found is None:
            return self
        less = self._same_space(self.exact_n, self.squares, rounding.products(found[0]), self.extra_weight)
        less.rounded_factor, less.rounding = found
        return less

    def _same_space(
        self, n: float = 0.0, squares: Array = None, products: Products | None = None, extra_weight: float = 0.0
    ) -> "Moments":
        """Other moments of the same features, targets and classes; of no samples where none are given."""
        twin = Moments(self.dim, self.outputs, labels=self.labels, fingerprint=self.fingerprint, like=self.products.like)
        if products is not None:
            twin.exact_n, twin.squares, twin.products, twin.extra_weight = n, squares, products, extra_weight
        return twin

    # --- reading them ---

    @property
    def n(self) -> int:
        """The number of samples."""
        return round(self.exact_n)

    @property
    def weight(self) -> float:
        """The sum of the samples' weights, n where they have none: the n of formulas in which a weight of 2 is a row twice."""
        return self.n + self.extra_weight

    @property
    def gram(self) -> Array:
        """F'F, full and symmetric."""
        return self.products.full_gram()

    @property
    def lower_gram(self) -> Array:
        """F'F, of which only the lower triangle is certain: all that a Cholesky factorisation reads."""
        return self.products.read()[0]

    @property
    def cross(self) -> Array:
        """F'Y."""
        return self.products.read()[1]

    @property
    def counts(self) -> np.ndarray:
        """Samples per class, int64; float64 where they are sums of weights or noise was added to them, and so are not whole."""
        if self.labels is None:
            raise MomentsError("moments of continuous targets have no class counts")
        sums = arrays.to_numpy(self.squares)
        whole = sums.astype(np.int64) if (abs(sums) <= codec.MAX_SAMPLES).all() else sums
        return whole if (whole == sums).all() else sums

    def factor(self) -> tuple[Array, Array]:
        """Rows R and targets T, at most m and at most n of each, with R'R the gram and R'T the cross-moment."""
        if self.products.rows_only:
            return self.products.rows()
        return recover_rows(self.lower_gram, self.cross, min(self.n, self.dim))

    def rotated(self) -> tuple["Moments", Array]:
        """The same moments with their rows turned into the triangular factor that travels, and the rotation Q with F = Q R."""
        rows, targets = self.factor()
        q, r = arrays.qr(rows)
        products = Products(self.dim, self.outputs, self.products.like)
        products.append(r, q.T @ targets)
        return self._same_space(self.exact_n, self.squares, products, self.extra_weight), q

    def with_labels(self, labels: Labels) -> "Moments":
        """Those of the same samples where there are these further classes, which nobody has yet."""
        if self.labels is None or labels[: self.outputs] != self.labels:
            raise MomentsError(f"further classes come behind those that are there: {shortened(self.labels, 40)}")
        more = len(labels) - self.outputs
        twin = Moments(self.dim, len(labels), labels=labels, fingerprint=self.fingerprint, like=self.products.like)
        twin.exact_n, twin.extra_weight, twin.rounding = self.exact_n, self.extra_weight, self.rounding
        twin.squares = arrays.concatenate([self.squares, arrays.zeros((more,), self.squares)])
        cross = arrays.concatenate([self.cross, arrays.zeros((self.dim, more), self.cross)], axis=1)
        twin.products = Products.of(arrays.copy(self.lower_gram), cross)
        return twin

    def of_outputs(self, taken: slice) -> "Moments":
        """Those of some of continuous targets."""
        cross = self.cross[:, taken]
        part = Moments(self.dim, cross.shape[1], fingerprint=self.fingerprint, like=self.products.like)
        part.exact_n, part.extra_weight, part.rounding = self.exact_n, self.extra_weight, self.rounding
        part.squares, part.products = self.squares[taken], Products.of(self.lower_gram, cross)
        return part

    def __repr__(self) -> str:
        kind = "targets" if self.labels is None else "classes"
        return f"Moments(n={self.n}, dim={self.dim}, {kind}={self.outputs})"

    # --- folding and forgetting ---

    def __iadd__(self, other: "Moments") -> "Moments":
        self.require_same_space(other)
        self.exact_n += other.exact_n
        self.extra_weight += other.extra_weight
        self.squares = self.squares + other.squares
        self.products.add(other.products)
        self.rounding, self.rounded_factor = max(self.rounding, other.rounding), None
        return self

    def __add__(self, other: "Moments") -> "Moments":
        total = self.copy()
        total += other
        return total

    def __sub__(self, other: "Moments") -> "Moments":
        """The moments without `other`'s samples, which must be part of these."""
        self.require_same_space(other)
        n, squares = self.exact_n - other.exact_n, self.squares - other.squares
        # counts are whole, or sums of weights that rounding may leave a hair below zero
        fewer = self.labels is not None and bool((squares < -min(HAIR * _largest(self.squares), 0.5)).any())
        if n < 0 or fewer:
            raise MomentsError(f"cannot take {other.n} samples out of {self.n}: they are not part of these moments")
        gram = self.lower_gram - other.lower_gram
        diagonal, hair = gram.diagonal(), HAIR * _largest(self.lower_gram.diagonal())
        if self.dim and (float(diagonal.min()) < -hair or (n == 0 and float(diagonal.max()) > hair)):
            raise MomentsError("cannot subtract moments whose samples were never added")
        if n == 0:
            return self._same_space()
        arrays.add_to_diagonal(gram, (-diagonal).clip(0.0))
        extra = self.extra_weight - other.extra_weight
        rest = self._same_space(n, squares.clip(0.0), Products.of(gram, self.cross - other.cross), extra)
        rest.rounding = max(self.rounding, other.rounding)
        check_remainder(self, rest)
        return rest

    def settle(self) -> "Moments":
        """Multiply buffered rows out in place: called once on a finished sum, reading it takes no second gram. Returns itself."""
        self.products.settle()
        return self

    @property
    def space(self) -> tuple[Any, ...]:
        """What must be the same for moments that add: see SPACE."""
        return self.dim, self.outputs, self.labels, self.fingerprint

    def require_same_space(self, other: "Moments") -> None:
        """Raise unless these can be added: the same features, targets and classes."""
        require_same_space(self.space, other.space)

    # --- as a message, a file, a vector ---

    @property
    def wire_bytes(self) -> int:
        """The length of `pack().to_bytes()`, without making it."""
        return wire.packet_size(codec.shapes(self), codec.meta(self))

    def pack(self) -> Packet:
        """The message that carries them, the smaller of its two forms: see codec."""
        return codec.pack(self)

    @classmethod
    def unpack(cls, packet: Packet, *, exact_counts: bool = True) -> "Moments":
        """The moments in a packet, whose arrays they may keep, checked. Weights or noise leave no `exact_counts`."""
        return codec.unpack(cls, packet, exact_counts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write them as safetensors."""
        wire.write_atomically(Path(path), *self.pack().pieces())

    @classmethod
    def load(cls, path: str | PathLike[str], *, exact_counts: bool = True) -> "Moments":
        return cls.unpack(Packet.from_bytes(wire.read(Path(path))), exact_counts=exact_counts)

    def vector(self) -> np.ndarray:
        """All that is private as one vector, whose length follows from `public()`: see codec. Vectors add like moments."""
        return codec.vector(self)

    def public(self) -> dict[str, Any]:
        """All that is the same for every client: the space these are moments in."""
        return codec.public(self)

    @classmethod
    def from_vector(cls, vector: np.ndarray, public: Mapping[str, Any]) -> "Moments":
        """The moments in a vector, perhaps a sum and perhaps with noise: finite numbers, but not checked further."""
        return codec.from_vector(cls, vector, public)


def require_same_space(left: tuple[Any, ...], right: tuple[Any, ...]) -> None:
    """Raise unless moments in the two spaces add."""
    for name, mine, theirs in zip(SPACE, left, right, strict=True):
        if mine != theirs:
            raise MomentsError(f"moments differ in their {name}: {shortened(mine, 40)} and {shortened(theirs, 40)}")


def _largest(array: Array) -> float:
    return float(array.max()) if len(array) else 0.0
