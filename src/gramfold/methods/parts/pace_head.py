"""PACE's head over any feature map: what the server solves for, and what a client makes of it (see methods/pace.py)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import Map
from gramfold.federation import Samples
from gramfold.heads import Evidence, Head, Stream, softmax
from gramfold.methods.analytic import Space, counting, root_weights, scaled, solve_pooled
from gramfold.methods.parts.refinement import left_out_blends
from gramfold.methods.parts.selection import choose
from gramfold.methods.protocol import ClientData
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.dual import mean_squared_length, ridge_from_rows, ridge_with_left_out
from gramfold.solve.leave_one_out import Kernel, left_out_residuals, leverages, mean_leverage
from gramfold.solve.ridge import Factor, LeastNorm, spanned
from gramfold.solve.softmax import fit_weights
from gramfold.wire.record import Record

GAMMA = 0.3
"""Refinement penalty in units of the kernel's mean diagonal; the result is flat from 0.1 to 3."""
PRIOR_SAMPLES = 20.0
"""How many samples the prior over the weights is worth."""
REFINEMENT_WEIGHT = 6.0
"""Where the prior sees the weight of the refinement, which explains probabilities (steps of at most one) in logits."""
FEW_CLASSES = 10
"""From so many classes on, the prior sees no weight for the likelihood beside the cosine."""
SKETCH = 128
"""Rows of the sketch from which leverages are estimated, to a relative sqrt(2 / rows)."""
REGIMES = ("sum", "moments", "sketch")
ROTATION = "rotation"
"""In a client's memory: the way from the factor that it sent back to its samples."""


@dataclass(frozen=True)
class Sketch(Record, kind="pace/sketch"):
    """L'^-1 times random signs: leverages, approximately, for far fewer bytes than L."""

    matrix: Array


@dataclass(frozen=True)
class Hat(Record, kind="pace/hat", triangular="lower"):
    """R (S + beta I)^-1 R' of the factor R that one client sent."""

    lower: Array


@dataclass(frozen=True)
class Pooled(Record, kind="pace/pooled"):
    """The pooled ridge as clients need it; for classes also where they lie, and how many there are of each."""

    weights: Array
    leverage: Factor | Sketch | Hat
    discriminant: Discriminant | None
    counts: Array | None
    chosen: Mapping[str, Any]


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

    def __post_init__(self) -> None:
        if self.regime not in REGIMES:
            raise GramfoldError(f"{self.method}'s regime is one of {', '.join(REGIMES)}, not {self.regime!r}")

    # --- the server ---

    @property
    def keeps_uploads(self) -> bool:
        return self.regime == "moments"

    def pool(self, total: Moments, seed: int) -> Pooled:
        """What clients are sent, from the sum of their moments."""
        beta, factor = solve_pooled(total, self.beta)
        weights = factor.solve(total.cross)
        discriminant = counts = None
        if total.labels is not None:
            counts = total.counts
            spread = mean_leverage(factor, beta, total.weight)
            discriminant = Discriminant.from_moments(weights, total.cross, beta, counts, spread)
        leverage: Factor | Sketch = factor
        if self.regime == "sketch" and total.dim >= 2 * SKETCH:  # else it is no smaller than the triangle
            signs = seeds.generator(seed, "pace/sketch").choice([-1.0, 1.0], (total.dim, SKETCH))
            leverage = Sketch(factor.solve_transposed(arrays.like(signs / math.sqrt(SKETCH), weights)))
        return Pooled(weights, leverage, discriminant, counts, {"beta": beta})

    def reply(self, upload: Moments | None, pooled: Pooled) -> Pooled:
        """What one client is sent where the server keeps its moments: of the sum's triangle, what its own samples touch, which is
        a small triangle where they are few. Who sent nothing needs nothing of it; however many samples a client claims, it gets
        no more than the span of those it sent."""
        if self.regime != "moments" or not isinstance(pooled.leverage, Factor):
            return pooled
        if upload is None:
            return replace(pooled, leverage=Hat(arrays.zeros((0, 0), pooled.weights)))
        if upload.n < upload.dim:
            rows, _ = upload.factor()
            return replace(pooled, leverage=Hat(arrays.gram(pooled.leverage.solve_lower(rows.T))))
        span = spanned(upload.lower_gram)
        return pooled if span is None else replace(pooled, leverage=LeastNorm(pooled.leverage.solve_lower(span @ span.T)))

    def shared(self, space: Space, pooled: Pooled) -> Head:
        """The head of all clients: no refinement, and the pooled class shares."""
        if pooled.counts is None or pooled.discriminant is None:
            return space.head(pooled.weights, self.method)
        counts = arrays.to_numpy(pooled.counts)
        return self._classifier(space, pooled, pooled.discriminant, _weights_prior(len(counts))[0], _log_prior(counts), [], {})

    # --- the client ---

    def upload(self, moments: Moments, client: ClientData) -> Moments:
        """The moments as they travel. Where the server answers in the basis of the factor it receives, the client remembers the
        way back to its samples."""
        if self.regime == "moments" and moments.n < moments.dim:
            moments, client.memory[ROTATION] = moments.rotated()
        return moments

    def personalize(self, client: ClientData, space: Space, psi: Map, pooled: Pooled, rows: Array) -> Head:
        """The client's own head. `rows` are the features of its samples that count; `psi` is the map of the refinement stream."""
        train = counting(client)
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        scores = rows @ pooled.weights
        if client.contributed:  # a sample is left out with all its weight w: its leverage is w h
            leverage = _leverages(scaled(rows, roots), client, pooled.leverage)
            scores = targets - left_out_residuals(targets - scores, leverage)
        refined = scaled(rows if psi.fingerprint == space.map.fingerprint else psi(train.inputs), roots)
        if pooled.discriminant is None:
            return self._regressor(space, psi, pooled, scores, targets, refined, train, roots)

        evidence = np.stack([arrays.to_numpy(part) for part in pooled.discriminant.evidence(scores)])
        codes, once = arrays.to_numpy(train.targets), train.weights if train.weights is not None else np.ones(train.n)
        counts = once @ arrays.to_numpy(targets)
        prior = _log_prior(counts)
        start, precision = _weights_prior(len(prior))
        given = None if self.weights is None else np.array(self.weights)
        pair = given[:2] if given is not None else fit_weights(evidence, prior, codes, start[:2], precision[:2], train.weights)
        unexplained = arrays.to_numpy(targets) - softmax(np.tensordot(pair, evidence, 1) + prior)
        penalty = GAMMA * mean_squared_length(refined, roots)
        refinement, fit = ridge_with_left_out(refined, scaled(arrays.like(unexplained, refined), roots), penalty, roots)
        evidence = np.concatenate([evidence, arrays.to_numpy(fit)[None]])
        start = np.append(pair, start[2])
        three = given if given is not None else fit_weights(evidence, prior, codes, start, precision, train.weights)
        left_out = np.tensordot(three, evidence, 1) + prior
        # two estimates: for new samples in the same class shares, and for new samples whose classes are a fresh draw as well, in
        # which case a sample must not count towards its own class
        redrawn = left_out.copy()
        others = np.log(np.maximum(counts[codes] - once, 0) + 1.0 / len(prior))
        redrawn[np.arange(len(codes)), codes] += others - prior[codes]
        chosen = {
            **pooled.chosen,
            "cosine": float(three[0]), "gaussian": float(three[1]), "refinement": float(three[2]),
            "leave_one_out_accuracy": float(np.average(left_out.argmax(1) == codes, weights=once)),
            "leave_one_out_accuracy_redrawn": float(np.average(redrawn.argmax(1) == codes, weights=once)),
        }  # fmt: skip
        stream = Stream(psi, refinement, float(three[2]))
        return self._classifier(space, pooled, pooled.discriminant, three, prior, [stream], chosen)

    def _classifier(
        self,
        space: Space,
        pooled: Pooled,
        discriminant: Discriminant,
        weights: np.ndarray,
        prior: np.ndarray,
        refinement: list[Stream],
        chosen: dict[str, Any],
    ) -> Head:
        return Head(
            [Stream(space.map, pooled.weights)],
            space.labels,
            evidence=Evidence(discriminant, float(weights[0]), float(weights[1])),
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
        scores: Array,
        targets: Array,
        refined: Array,
        train: Samples,
        roots: Array | None,
    ) -> Head:
        """Without classes there is no prior and no discriminant: the refinement is ridge on the left-out residuals."""
        candidates = left_out_blends(Kernel.of(refined, roots), targets - scores, scores)
        chosen = {**pooled.chosen, **choose(candidates, targets, False, train.weights)}
        personal = ridge_from_rows(refined, scaled(targets - scores, roots), chosen["gamma"])
        streams = [Stream(space.map, pooled.weights), Stream(psi, personal, chosen["lam"])]
        return Head(streams, None, method=self.method, chosen=chosen)


def without_estimates(head: Head) -> Head:
    """The head where the map's layers have seen the samples' labels, and cannot be left out with them: an estimate of its
    accuracy would be too good."""
    return replace(head, chosen={key: value for key, value in head.chosen.items() if "leave_one_out" not in key})


def _log_prior(counts: np.ndarray) -> np.ndarray:
    """The class shares, up to a constant, with one pseudo-sample spread over all classes."""
    return np.log(counts + 1.0 / len(counts))


def _weights_prior(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Centre and precision of the weights' prior.

    A cosine in C - 1 dimensions has a spread of 1/sqrt(C): its weight goes with sqrt(C). In one dimension it is only a sign, and
    the likelihood is all there is, at its face value of one; with few classes it keeps a share, which fades as (C - 1)^-2. A step
    r in the probability of one of two classes is -r in the other's, and 4 r in the log-odds at even odds: 2 r on either side.
    """
    cosine, likelihood = 1.5 * math.sqrt(classes), 1.0 / max(classes - 1, 1) ** 2 if classes < FEW_CLASSES else 0.0
    refinement = REFINEMENT_WEIGHT if classes > 2 else 2.0
    spread = np.array([cosine / 2, max(likelihood / 2, 0.3), REFINEMENT_WEIGHT])
    return np.array([(1.0 - likelihood) * cosine, likelihood, refinement]), PRIOR_SAMPLES / spread**2


def _leverages(rows: Array, client: ClientData, source: Factor | Sketch | Hat) -> Array:
    """h_i = f_i'(S + beta I)^-1 f_i, from whatever the server sent."""
    if isinstance(source, Hat):
        rotation = client.memory[ROTATION]
        hat = arrays.copy(source.lower)
        arrays.mirror(hat)
        return ((rotation @ hat) * rotation).sum(1)
    if isinstance(source, Sketch):
        return ((rows @ source.matrix) ** 2).sum(1)
    return leverages(source, rows)
