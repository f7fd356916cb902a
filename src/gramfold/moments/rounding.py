"""Moments in fewer bits than they were computed in, for those who count bytes; how far that moves them is known.

With F = QR the gram is R'R and the cross-moment R'T, T = Q'Y. What is rounded is R and T, never the gram: whatever is lost, there
are samples with these moments, and noise on a factor is harmless where noise on a gram would hide its small eigenvalues. Columns
keep their lengths to the last digit, so squares of features and targets stay what they are. With columns off by at most a part e
of their lengths, entry ij of the gram is off by at most 2e + e^2 times the lengths of features i and j; in a sum of clients too.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gramfold import wire
from gramfold.moments.products import Products
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire.digits import PRECISIONS, require_precision

if TYPE_CHECKING:
    from gramfold.moments.value import Moments

COARSEST = 0.1
"""The most that an entry may be off. Where int8 would be, float16 is sent."""
STEPS = 127
EXPLAINED = 1e-6
"""By how much targets may seem to be explained to more than all before a Cholesky factor is given up: it has no digits left."""


def bytes_per_number(precision: str) -> int:
    return {"float64": 8, "float32": 4, "float16": 2, "int8": 1}[precision]


def of_targets(precision: str) -> str:
    """How the targets' part travels: they are few, and one byte would cost more than it saves."""
    return "float16" if precision == "int8" else precision


@dataclass(frozen=True)
class Rounded:
    """R (r x m, upper trapezoid) and T (r x C) as they travel: columns of length one, rounded, and the lengths they have. In int8
    a row has a unit too (`units`), and R's diagonal, which is far larger than the rest, is apart."""

    precision: str
    factor: Array
    targets: Array
    lengths: Array
    target_lengths: Array
    diagonal: Array = None
    units: Array = None

    def exact(self) -> tuple[Array, Array]:
        """R and T in float64, as both sides of a message compute with them."""
        rows, targets = arrays.float64(self.factor), arrays.float64(self.targets)
        if self.precision == "int8":
            rows = rows * (arrays.float64(self.units) / STEPS)[:, None]
            arrays.add_to_diagonal(rows[:, : len(rows)], arrays.float64(self.diagonal))
        return _stretched(rows, self.lengths), _stretched(targets, self.target_lengths)

    # --- as a message ---

    @property
    def names(self) -> tuple[str, ...]:
        return ("factor", "targets", "lengths", "target_lengths", *(("diagonal", "units") if self.precision == "int8" else ()))

    def shapes(self, present: np.ndarray) -> wire.Shapes:
        """Shapes and dtypes of `pack`, for the columns of targets that are `present`."""
        rows, dim = self.factor.shape
        size, columns = wire.upper_size(rows, dim), int(present.sum())
        sizes = {"factor": (size,), "targets": (rows, columns), "lengths": (dim,), "target_lengths": (columns,),
                 "diagonal": (rows,), "units": (rows,)}  # fmt: skip
        return {name: (sizes[name], wire.dtype_name(getattr(self, name))) for name in self.names}

    def pack(self, present: np.ndarray) -> dict[str, np.ndarray]:
        parts = {name: arrays.to_numpy(getattr(self, name)) for name in self.names}
        parts["factor"] = wire.pack_upper(parts["factor"])
        parts["targets"] = np.ascontiguousarray(parts["targets"][:, present])
        parts["target_lengths"] = parts["target_lengths"][present]
        return parts

    @classmethod
    def unpack(cls, packet: wire.Packet, precision: str, rows: int, dim: int, present: np.ndarray) -> "Rounded":
        """The inverse of `pack`. Raises ValueError unless all that came has the size and the type that it must have."""
        if precision not in PRECISIONS[1:]:
            raise ValueError(f"moments in {precision!r}")
        kinds = {"factor": precision, "targets": of_targets(precision), "lengths": "float64", "target_lengths": "float64",
                 **({"diagonal": "float32", "units": "float32"} if precision == "int8" else {})}  # fmt: skip
        columns = int(present.sum())
        sizes = {"factor": (wire.upper_size(rows, dim),), "targets": (rows, columns), "lengths": (dim,),
                 "target_lengths": (columns,), "diagonal": (rows,), "units": (rows,)}  # fmt: skip
        for name, dtype in kinds.items():
            if packet[name].shape != sizes[name] or str(packet[name].dtype) != dtype:
                raise ValueError(f"{name} of shape {packet[name].shape} in {packet[name].dtype}")
            if not arrays.all_finite(packet[name]):
                raise ValueError(f"{name} that are not finite")
        targets, lengths = np.zeros((rows, len(present)), packet["targets"].dtype), np.zeros(len(present))
        targets[:, present], lengths[present] = packet["targets"], packet["target_lengths"]
        apart = [packet[name] for name in ("diagonal", "units")] if precision == "int8" else []
        return cls(precision, wire.unpack_upper(packet["factor"], rows, dim), targets, packet["lengths"], lengths, *apart)


def rounded(moments: "Moments", precision: str) -> tuple[Rounded, float] | None:
    """What travels of moments in that precision, and by how much entries may be off; None where they travel as they are: moments
    of no samples are small, and an n with noise says nothing about rows."""
    n = moments.exact_n
    require_precision(precision)
    if precision == "float64" or n <= 0 or n != int(n) or not moments.dim:
        return None
    factor, targets = _triangular(moments)
    found, off = _round(factor, targets, precision)
    return (found, off) if off <= COARSEST or precision != "int8" else _round(factor, targets, "float16")


def products(found: Rounded) -> Products:
    """The sums that rounded factors stand for."""
    rows, targets = found.exact()
    made = Products(rows.shape[1], targets.shape[1], arrays.zeros((0,), rows))
    made.append(rows, targets)
    return made


def _triangular(moments: "Moments") -> tuple[Array, Array]:
    """R, upper trapezoid, with min(n, m) rows, and T."""
    if not moments.products.rows_only:
        found = _cholesky(moments)
        if found is not None:
            return found
    rows, targets = moments.factor()
    q, factor = arrays.qr(rows)
    targets, missing = q.T @ targets, int(min(moments.exact_n, moments.dim)) - factor.shape[0]
    if missing > 0:  # recovered from a gram of less rank
        factor = arrays.concatenate([factor, arrays.zeros((missing, factor.shape[1]), factor)])
        targets = arrays.concatenate([targets, arrays.zeros((missing, targets.shape[1]), targets)])
    return factor, targets


def _cholesky(moments: "Moments") -> tuple[Array, Array] | None:
    """R and T of at least as many samples as features; None where the gram is too close to singular for that."""
    gram, cross = moments.lower_gram, moments.cross
    size = gram.diagonal().clip(0.0) ** 0.5
    size = size + (size == 0)
    lower = arrays.cholesky(gram / size[:, None] / size)
    if lower is None:
        return None
    targets = arrays.solve_lower(lower, cross / size[:, None])
    explained, squares = (targets**2).sum(0), moments.squares
    return (lower.T * size, targets) if bool((explained <= squares * (1 + EXPLAINED)).all()) else None


def _round(factor: Array, targets: Array, precision: str) -> tuple[Rounded, float]:
    lengths, target_lengths = _lengths(factor), _lengths(targets)
    unit_targets = arrays.cast(_shrunk(targets, target_lengths), of_targets(precision))
    unit, diagonal, units = _shrunk(factor, lengths), None, None
    if precision == "int8":
        diagonal = arrays.cast(arrays.copy(unit.diagonal()), "float32")
        arrays.add_to_diagonal(unit[:, : len(unit)], -arrays.copy(unit.diagonal()))
        units = arrays.cast(arrays.row_max(abs(unit)), "float32")
        scale = arrays.float64(units) + (units == 0)
        unit = arrays.rint(unit / scale[:, None] * STEPS).clip(-STEPS, STEPS)
    found = Rounded(precision, arrays.cast(unit, precision), unit_targets, lengths, target_lengths, diagonal, units)
    rows, wanted = found.exact()
    # each column gets back the length that rounding took
    found = Rounded(precision, found.factor, unit_targets, _kept(lengths, _lengths(rows)),
                    _kept(target_lengths, _lengths(wanted)), diagonal, units)  # fmt: skip
    rows, wanted = found.exact()
    off = max(_most(_lengths(rows - factor), lengths), _most(_lengths(wanted - targets), target_lengths))
    return found, 2 * off + off**2


def _lengths(columns: Array) -> Array:
    return (columns**2).sum(0) ** 0.5


def _shrunk(columns: Array, lengths: Array) -> Array:
    return columns / (lengths + (lengths == 0))


def _stretched(columns: Array, lengths: Array) -> Array:
    return columns * arrays.like(lengths, columns)


def _kept(lengths: Array, found: Array) -> Array:
    return lengths * (lengths / (found + (found == 0)))


def _most(lost: Array, lengths: Array) -> float:
    return float((lost / (lengths + (lengths == 0))).max()) if len(lost) else 0.0
