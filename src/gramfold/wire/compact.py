"""A matrix in fewer bits, in a broadcast: its columns in units of their largest number, which travels as it is."""

from dataclasses import dataclass

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Compact(Record, kind="compact"):
    """`numbers` times the `units` of their columns: in float16 off by at most 2^-11 of themselves, or 2^-25 of their unit."""

    numbers: Array
    units: Array

    @classmethod
    def of(cls, matrix: Array, precision: str) -> Array:
        """The matrix in float32 or float16; in float64 it stays what it is."""
        if precision == "float64":
            return matrix
        units = arrays.row_max(abs(matrix).T)
        return cls(arrays.cast(matrix / (units + (units == 0)), precision), units)

    def matrix(self) -> Array:
        return arrays.float64(self.numbers) * self.units


def full(matrix: Array) -> Array:
    """A matrix, whether or not it came in fewer bits."""
    return matrix.matrix() if isinstance(matrix, Compact) else matrix
