"""Moments: what a client says about its data, once. Everything analytic folds through this type.

With features F (n x m) and targets Y (n x C) the moments are the gram F'F, the cross-moment F'Y, the sums of squared
targets (for classes: the class counts) and n. They add up: the moments of pooled data are the sum of the clients'.
"""

from collections.abc import Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gramfold import wire
from gramfold.errors import GramfoldError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet

Labels = tuple[int | str, ...]

_SYMMETRY_TOLERANCE = 1e-9  # relative; two summation orders of one float64 gram differ by far less


class Moments:
    """Gram, cross-moment, target squares and n of a labelled feature set; `+` folds, `-` forgets.

    >>> import numpy as np
    >>> F, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    >>> left, right = Moments.from_features(F[:2], y[:2], classes=2), Moments.from_features(F[2:], y[2:], classes=2)
    >>> pooled = Moments.from_features(F, y, classes=2)
    >>> bool(np.allclose((left + right).gram, pooled.gram)), (pooled - right).n
    (True, 2)

    Held as a gram plus rows not yet multiplied out (fewer than m), whichever is less work; `gram` and `cross` settle it.
    """

    def __init__(
        self, dim: int, outputs: int, *, labels: Labels | None = None, fingerprint: str = "", like: Array | None = None
    ) -> None:
        """Moments of no samples: the zero of the addition. `labels` is None for regression targets."""
        self.dim, self.outputs, self.labels, self.fingerprint = dim, outputs, labels, fingerprint
        self._like = np.empty(0) if like is None else like
        self.n = 0
        self.squares: Array = arrays.zeros((outputs,), self._like)
        self._square: Array = None
        self._packed: np.ndarray | None = None
        """The gram as its packed lower triangle, as it came; adding it to another takes no more."""
        self._cross: Array = None
        self._mirrored = False
        self._pending: list[tuple[Array, Array]] = []
        """(rows, targets) that are part of the sum; targets are a matrix, or class codes that stand for one-hot rows."""

    @property
    def _gram(self) -> Array:
        """The multiplied-out part of the gram, None where all rows are pending."""
        if self._packed is not None:
            self._square, self._packed = wire.unpack_lower(self._packed), None
        return self._square

    @_gram.setter
    def _gram(self, gram: Array) -> None:
        self._square, self._packed = gram, None

    # --- making them ---

    @classmethod
    def from_features(
        cls,
        features: Array,
        targets: Array,
        classes: int | Sequence[int | str] | None = None,
        fingerprint: str = "",
        *,
        copy: bool = True,
    ) -> "Moments":
        """The moments of features (n x m) with class codes 0..C-1, or with continuous targets where `classes` is None.

        `classes` is the number of classes or their labels. The features are promoted to float64 block by block. Arrays that are
        not copied must not be written to afterwards, so that they need not be copied.
        """
        if features.ndim != 2:
            raise GramfoldError(f"features must be n x m, got an array of shape {tuple(features.shape)}")
        n, m = features.shape
        if len(targets) != n:
            raise GramfoldError(f"{n} feature rows but {len(targets)} targets")
        if classes is None:
            labels = None
            targets = arrays.float64(targets)
            targets = targets[:, None] if targets.ndim == 1 else targets
            outputs = targets.shape[1]
        else:
            labels = tuple(range(int(classes))) if isinstance(classes, Integral) else tuple(np.asarray(classes).tolist())
            outputs = len(labels)
            targets = _codes(targets)
            if n and not (int(targets.min()) >= 0 and int(targets.max()) < outputs):
                raise GramfoldError(f"class codes must lie in 0..{outputs - 1}, got {targets.min()}..{targets.max()}")
        total = cls(m, outputs, labels=labels, fingerprint=fingerprint, like=arrays.zeros((0,), features))
        for block in arrays.blocks(n, m):
            rows = arrays.float64(features[block])
            wanted = targets[block]
            if not (arrays.all_finite(rows) and arrays.all_finite(wanted)):
                raise GramfoldError("features and targets must be finite; found NaN or infinity")
            total.n += len(rows)
            total.squares = total.squares + (
                arrays.like(np.bincount(wanted, minlength=outputs), rows) if labels else (wanted**2).sum(0)
            )
            if len(rows) < m and copy:  # pending rows are kept as they are, so they must be nobody else's
                rows, wanted = arrays.copy(rows), arrays.copy(wanted)
            total._append(rows, wanted)
        return total

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
    ) -> "Moments":
        """Moments given as full arrays, checked."""
        moments = cls(len(gram), cross.shape[1], labels=labels, fingerprint=fingerprint, like=gram)
        scale = float(abs(gram).max()) if len(gram) else 0.0
        if tuple(gram.shape) != (moments.dim, moments.dim) or not float(abs(gram - gram.T).max()) <= (
            _SYMMETRY_TOLERANCE * scale
        ):
            raise GramfoldError("the gram matrix is not square and symmetric")
        moments.n, moments.squares = int(n), arrays.copy(arrays.float64(squares))
        moments._gram, moments._cross = arrays.copy(arrays.float64(gram)), arrays.copy(arrays.float64(cross))
        moments.check()
        return moments

    def copy(self) -> "Moments":
        twin = Moments(self.dim, self.outputs, labels=self.labels, fingerprint=self.fingerprint, like=self._like)
        twin.n, twin.squares, twin._mirrored, twin._pending = self.n, self.squares, self._mirrored, list(self._pending)
        if self._gram is not None:
            twin._gram, twin._cross = arrays.copy(self._gram), arrays.copy(self._cross)
        return twin

    # --- reading them ---

    @property
    def gram(self) -> Array:
        """F'F, full and symmetric. Do not write to it."""
        if not self._mirrored:
            arrays.mirror(self.lower_gram)
            self._mirrored = True
        return self._gram

    @property
    def lower_gram(self) -> Array:
        """F'F, of which only the lower triangle is certain: all that a Cholesky factorisation reads."""
        self._settle()
        return self._gram

    @property
    def cross(self) -> Array:
        """F'Y. Do not write to it."""
        self._settle()
        return self._cross

    @property
    def counts(self) -> np.ndarray:
        """Samples per class."""
        if self.labels is None:
            raise GramfoldError("moments of continuous targets have no class counts")
        return np.asarray(np.rint(arrays.to_numpy(self.squares)), dtype=np.int64)

    def rotated(self) -> tuple["Moments", Array]:
        """The same moments with their rows turned into the triangular factor that travels, and the rotation Q with F = Q R."""
        rows, targets = self.factor()
        q, r = arrays.qr(rows)
        twin = Moments(self.dim, self.outputs, labels=self.labels, fingerprint=self.fingerprint, like=self._like)
        twin.n, twin.squares, twin._pending = self.n, self.squares, [(r, q.T @ targets)]
        return twin, q

    def factor(self) -> tuple[Array, Array]:
        """Rows R and targets T, at most m of each, with R'R the gram and R'T the cross-moment."""
        if self._gram is None:
            return self._joined()
        rows, solve = arrays.gram_rows(self.lower_gram)
        return rows, solve @ self.cross

    def __repr__(self) -> str:
        kind = "targets" if self.labels is None else "classes"
        return f"Moments(n={self.n}, dim={self.dim}, {kind}={self.outputs})"

    # --- folding and forgetting ---

    def __iadd__(self, other: "Moments") -> "Moments":
        self.require_same_space(other)
        self.n += other.n
        self.squares = self.squares + other.squares
        mine = self._gram
        if other._packed is not None and mine is not None:
            wire.add_lower(mine, other._packed)
            self._cross += other._cross
            self._mirrored = False
        elif other._gram is not None:
            if mine is None:
                self._gram, self._cross = arrays.copy(other._gram), arrays.copy(other._cross)
            else:
                mine += other._gram
                self._cross += other._cross
            self._mirrored = False
        for rows, targets in list(other._pending):  # a list of its own: `a += a` appends to the one it reads
            self._append(rows, targets)
        return self

    def __add__(self, other: "Moments") -> "Moments":
        total = self.copy()
        total += other
        return total

    def __sub__(self, other: "Moments") -> "Moments":
        """The moments without `other`'s samples, which must be part of these."""
        self.require_same_space(other)
        fewer = self.labels is not None and bool((self.counts < other.counts).any())
        if self.n < other.n or fewer:
            raise GramfoldError(f"cannot take {other.n} samples out of {self.n}: they are not part of these moments")
        rest = Moments(self.dim, self.outputs, labels=self.labels, fingerprint=self.fingerprint, like=self._like)
        rest.n, rest.squares = self.n - other.n, (self.squares - other.squares).clip(0.0)
        rest._gram, rest._cross = self.lower_gram - other.lower_gram, self.cross - other.cross
        # rounding may leave a diagonal entry a hair below zero; more than a hair means those samples were never in
        diagonal, hair = rest._gram.diagonal(), 1e-9 * float(self._gram.diagonal().max()) if self.dim else 0.0
        nothing_left = rest.n == 0
        if self.dim and (float(diagonal.min()) < -hair or (nothing_left and float(diagonal.max()) > hair)):
            raise GramfoldError("cannot subtract moments whose samples were never added")
        if nothing_left:
            return Moments(self.dim, self.outputs, labels=self.labels, fingerprint=self.fingerprint, like=self._like)
        arrays.add_to_diagonal(rest._gram, (-diagonal).clip(0.0))
        return rest

    def _append(self, rows: Array, targets: Array) -> None:
        self._pending.append((rows, targets))
        if sum(len(rows) for rows, _ in self._pending) >= self.dim:
            self._settle()

    def _settle(self) -> None:
        """Multiply out the pending rows."""
        if self._gram is None:
            self._gram = arrays.zeros((self.dim, self.dim), self._like)
            self._cross = arrays.zeros((self.dim, self.outputs), self._like)
        if self._pending:
            if all(targets.ndim == 1 for _, targets in self._pending):
                rows = arrays.concatenate([rows for rows, _ in self._pending])
                self._cross += arrays.class_sums(rows, np.concatenate([codes for _, codes in self._pending]), self.outputs)
            else:
                rows, targets = self._joined()
                self._cross += rows.T @ targets
            arrays.add_gram(self._gram, rows)
            self._pending = []
            self._mirrored = False

    def _joined(self) -> tuple[Array, Array]:
        empty = (arrays.zeros((0, self.dim), self._like), arrays.zeros((0, self.outputs), self._like))
        pairs = self._pending or [empty]
        wanted = [arrays.one_hot(part, self.outputs, rows) if part.ndim == 1 else part for rows, part in pairs]
        return arrays.concatenate([rows for rows, _ in pairs]), arrays.concatenate(wanted)

    def require_same_space(self, other: "Moments") -> None:
        """Raise unless these can be added: the same features, targets and classes."""
        for name, mine, theirs in (
            ("feature dimension", self.dim, other.dim),
            ("number of targets", self.outputs, other.outputs),
            ("class list", self.labels, other.labels),
            ("feature map", self.fingerprint, other.fingerprint),
        ):
            if mine != theirs:
                raise GramfoldError(f"moments differ in their {name}: {_short(mine)} and {_short(theirs)}")

    def check(self) -> None:
        """Raise unless these can be the moments of n samples: shapes, finiteness, diagonal, counts."""
        squares = arrays.to_numpy(self.squares)
        held, numbers, diagonal = [self._joined()], [squares], None
        if self._packed is not None:
            numbers += [self._packed, self._cross]
            diagonal = self._packed[wire.lower_diagonal(self.dim)]
        elif self._gram is not None:
            held.append((self._gram, self._cross))
            diagonal = self._gram.diagonal()
        for left, right in held:
            if tuple(left.shape) != (len(right), self.dim) or tuple(right.shape) != (len(left), self.outputs):
                raise GramfoldError(f"moments of wrong shape: {tuple(left.shape)} with {tuple(right.shape)}")
        if squares.shape != (self.outputs,) or (self.labels is not None and len(self.labels) != self.outputs):
            raise GramfoldError(f"moments of {self.outputs} targets with target squares of shape {squares.shape}")
        if not all(arrays.all_finite(part) for part in (*numbers, *(part for pair in held for part in pair))):
            raise GramfoldError("moments must be finite; found NaN or infinity")
        if diagonal is not None and self.dim and float(diagonal.min()) < 0:
            raise GramfoldError("the gram matrix has a negative diagonal entry")
        if self.n < 0 or squares.min(initial=0.0) < 0 or sum(len(rows) for rows, _ in self._pending) > self.n:
            raise GramfoldError(f"these cannot be the moments of {self.n} samples")
        if self.labels is not None and ((squares != np.rint(squares)).any() or squares.sum() != self.n):
            raise GramfoldError(f"class counts sum to {squares.sum():g}, but there are {self.n} samples")

    # --- on the wire ---

    def _form(self) -> tuple[str, int]:
        """How these travel, and with how many rows: the triangle, or the QR factor where that is smaller."""
        rows = sum(len(rows) for rows, _ in self._pending)
        if self._gram is None and rows < self.dim:
            return "factor", rows
        return "triangle", self.dim

    def packed_shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shapes and dtypes of the arrays of `pack()`, without making it."""
        form, rows = self._form()
        present = int((self.squares > 0).sum())
        size = wire.lower_size(self.dim) if form == "triangle" else wire.upper_size(rows, self.dim)
        squares = "F64" if self.labels is None else "I64"
        return {"gram": ((size,), "F64"), "cross": ((rows, present), "F64"), "squares": ((self.outputs,), squares)}

    def packed_meta(self) -> dict[str, Any]:
        """The metadata of `pack()`."""
        form, rows = self._form()
        labels = None if self.labels is None else list(self.labels)
        return {
            "moments": form, "n": self.n, "dim": self.dim, "rows": rows, "labels": labels, "fingerprint": self.fingerprint,
        }  # fmt: skip

    @property
    def wire_bytes(self) -> int:
        """The length of `pack().to_bytes()`, without making it."""
        return wire.serialised_size(self.packed_shapes(), Packet({}, self.packed_meta())._metadata())

    def pack(self) -> Packet:
        """Triangle and cross-moment, or, where fewer numbers, R and Q'Y of F = QR: the same moments exactly.

        Columns of targets that are all zero (absent classes) do not travel.
        """
        form, _ = self._form()
        present = arrays.to_numpy(self.squares > 0)
        if form == "triangle":
            gram, cross = wire.pack_lower(self.lower_gram), arrays.to_numpy(self.cross)
        else:
            rows, targets = self.factor()
            q, r = arrays.qr(rows)
            gram, cross = wire.pack_upper(r), arrays.to_numpy(q.T @ targets)
        squares = arrays.to_numpy(self.squares) if self.labels is None else self.counts
        return Packet({"gram": gram, "cross": np.ascontiguousarray(cross[:, present]), "squares": squares}, self.packed_meta())

    @classmethod
    def unpack(cls, packet: Packet) -> "Moments":
        """The moments in a packet, checked."""
        try:
            meta = packet.meta
            form, n, dim, rows = meta["moments"], *(_whole(meta[key]) for key in ("n", "dim", "rows"))
            labels = None if meta["labels"] is None else tuple(meta["labels"])
            gram, sent, squares = (np.asarray(packet[key], dtype=np.float64) for key in ("gram", "cross", "squares"))
            present = squares > 0
            fits = squares.ndim == 1 and sent.shape == (rows, present.sum()) and rows <= dim
            if form not in ("triangle", "factor") or not fits:
                raise ValueError(f"a {form!r} of {rows} rows and {dim} columns with a cross-moment of shape {sent.shape}")
            moments = cls(dim, len(squares), labels=labels, fingerprint=str(meta["fingerprint"]))
            moments.n, moments.squares = n, squares
            if form == "factor":
                gram = wire.unpack_upper(gram, rows, dim)
            elif (gram.shape, rows) != ((wire.lower_size(dim),), dim):
                raise ValueError(f"{gram.size} numbers are not the triangle of a {dim} x {dim} matrix")
            cross = np.zeros((rows, len(squares)))
            cross[:, present] = sent
            if form == "triangle":
                moments._packed, moments._cross = gram, cross
            else:
                moments._pending = [(gram, cross)]
        except (KeyError, TypeError, ValueError) as error:
            raise GramfoldError(f"not a message of moments: {error}") from None
        moments.check()
        return moments

    def save(self, path: str | PathLike[str]) -> None:
        """Write them as safetensors."""
        wire.write_atomically(Path(path), *self.pack().pieces())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Moments":
        return cls.unpack(Packet.from_bytes(wire.read(Path(path))))


def _short(value: object) -> str:
    text = str(value) or "none"
    return text if len(text) <= 40 else text[:37] + "..."


def _codes(targets: Array) -> Array:
    """Class codes as whole numbers."""
    codes = arrays.to_numpy(targets)
    if codes.ndim != 1 or (codes.dtype.kind == "f" and not (np.isfinite(codes).all() and (codes == np.rint(codes)).all())):
        raise GramfoldError("class codes must be whole numbers, one per sample")
    return codes.astype(np.int64)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value
