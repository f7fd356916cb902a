"""PACE at the server: what clients are sent, from the sum of their moments, and the head that all share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.heads import Errors, Head
from gramfold.methods.pace.influence import Sketch
from gramfold.methods.pace.priors import PRIORS, Priors
from gramfold.methods.pace.sizes import SIZES
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.spaces import Space, straight
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.evidence import Evidence, terms
from gramfold.solve.group_weight import Sums as GroupSums
from gramfold.solve.group_weight import group_weight
from gramfold.solve.own_centroids import GROUP, SURE, OwnCentroids, Sums
from gramfold.solve.ridge import Factor
from gramfold.solve.units import PLAIN, Units
from gramfold.uploads import GroupedMoments
from gramfold.wire.record import Record

REGIMES = ("sum", "sketch")
DEARER = "curves_dearer"
"""In what was chosen: how many times more than a table's columns curved features are penalised."""


@dataclass(frozen=True)
class Pooled(Record, kind="pace/pooled"):
    """The pooled ridge as clients need it; for classes also where they lie, and how many there are of each."""

    weights: Array
    leverage: Factor | Sketch
    discriminant: Discriminant | None
    counts: Array | None
    chosen: Mapping[str, Any]
    spread: Array | None = None
    """For regression: the root mean square of the left-out errors of all samples, for each output."""
    newcomers: Array | None = None
    """The weights for those who have no part of their own, where `weights` are for targets less the clients' own parts."""


@dataclass(frozen=True)
class GroupPooled(Record, kind="pace/group"):
    """The ridge of a group's clients, in which its samples count `copies` times; None: everybody's. `gain`: what left-out samples
    of the group gain by it, in nats."""

    pooled: Pooled | None
    copies: float
    gain: float


def solved(pooled: Pooled | None) -> Pooled:
    """What the server has solved; before the last round there is nothing."""
    if pooled is None:
        raise GramfoldError("there is no model before the last round")
    return pooled


def units_of(space: Space) -> Units:
    """In which the pooled ridge is solved."""
    units = space.units()
    asked = units.intercept is not None and space.map.dim <= SIZES.bent
    return replace(units, straight=straight(space.map)) if asked else units


def require_regime(regime: str, method: str) -> None:
    if regime not in REGIMES:
        raise GramfoldError(f"{method}'s regime is one of {', '.join(REGIMES)}, not {regime!r}")


@dataclass(frozen=True)
class Pooling:
    """How a server makes what clients need of the sum of all moments. `units`, `caution`: in, and with, which the penalty is
    chosen, where it is not given."""

    penalty: float | None
    regime: str
    seed: int
    units: Units = PLAIN
    caution: float = 1.0

    def __call__(self, total: Moments, whole: Moments | None = None) -> Pooled:
        """`whole`: those of the same samples with their targets as they are, where `total` has them less the clients' own parts.
        Who has no such part needs them."""
        ridge, *newcomers = self._ridges([total] if whole is None else [total, whole])
        pooled = self.of(ridge)
        return replace(pooled, newcomers=newcomers[0].weights, spread=newcomers[0].spread) if newcomers else pooled

    def of(self, ridge: PooledRidge) -> Pooled:
        """The same of a ridge that is solved."""
        total = ridge.total
        source: Factor | Sketch = ridge.factor
        if self.regime == "sketch" and total.dim >= 2 * SIZES.sketch:  # else it is no smaller than the triangle
            signs = seeds.generator(self.seed, "pace/sketch").choice([-1.0, 1.0], (total.dim, SIZES.sketch))
            source = Sketch(ridge.factor.solve_transposed(arrays.like(signs / math.sqrt(SIZES.sketch), ridge.weights)))
        chosen = {"penalty": ridge.beta, **({DEARER: ridge.dearer} if ridge.dearer != 1.0 else {})}
        pooled = Pooled(ridge.weights, source, None, None, chosen)
        if total.labels is None:
            return replace(pooled, spread=ridge.spread)
        found = Discriminant.from_moments(ridge.weights, total.cross, ridge.penalty, total.counts, ridge.leverage)
        return replace(pooled, counts=total.counts, discriminant=found)

    def ridge(self, total: Moments) -> PooledRidge:
        return self._ridges([total])[0]

    def _ridges(self, totals: Sequence[Moments]) -> list[PooledRidge]:
        return PooledRidge.of_targets(totals, self.penalty, self.units, self.caution)

    def groups(self, total: GroupedMoments, pooled: Pooled, count: int) -> list[GroupPooled]:
        """For every group the ridge in which its samples count for more, as far as that makes them, left out, likelier; all at
        the penalty of `pooled`."""
        beta, everybody, found = pooled.chosen["penalty"], total.total(), []
        make = replace(self, penalty=beta, units=replace(self.units, dearer=pooled.chosen.get(DEARER, 1.0)))
        penalty = PooledRidge.of(everybody, beta, make.units).penalty
        for group in range(count):
            own = total.of_group(group)
            sums = GroupSums(own.lower_gram, own.cross, own.squares, own.weight, own.labels is not None)
            weight = group_weight(everybody.lower_gram, everybody.cross, penalty, sums)
            more = int(weight.weight)
            ridge = with_places(make(everybody + own.times(more)), own, weight.leverage) if more else None
            found.append(GroupPooled(ridge, 1.0 + more, weight.gain))
        return found


def with_places(pooled: Pooled, part: Moments, leverage: float) -> Pooled:
    """A group's ridge with the classes where its own samples have them, as far as these tell: `part` are their moments, of the
    leverage that they have in it."""
    shared = pooled.discriminant
    if shared is None or pooled.counts is None or part.counts is None or len(part.counts) == 2:
        return pooled
    sums = Sums.of_moments(shared, pooled.weights, part.gram, part.cross, part.counts, leverage)
    if sums.differ(shared)[0] <= SURE:
        return pooled
    return replace(pooled, discriminant=OwnCentroids.of(shared, pooled.counts, sums, np.array([GROUP])).discriminants([0])[0])


def shared_head(space: Space, pooled: Pooled, method: str, priors: Priors = PRIORS) -> Head:
    """The head of all clients: nothing of anybody's own, and the pooled class shares."""
    if pooled.counts is None or pooled.discriminant is None:
        spread = None if pooled.spread is None else arrays.to_numpy(pooled.spread)
        errors = None if spread is None else Errors(np.zeros((0, len(spread))), spread)
        weights = pooled.weights if pooled.newcomers is None else pooled.newcomers
        return replace(space.head(weights, method), errors=errors)
    counts = arrays.to_numpy(pooled.counts)
    centre, _ = priors.of_evidence(len(counts), space.map, pooled.discriminant.correlation(counts))
    evidence = Evidence(pooled.discriminant, terms(len(counts)), tuple(map(float, centre)))
    shares = np.log(counts + 1.0 / len(counts))  # one pseudo-sample is spread over all classes
    return replace(space.head(pooled.weights, method), evidence=evidence, offset=shares, probabilistic=True)
