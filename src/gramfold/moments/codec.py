"""Moments as a message, and as a vector of fixed length.

A message is as small as it can be: its form follows from n, the number of features m and the classes present, and from nothing
else. Fewer samples than features travel as the "factor", R and Q'Y of F = QR with n rows; others as the "triangle", the gram's
lower one and the cross-moment. Both are the same moments exactly. Columns of targets that are all zero (absent classes) do not
travel. Moments that were rounded travel as the rounded factor that they are, at any n: see rounding.

A vector has a length that follows from the public metadata alone: the gram's lower triangle row by row, the cross-moment, the
squares, n, and by how much the weights sum to more than n. So it can be summed under encryption, and noise can be added to it.
"""

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold import wire
from gramfold.errors import MessageError
from gramfold.moments import rounding
from gramfold.moments.checks import check_exact_counts, check_possible
from gramfold.moments.products import Products
from gramfold.moments.rounding import Rounded
from gramfold.numerics import arrays
from gramfold.wire import Packet, Shapes

if TYPE_CHECKING:
    from gramfold.moments.value import Moments

MAX_SAMPLES = 2**53
"""The last whole number that a float is sure of."""
ROUNDED = "rounded"
MAX_DIM = 2**20
"""Features: a gram of as many would have 8 TB. Moments of no samples would have any number of them for nothing."""


# --- as a message ---


def form(n: float, dim: int) -> tuple[str, int]:
    """How moments travel, and with how many rows of cross-moment. An n to which noise was added says nothing about rows."""
    return ("factor", int(n)) if 0 <= n < dim and n == int(n) else ("triangle", dim)


def shapes(moments: "Moments") -> Shapes:
    """Shapes and dtypes of the arrays of `pack`, without making them."""
    if moments.rounded_factor is not None:
        squares = _squares(moments)
        return {**moments.rounded_factor.shapes(squares != 0), "squares": (squares.shape, wire.dtype_name(squares))}
    kind, rows = form(moments.exact_n, moments.dim)
    size = wire.lower_size(moments.dim) if kind == "triangle" else wire.upper_size(rows, moments.dim)
    squares = _squares(moments)
    return {
        "gram": ((size,), "F64"), "cross": ((rows, int((squares != 0).sum())), "F64"),
        "squares": (squares.shape, "I64" if squares.dtype == np.int64 else "F64"),
    }  # fmt: skip


def meta(moments: "Moments") -> dict[str, Any]:
    """The metadata of `pack`."""
    n, rounded = moments.exact_n, moments.rounded_factor
    how = {} if rounded is None else {"precision": rounded.precision, "rounding": moments.rounding}
    return {
        "kind": moments.kind, "form": form(n, moments.dim)[0] if rounded is None else ROUNDED, **how,
        "n": int(n) if n == int(n) else n, "dim": moments.dim,
        "labels": None if moments.labels is None else list(moments.labels), "fingerprint": moments.fingerprint,
        **({"extra_weight": moments.extra_weight} if moments.extra_weight else {}),
    }  # fmt: skip


def pack(moments: "Moments") -> Packet:
    if moments.rounded_factor is not None:
        squares = _squares(moments)
        return Packet({**moments.rounded_factor.pack(squares != 0), "squares": squares}, meta(moments))
    kind, n = form(moments.exact_n, moments.dim)
    if kind == "triangle":
        gram, cross = _triangle(moments), arrays.to_numpy(moments.cross)
    else:
        rows, targets = moments.factor()
        if not _is_triangular(rows):
            q, rows = arrays.qr(rows)
            targets = q.T @ targets
        gram, cross = wire.pack_upper(_padded(rows, n)), _padded(targets, n)
    squares = _squares(moments)
    return Packet({"gram": gram, "cross": np.ascontiguousarray(cross[:, squares != 0]), "squares": squares}, meta(moments))


def unpack(kind: type["Moments"], packet: Packet, exact_counts: bool) -> "Moments":
    """The moments in a packet, checked. Sizes that it claims are compared with what came before anything is made of them."""
    try:
        message = packet.meta
        n, dim = _number(message["n"]), _whole(message["dim"])
        if dim > MAX_DIM:
            raise ValueError(f"{dim} features")
        expected, rows = form(n, dim)
        labels = None if message["labels"] is None else tuple(message["labels"])
        squares = np.asarray(packet["squares"], dtype=np.float64)
        if squares.ndim != 1:
            raise ValueError(f"target squares of shape {squares.shape}")
        moments = kind(dim, len(squares), labels=labels, fingerprint=str(message["fingerprint"]))
        moments.exact_n, moments.squares, moments.extra_weight = n, squares, _number(message.get("extra_weight", 0.0))
        if message["form"] == ROUNDED:
            _read_rounded(moments, packet)
            return _checked(moments, exact_counts)
        gram, sent = (np.asarray(packet[key], dtype=np.float64) for key in ("gram", "cross"))
        size = wire.lower_size(dim) if expected == "triangle" else wire.upper_size(rows, dim)
        if message["form"] != expected or gram.shape != (size,):
            raise ValueError(f"a {message['form']!r} of {gram.size} numbers for {n:g} samples of {dim} features")
        if sent.shape != (rows, np.count_nonzero(squares)):
            raise ValueError(f"a cross-moment of shape {sent.shape} with target squares of shape {squares.shape}")
        cross = np.zeros((rows, len(squares)))
        cross[:, squares != 0] = sent
        if expected == "triangle":
            moments.products = Products.of(gram, cross)
        elif rows:
            moments.products.append(wire.unpack_upper(gram, rows, dim), cross)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise MessageError(f"not a message of moments: {error}") from None
    return _checked(moments, exact_counts)


def _checked(moments: "Moments", exact_counts: bool) -> "Moments":
    check_possible(moments)
    if exact_counts:
        check_exact_counts(moments)
    return moments


def _read_rounded(moments: "Moments", packet: Packet) -> None:
    n, moments.rounding = moments.exact_n, _number(packet.meta["rounding"])
    if not (n == int(n) > 0 and 0 <= moments.rounding <= rounding.COARSEST):
        raise ValueError(f"{n:g} samples, rounded by {moments.rounding:g}")
    rows = int(min(n, moments.dim))
    moments.rounded_factor = Rounded.unpack(packet, str(packet.meta["precision"]), rows, moments.dim, moments.squares != 0)
    moments.products = rounding.products(moments.rounded_factor)


def _triangle(moments: "Moments") -> np.ndarray:
    """The gram's packed lower triangle; as it came, where nothing was added to it since."""
    packed = moments.products.packed
    if packed is None or moments.products.buffer:
        return wire.pack_lower(moments.lower_gram)
    kept = packed.view()
    kept.flags.writeable = False
    return kept


def _is_triangular(rows: arrays.Array) -> bool:
    """Whether rows are a factor as it travels, and travel as they are."""
    below = arrays.to_numpy(rows)[1:]
    return not (below[:, :1].any() or np.tril(below).any())


def _padded(rows: arrays.Array, n: int) -> np.ndarray:
    """The rows and zeros, n in all: a factor that was recovered from a gram may have fewer."""
    if len(rows) == n:
        return arrays.to_numpy(rows)
    padded = np.zeros((n, rows.shape[1]))
    padded[: len(rows)] = arrays.to_numpy(rows)
    return padded


def _squares(moments: "Moments") -> np.ndarray:
    return arrays.to_numpy(moments.squares) if moments.labels is None else moments.counts


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SAMPLES:
        raise ValueError(f"expected a whole number, got {value!r}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (isfinite(value) and abs(value) <= MAX_SAMPLES):
        raise ValueError(f"expected a number of samples, got {value!r}")
    return float(value)


# --- as a vector ---


def vector(moments: "Moments") -> np.ndarray:
    cross, squares = arrays.to_numpy(moments.cross), arrays.to_numpy(moments.squares)
    return np.concatenate([_triangle(moments), cross.reshape(-1), squares, [moments.exact_n, moments.extra_weight]])


def public(moments: "Moments") -> dict[str, Any]:
    labels = None if moments.labels is None else list(moments.labels)
    return {
        "kind": moments.kind, "dim": moments.dim, "outputs": moments.outputs, "labels": labels,
        "fingerprint": moments.fingerprint,
    }  # fmt: skip


def vector_length(public: Mapping[str, Any]) -> int:
    dim, outputs = _whole(public["dim"]), _whole(public["outputs"])
    return wire.lower_size(dim) + dim * outputs + outputs + 2


def from_vector(kind: type["Moments"], vector: np.ndarray, public: Mapping[str, Any]) -> "Moments":
    try:
        length, dim, outputs = vector_length(public), public["dim"], public["outputs"]
        labels = None if public["labels"] is None else tuple(public["labels"])
        if vector.shape != (length,) or (labels is not None and len(labels) != outputs):
            raise ValueError(f"an array of shape {vector.shape}, where {length} numbers were expected")
        moments = kind(dim, outputs, labels=labels, fingerprint=str(public["fingerprint"]))
    except (KeyError, TypeError, ValueError) as error:
        raise MessageError(f"not a vector of moments: {error}") from None
    if not arrays.all_finite(vector):
        raise MessageError("moments must be finite; found NaN or infinity")
    own = np.array(vector, dtype=np.float64)
    ends = np.cumsum([wire.lower_size(dim), dim * outputs, outputs])
    gram, cross, moments.squares, n = np.split(own, ends)
    moments.exact_n, moments.extra_weight = float(n[0]), float(n[1])
    moments.products = Products.of(gram, cross.reshape(dim, outputs))
    return moments
