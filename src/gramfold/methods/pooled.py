"""The ridge that a server solves from folded moments."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import Criterion
from gramfold.solve.leave_one_out import mean_leverage
from gramfold.solve.ridge import Factor, Penalty, factorise
from gramfold.solve.temperature import temperature_of_moments
from gramfold.solve.units import PLAIN, Units, of_penalties


@dataclass(frozen=True)
class PooledRidge:
    """`beta`; `penalty`, that of each feature; `factor`, that of the system; and, in the end, the weights."""

    total: Moments
    beta: float
    penalty: Penalty
    factor: Factor
    dearer: float = 1.0
    """How many times more than straight features curved ones are penalised."""

    @classmethod
    def of(cls, total: Moments, beta: float | None, units: Units = PLAIN, caution: float = 1.0) -> "PooledRidge":
        """beta None: by GCV, with that caution; so, where it is not known whether features share a unit, are units, and how much
        dearer than straight features curved ones are."""
        return cls.of_targets([total], beta, units, caution)[0]

    @classmethod
    def of_targets(
        cls, totals: Sequence[Moments], beta: float | None, units: Units = PLAIN, caution: float = 1.0
    ) -> list["PooledRidge"]:
        """One for each of several sets of targets of the same samples, whose grams are one: what two try is factorised once."""
        sides = [(total.cross, float(total.squares.sum())) for total in totals]
        criterion = Criterion(totals[0].lower_gram, sides, totals[0].weight, caution)
        return [cls._best(total, side, criterion, beta, units) for side, total in enumerate(totals)]

    @classmethod
    def _best(cls, total: Moments, side: int, criterion: Criterion, beta: float | None, units: Units) -> "PooledRidge":
        ways = units.tried(beta)
        compared = beta is None and (len(ways) > 1 or units.straighter is not None)
        best = min((_Trial.of(total, side, criterion, beta, way, compared) for way in ways), key=lambda trial: trial.score)
        while beta is None and (way := best.units.straighter) is not None:
            straighter = _Trial.of(total, side, criterion, beta, way)
            if not straighter.score < best.score:
                break
            best = straighter
        return cls(total, best.beta, best.penalty, factorise(total.lower_gram, best.penalty), best.units.dearer)

    @functools.cached_property
    def weights(self) -> Array:
        return self.factor.solve(self.total.cross)

    @functools.cached_property
    def leverage(self) -> float:
        """The mean over all samples."""
        return mean_leverage(self.factor, self.penalty, self.total.weight)

    @property
    def spread(self) -> np.ndarray:
        """The root mean square of the left-out residuals, for each output, every leverage taken at its mean: with (S + P) W = M
        the squares of the plain ones sum to Y'Y - W'M - W'P W."""
        explained = (self.weights * (self.total.cross + self.penalty * self.weights)).sum(0)
        plain = np.sqrt(np.maximum(arrays.to_numpy(self.total.squares - explained), 0.0) / max(self.total.weight, 1))
        return np.asarray(plain / max(1.0 - self.leverage, 1e-3))

    @property
    def temperature(self) -> float | None:
        """At which the softmax of its scores is calibrated; None for regression."""
        if self.total.labels is None:
            return None
        return temperature_of_moments(self.weights, self.total.cross, self.penalty, self.total.counts, self.leverage)


@dataclass(frozen=True)
class _Trial:
    """A penalty in some units, and how far off it is by GCV, where that is to be compared."""

    units: Units
    beta: float
    penalty: Penalty
    score: float

    @classmethod
    def of(
        cls, total: Moments, side: int, criterion: Criterion, beta: float | None, units: Units, compared: bool = True
    ) -> "_Trial":
        each, mean_square = of_penalties(criterion.gram, total.weight, units, total.rounding)
        chosen = criterion.least(each, mean_square, side) if beta is None else beta
        penalty = chosen if each is None else chosen * each
        return cls(units, chosen, penalty, criterion.at(penalty, side)[0] if compared else 0.0)
