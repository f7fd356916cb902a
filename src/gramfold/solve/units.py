"""In which units a ridge penalises its features, from moments that hold n and all sums.

Where a feature is always one, its weight is an intercept and has no penalty. Others have theirs in units of their variance,
unless features share a unit:

    v_j = S_jj / n - (S_bj / n)^2          b the intercept
    W   = (S + beta P)^-1 M                P = diag(v) or I, zero at b

That is the ridge of centred features, standardised or not: shifting a feature changes nothing but the intercept, and with P =
diag(v) neither does scaling one. Without an intercept it is (S + beta I)^-1 M, as papers write it.

In a table what matters may do so along straight lines. So the features that curve may be dearer than the columns themselves: two
blocks, a variance each, as far as generalised cross-validation tells them apart.
"""

from dataclasses import dataclass, replace

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import SMALLEST
from gramfold.solve.gcv import mean_squared_row

CONSTANT = 1e-13
"""A variance below so much of the mean square is rounding: the feature is always the same."""
STEP, DEAREST = 10.0, 1000.0
"""How much dearer curved features are made at a time, and at most: then a fit is all but straight."""


@dataclass(frozen=True)
class Units:
    """Which feature is always one (None: none), and whether all share a unit (None: not known, so that both are tried)."""

    intercept: int | None = None
    shared: bool | None = True
    straight: int = 0
    """So many features, the first ones, are a table's columns and the intercept; others curve. Nought: nobody asks."""
    dearer: float = 1.0
    """How many times more than a straight one a curved feature is penalised."""

    def tried(self, beta: float | None) -> tuple["Units", ...]:
        """These, or both where that is to be found out. A penalty that is given is one for all."""
        if self.shared is not None:
            return (self,)
        return tuple(replace(self, shared=shared) for shared in ((True, False) if beta is None else (True,)))

    @property
    def straighter(self) -> "Units | None":
        """The next to try, in which curved features are dearer; None: no more."""
        dearer = self.dearer * STEP
        return replace(self, dearer=dearer) if self.straight and dearer <= DEAREST else None


PLAIN = Units()
"""As papers write it."""


def of_penalties(gram: Array, n: float, units: Units, rounding: float = 0.0) -> tuple[Array | None, float]:
    """P (m x 1; None: I, and no intercept), and the mean square of a feature vector in these units. Of the gram the lower
    triangle is read; `rounding`: by how much its entries may be off."""
    intercept = units.intercept
    if intercept is None:
        return None, mean_squared_row(gram, n)
    sums, n = arrays.concatenate([gram[intercept, :intercept], gram[intercept:, intercept]]), gram[intercept, intercept]
    squares = gram.diagonal() / n
    each, variance = of_features(squares - (sums / n) ** 2, squares, bool(units.shared), max(CONSTANT, rounding))
    if units.dearer != 1.0:
        each[units.straight :] *= units.dearer
    each[intercept] = variance[intercept] = 0.0
    return each[:, None], float((variance / (each + (each == 0))).sum()) or 1.0


def of_features(variance: Array, squares: Array, shared: bool, constant: float = CONSTANT) -> tuple[Array, Array]:
    """The unit of each feature's penalty, from its variance and its mean square, and the variance without rounding. One that is
    always the same tells nothing: its unit is whatever keeps its weight at nothing."""
    variance = variance * ((variance > constant * squares) & (variance > SMALLEST**2))
    if shared:
        return variance * 0.0 + 1.0, variance
    nothing = squares <= SMALLEST**2
    return variance + (variance == 0) * (squares * ~nothing + nothing), variance
