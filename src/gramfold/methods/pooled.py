"""The ridge that a server solves from folded moments."""

import functools
from dataclasses import dataclass

from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.solve.gcv import choose_penalty, gcv_score
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

    @classmethod
    def of(cls, total: Moments, beta: float | None, units: Units = PLAIN, caution: float = 1.0) -> "PooledRidge":
        """beta None: by GCV, with that caution; so, where it is not known whether features share a unit, are units."""
        gram, cross, squares = total.lower_gram, total.cross, float(total.squares.sum())
        tried: list[tuple[float, float, Penalty]] = []
        for way in (ways := units.tried(beta)):
            each, mean_square = of_penalties(gram, total.weight, way, total.rounding)
            chosen = beta
            if chosen is None:
                chosen = choose_penalty(gram, cross, squares, total.weight, caution, each, mean_square)
            penalty = chosen if each is None else chosen * each
            score = gcv_score(gram, cross, squares, total.weight, penalty, caution)[0] if len(ways) > 1 else 0.0
            tried.append((score, chosen, penalty))
        _, chosen, penalty = min(tried, key=lambda one: one[0])
        return cls(total, chosen, penalty, factorise(gram, penalty))

    @functools.cached_property
    def weights(self) -> Array:
        return self.factor.solve(self.total.cross)

    @functools.cached_property
    def leverage(self) -> float:
        """The mean over all samples."""
        return mean_leverage(self.factor, self.penalty, self.total.weight)

    @property
    def temperature(self) -> float | None:
        """At which the softmax of its scores is calibrated; None for regression."""
        if self.total.labels is None:
            return None
        return temperature_of_moments(self.weights, self.total.cross, self.penalty, self.total.counts, self.leverage)
