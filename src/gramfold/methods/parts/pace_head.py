"""PACE's head over any feature map: what the server solves for, and what a client makes of it (see methods/pace.py)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import Map, MetricMap
from gramfold.heads import Errors, Evidence, Head, Stream
from gramfold.methods.parts.influence import Directions, Influence, OfDirections, OfFactor, OfSketch, Sketch
from gramfold.methods.parts.own_way import Fit, OwnWay, bend, evidence_of, left_out_evidence_of
from gramfold.methods.parts.pace_regressor import Regression
from gramfold.methods.parts.selection import left_out_r2
from gramfold.methods.parts.unexplained import believed, refine
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space, counting, root_weights, scaled
from gramfold.moments import Moments
from gramfold.moments.rounding import of_targets
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.class_prior import ClassPrior
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.leave_one_out import left_out_residuals
from gramfold.solve.left_out_discriminant import LeftOutDiscriminant
from gramfold.solve.ridge import Factor, LeastNorm, spanned
from gramfold.solve.units import PLAIN, Units
from gramfold.wire.compact import Compact, full
from gramfold.wire.record import Record

COSINE, COSINE_LEARNED = 1.5, 0.8
"""Where the prior sees the weight of the cosine, in units of the square root of the number of classes. Learned features bring
samples closer to their class, all alike: the same angle is weaker evidence."""
TYPICAL = 0.8
"""What a bend takes from the slope at a typical cosine of 0.4."""
PRIOR_SAMPLES = 20.0
"""How many samples the prior over the weights is worth."""
REFINEMENT_WEIGHT = 6.0
"""Where the prior sees the weight of the refinement, which explains probabilities (steps of at most one) in logits."""
NEVER = 1e-6
"""The spread of a weight that stays where the prior sees it."""
ALMOST_ALL = 0.5
"""A mean leverage from which on samples determine their own scores: what the discriminant is without one cannot be told then."""
SKETCH = 128
"""Rows of the sketch from which leverages are estimated, to a relative sqrt(2 / rows)."""
REGIMES = ("sum", "moments", "sketch")
ROTATION = "rotation"
"""In a client's memory: the way from the factor that it sent back to its samples."""


@dataclass(frozen=True)
class Pooled(Record, kind="pace/pooled"):
    """The pooled ridge as clients need it; for classes also where they lie, and how many there are of each."""

    weights: Array
    leverage: Factor | Sketch | Directions
    discriminant: Discriminant | None
    counts: Array | None
    chosen: Mapping[str, Any]
    spread: Array | None = None
    """For regression: the root mean square of the left-out errors of all samples, for each output."""
    strangers: Array | None = None
    """The weights for those who have no part of their own, where `weights` are for targets less the clients' own parts."""


def solved(pooled: Pooled | None) -> Pooled:
    """What the server has solved; before the last round there is nothing."""
    if pooled is None:
        raise GramfoldError("there is no model before the last round")
    return pooled


@dataclass(frozen=True)
class PaceHead:
    """`method`: whose head it is. `beta`, `weights`, `regime`: as in PACE."""

    method: str
    beta: float | None = None
    weights: tuple[float, float, float] | None = None
    regime: str = "sum"
    precision: str = "float64"
    """Of the weights and of the sketch, as clients are sent them."""
    own_parts: bool = False
    """Whether the sum is that of targets less the clients' own parts, and of targets: see `own_part`."""

    def __post_init__(self) -> None:
        if self.regime not in REGIMES:
            raise GramfoldError(f"{self.method}'s regime is one of {', '.join(REGIMES)}, not {self.regime!r}")

    # --- the server ---

    @property
    def keeps_uploads(self) -> bool:
        return self.regime == "moments"

    def pool(self, total: Moments, seed: int, units: Units = PLAIN, caution: float = 1.0) -> Pooled:
        """What clients are sent, from the sum of their moments. `units`, `caution`: in, and with, which the penalty is chosen."""
        if self.own_parts:
            return self._pool_without(total, seed, units, caution)
        ridge = PooledRidge.of(total, self.beta, units, caution)
        precision, weights, leverage = of_targets(self.precision), ridge.weights, ridge.leverage
        sent = Compact.of(weights, precision)
        discriminant = counts = spread = None
        if total.labels is not None:
            counts = total.counts
            discriminant = Discriminant.from_moments(
                weights, total.cross, ridge.penalty, counts, leverage, precision == "float16"
            )  # fmt: skip
        else:
            spread = _spread(ridge)
        source: Factor | Sketch = ridge.factor
        if self.regime == "sketch" and total.dim >= 2 * SKETCH:  # else it is no smaller than the triangle
            signs = seeds.generator(seed, "pace/sketch").choice([-1.0, 1.0], (total.dim, SKETCH))
            source = Sketch(ridge.factor.solve_transposed(arrays.like(signs / math.sqrt(SKETCH), weights)))
        chosen = {"beta": ridge.beta}
        if isinstance(source, Sketch):
            source = Sketch(Compact.of(source.matrix, precision))
        if discriminant is not None and precision != "float64":
            discriminant = discriminant.narrowed("float32")
        if total.rounding:
            chosen["rounding"] = total.rounding
        return Pooled(sent, source, discriminant, counts, chosen, spread)

    def _pool_without(self, total: Moments, seed: int, units: Units, caution: float) -> Pooled:
        """The same, where targets less the clients' own parts come first, and then the targets as they are."""
        less, whole = total.halves()
        pooled = replace(self, own_parts=False).pool(less, seed, units, caution)
        ridge = PooledRidge.of(whole, self.beta, units, caution)
        return replace(pooled, strangers=Compact.of(ridge.weights, of_targets(self.precision)), spread=_spread(ridge))

    def reply(self, upload: Moments | None, pooled: Pooled) -> Pooled:
        """What one client is sent where the server keeps its moments: of the sum's triangle, what its own samples touch. Who sent
        nothing needs nothing of it; however many samples a client claims, it gets no more than the span of those it sent."""
        if self.regime != "moments" or not isinstance(pooled.leverage, Factor):
            return pooled
        if upload is None:
            weights = full(pooled.weights)
            return replace(pooled, leverage=Sketch(arrays.zeros((len(weights), 1), weights)))
        if upload.n < upload.dim:
            rows, _ = upload.factor()
            return replace(pooled, leverage=Directions(pooled.leverage.solve(rows.T)))
        span = spanned(upload.lower_gram)
        return pooled if span is None else replace(pooled, leverage=LeastNorm(pooled.leverage.solve_lower(span @ span.T)))

    def shared(self, space: Space, pooled: Pooled) -> Head:
        """The head of all clients: no refinement, and the pooled class shares."""
        if pooled.counts is None or pooled.discriminant is None:
            spread = None if pooled.spread is None else arrays.to_numpy(pooled.spread)
            errors = None if spread is None else Errors(np.zeros((0, len(spread))), spread)
            weights = pooled.weights if pooled.strangers is None else pooled.strangers
            return replace(space.head(full(weights), self.method), errors=errors)
        counts = arrays.to_numpy(pooled.counts)
        centre = _weights_prior(len(counts), space.map)[0]
        return self._classifier(space, full(pooled.weights), pooled.discriminant, centre, _log_prior(counts), [], {})

    # --- the client ---

    def upload(self, moments: Moments, client: ClientData) -> Moments:
        """The moments as they travel. Where the server answers in the basis of the factor it receives, the client remembers the
        way back to its samples."""
        if self.regime == "moments" and moments.n < moments.dim:
            moments, client.memory[ROTATION] = moments.rotated()
        return moments

    def personalize(
        self, client: ClientData, space: Space, psi: Map, pooled: Pooled, rows: Array, honest: np.ndarray | None = None
    ) -> Head:
        """The client's own head. `rows` are the features of its samples that count; `psi` is the map of the refinement stream;
        `honest` says whose labels the features have not seen (None: all): only those judge."""
        train = counting(client)
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        shared = full(pooled.weights)
        scores = rows @ shared
        influence = _influence(scaled(rows, roots), client, pooled.leverage)
        residuals = targets - scores
        if client.contributed:  # a sample is left out with all its weight w: its leverage is w h
            scores = targets - left_out_residuals(residuals, influence.leverages)
        refined = scaled(rows if psi.fingerprint == space.map.fingerprint else psi(train.inputs), roots)
        if pooled.discriminant is None or pooled.counts is None:
            regression = Regression(refined, targets, scores, roots)
            return self._regressor(space, psi, pooled, regression, influence, scaled(residuals, roots), client, honest)

        codes, once = arrays.to_numpy(train.targets), train.weights if train.weights is not None else np.ones(train.n)
        prior = ClassPrior.of(once @ arrays.to_numpy(targets), arrays.to_numpy(pooled.counts))
        shares, left_out_shares = prior.log_shares, prior.left_out(codes, once)
        judges = train.weights if honest is None else once * honest
        # evidence is weighed beside the prior that is honest about a left-out sample; beside a surer one, as is right for class
        # shares that stay what they are, evidence would have to shout it down, and be too sure of itself ever after
        fit = Fit(codes, prior.left_out(codes, once, fresh=True), judges, self.weights)
        evidence_at = partial(evidence_of, pooled.discriminant)
        leverages = arrays.to_numpy(influence.leverages)
        if client.contributed and len(shares) > 2 and leverages.mean() < ALMOST_ALL:
            counts = arrays.to_numpy(pooled.counts)
            without = LeftOutDiscriminant.of(pooled.discriminant, counts, arrays.to_numpy(scores), codes, once, leverages)
            evidence_at = partial(left_out_evidence_of, without)
        evidence = evidence_at(scores)
        centre, precision = _weights_prior(len(shares), space.map)
        pair, _ = fit.weights(evidence, centre[:2], precision[:2])
        size = float(once.sum())
        table = self.weights is None and _is_table(space.map)
        plain = fit.weights(evidence, pair, precision[:2])[1] if table else None
        start = np.append(pair, centre[2] * believed(size, table))
        logits = np.tensordot(pair, evidence, 1) + shares
        refinement = refine(fit, evidence, logits, refined, arrays.to_numpy(targets), roots, start, precision, size, plain)
        fit, three = refinement.fit, refinement.weights
        weights, discriminant, way = shared, pooled.discriminant, None
        # two classes of a table have one score, whose refinement says all that a site's own samples are sure of
        if self.weights is None and influence.can_weigh_up and not (table and len(shares) == 2):
            left = scaled(residuals, roots)
            own = OwnWay(fit, start, precision, influence, left, targets, scores, roots, client.contributed, evidence_at)
            way = own.choose(refinement.loss)
            if way is not None:
                weights = weights + influence.change(way.move)
                discriminant, evidence = own.discriminant(pooled.discriminant, way, once, shares)
                three, _ = fit.weights(evidence, start, precision)
        left_out = fit.logits(evidence, three)
        trusted = judges if judges is not None and judges.any() else once
        # two estimates: for new samples whose classes are a fresh draw, so that a sample does not count towards its own class,
        # and for new samples in the class shares that the client has
        chosen = {
            **pooled.chosen,
            "cosine": float(three[0]), "gaussian": float(three[1]), "refinement": float(three[2]),
            "alpha": 0.0 if way is None else way.alpha,
            "leave_one_out_accuracy": _accuracy(left_out + left_out_shares, codes, trusted),
            "leave_one_out_accuracy_same_shares": _accuracy(left_out + shares, codes, trusted),
        }  # fmt: skip
        stream = Stream(psi, refinement.ridge, float(three[2]))
        return self._classifier(space, weights, discriminant, three, shares, [stream], chosen)

    def _classifier(
        self,
        space: Space,
        base: Array,
        discriminant: Discriminant,
        weights: np.ndarray,
        prior: np.ndarray,
        refinement: list[Stream],
        chosen: dict[str, Any],
    ) -> Head:
        return Head(
            [Stream(space.map, base)],
            space.labels,
            evidence=Evidence(discriminant, float(weights[0]), float(weights[1]), bend(len(prior))),
            refinement=refinement,
            offset=prior,
            probabilistic=True,
            method=self.method,
            chosen=chosen,
        )

    def _regressor(
        self,
        space: Space,
        psi: Map,
        pooled: Pooled,
        regression: Regression,
        influence: Influence,
        residuals: Array,
        client: ClientData,
        honest: np.ndarray | None,
    ) -> Head:
        """Without classes: see `Regression`."""
        shared = full(pooled.weights)
        weights = counting(client).weights
        # all samples choose; those whose labels the features have not seen say how far off it is: who chooses flatters itself
        own = regression.choose(influence, residuals, client.contributed, weights)
        if honest is not None and honest.any():
            weights = honest if weights is None else weights * honest
        error = arrays.to_numpy(regression.targets - own.left_out)
        chosen = {**pooled.chosen, **own.found, "leave_one_out_rmse": math.sqrt(np.average((error**2).sum(1), weights=weights))}
        chosen |= left_out_r2(regression.targets, own.left_out, weights)
        spread = np.zeros(error.shape[1]) if pooled.spread is None else arrays.to_numpy(pooled.spread)
        parts: dict[str, Any] = {
            "method": self.method,
            "chosen": chosen,
            "errors": Errors.of(error if honest is None else error[honest], spread),
        }
        base = shared if own.move is None else shared + influence.change(own.move)
        if own.refinement is None:
            return Head([Stream(space.map, base)], None, **parts)
        personal, offset = own.refinement
        return Head([Stream(space.map, base), Stream(psi, personal)], None, offset=arrays.to_numpy(offset), **parts)


def without_estimates(head: Head) -> Head:
    """The head where the map's layers have seen the samples' labels, and cannot be left out with them: an estimate of its
    accuracy would be too good."""
    return replace(head, chosen={key: value for key, value in head.chosen.items() if "leave_one_out" not in key})


def _spread(ridge: PooledRidge) -> np.ndarray:
    """The root mean square of the left-out residuals, for each output, every leverage taken at its mean: with (S + P) W = M the
    squares of the plain ones sum to Y'Y - W'M - W'P W."""
    total, weights, leverage = ridge.total, ridge.weights, ridge.leverage
    explained = (weights * (total.cross + ridge.penalty * weights)).sum(0)
    plain = np.sqrt(np.maximum(arrays.to_numpy(total.squares - explained), 0.0) / max(total.weight, 1))
    return np.asarray(plain / max(1.0 - leverage, 1e-3))


def _log_prior(counts: np.ndarray) -> np.ndarray:
    """The class shares, up to a constant, with one pseudo-sample spread over all classes."""
    return np.log(counts + 1.0 / len(counts))


def _is_table(map: Map | None) -> bool:
    """Whether the features are those of a table, and have been learned: then they follow any curve."""
    return isinstance(map, MetricMap) and map.columns is not None and map.follows_labels


def _weights_prior(classes: int, map: Map | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Centre and precision of the weights' prior.

    A cosine in C - 1 dimensions has a spread of 1/sqrt(C): its weight goes with sqrt(C). In one dimension it is only a sign, and
    the likelihood is all there is, at its face value of one; with more it keeps a share, which fades as 1/(C - 1). A step r in
    the probability of one of two classes is -r in the other's, and 4 r in the log-odds at even odds: 2 r on either side.

    Two classes have no angle, and the first weight is that of scores taken for probabilities. In a table they are, unless it is
    too small for its features to be learned. Elsewhere they are not, and never count.
    """
    learned = isinstance(map, MetricMap) and map.follows_labels
    cosine = (COSINE_LEARNED if learned else COSINE) * math.sqrt(classes) / (1.0 - TYPICAL * bend(classes))
    likelihood = 1.0 / max(classes - 1, 1)
    refinement = REFINEMENT_WEIGHT if classes > 2 else 2.0
    spread = np.array([cosine / 2, max(likelihood / 2, 0.3), REFINEMENT_WEIGHT])
    if classes == 2:
        spread[0] = 0.5 if _is_table(map) else NEVER
        return np.array([1.0, 0.0, refinement] if _is_table(map) else [0.0, 1.0, refinement]), PRIOR_SAMPLES / spread**2
    return np.array([(1.0 - likelihood) * cosine, likelihood, refinement]), PRIOR_SAMPLES / spread**2


def _influence(rows: Array, client: ClientData, source: Factor | Sketch | Directions) -> Influence:
    """How a client's samples bear on the shared solution, from whatever the server sent."""
    if isinstance(source, Directions):
        return OfDirections(source.matrix, client.memory[ROTATION], rows)
    return OfSketch(source, rows) if isinstance(source, Sketch) else OfFactor(source, rows)


def _accuracy(logits: np.ndarray, codes: np.ndarray, once: np.ndarray) -> float:
    return float(np.average(logits.argmax(1) == codes, weights=once))
