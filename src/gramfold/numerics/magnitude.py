"""How large numbers may be whose products are to be numbers too: the one place that says so, for moments and for kernels."""

import numpy as np

from gramfold.errors import SamplesError
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

LARGEST, SMALLEST = 1e70, 1e-70
"""Of features and targets: their fourth powers are still numbers, and not zero."""


class Magnitude:
    """The largest features and targets of those that were looked at."""

    def __init__(self) -> None:
        self._found = {"features": 0.0, "targets": 0.0}

    def look(self, **parts: Array) -> None:
        """Raise for `features` or `targets` that are no numbers, or whose products would be none."""
        for what, part in parts.items():
            largest = arrays.extent(part)
            if not np.isfinite(largest):
                raise SamplesError("features and targets must be finite; found NaN or infinity")
            if largest > LARGEST:
                raise SamplesError(f"{what} of {largest:.0e} overflow when they are multiplied; scale the {what}")
            self._found[what] = max(self._found[what], largest)

    def require_enough(self) -> None:
        """Raise where all numbers are so small that their products vanish."""
        for what, largest in self._found.items():
            if 0 < largest < SMALLEST:
                raise SamplesError(f"no {what} above {largest:.0e}: their products vanish; scale the {what}")


def require_products(**parts: Array) -> None:
    """Raise unless `features` and `targets` can be multiplied."""
    magnitude = Magnitude()
    magnitude.look(**parts)
    magnitude.require_enough()
