"""PACE, prior-adjusted closed-form estimator: gramfold's own method. One round, calibrated probabilities, nothing to set.

    client   moments of phi(Z)                                              as in AFL
    server   beta by GCV; S + beta I = L L', W = (S + beta I)^-1 M; the discriminant of the left-out scores; sends L, W, these
    client   u_i = y_i - (y_i - W'f_i) / (1 - h_i), h_i = |L^-1 f_i|^2      its own samples' honest scores: leave-one-out
             a_i, b_i = cosine and Gaussian evidence of u_i                 for each class, in the scores' whitened space
             q = log(counts + 1/C)                                          what it knows for certain: its class prior
             (s, t) = most likely weights of s a + t b + q                  a few Newton steps
             E = Y - softmax(s a + t b + q)                                 what this leaves unexplained
             R = ridge of E on psi(Z), r_i its left-out fit                 refinement stream, in the dual where n < d2
             (s, t, l) = most likely weights of s a + t b + l r + q         with a prior worth a few samples: small clients shrink
    head     softmax(s a(x) + t b(x) + l psi(x) R + q)

Nothing a client ends up with depends on how the others' data is cut among them: all it takes from them are sums.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import Bias, Chain, Concat, FeatureMap, Fourier, Linear, Map, Normalize
from gramfold.federation import Task
from gramfold.heads import Evidence, Head, Stream, softmax
from gramfold.methods.analytic import (
    FOLDED,
    Analytic,
    MapLike,
    described_map,
    draw_map,
    extend,
    factor_of,
    labels_of,
    solve_pooled,
    target_rows,
)
from gramfold.methods.apfl import left_out_blends
from gramfold.methods.protocol import ClientData
from gramfold.methods.selection import choose
from gramfold.moments import Moments
from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.dual import ridge_from_rows, ridge_with_left_out
from gramfold.solve.leave_one_out import Kernel, left_out_residuals, leverages, mean_leverage
from gramfold.solve.softmax import fit_weights
from gramfold.wire import Packet

GAMMA = 0.3
"""Refinement penalty in units of the kernel's mean diagonal; the result is flat from 0.1 to 3."""
PRIOR_SAMPLES = 20.0
"""How many samples the prior over the weights is worth."""
REFINEMENT_WEIGHT = 6.0
"""Where the prior sees the weight of the refinement, which explains probabilities (steps of at most one) in logits."""
SKETCH = 128
"""Rows of the sketch from which leverages are estimated, to a relative sqrt(2 / rows)."""
REGIMES = ("sum", "moments", "sketch")


@dataclass(frozen=True)
class PACE(Analytic):
    """Everything that is None is chosen in closed form: the Fourier dimension of `features` from the amount of data, `beta` by
    GCV, `weights` (of cosine evidence, Gaussian evidence and refinement) by each client from its left-out likelihood.

    `regime` is what the server holds and sends so that clients can leave their own samples out: "sum" - only the summed moments,
    and it sends the m x m triangle L; "moments" - each client's, and it sends an n_k x n_k triangle; "sketch" - only the sum, and
    it sends a 128 x m sketch of L, from which leverages are approximate. `budget` bounds the server's memory when the dimension
    is chosen, in bytes.
    """

    name: ClassVar[str] = "pace"
    summary: ClassVar[str] = "class prior, discriminant and refinement, all chosen by leave-one-out; calibrated"
    paper: ClassVar[str] = "gramfold"
    probabilistic: ClassVar[bool] = True

    features: MapLike | None = None  # type: ignore[assignment]
    refinement: MapLike = "relu:1024"
    beta: float | None = None
    weights: tuple[float, float, float] | None = None
    regime: str = "sum"
    budget: int = 2**30

    def __post_init__(self) -> None:
        self.check_penalties("beta")
        if self.regime not in REGIMES:
            raise GramfoldError(f"PACE's regime is one of {', '.join(REGIMES)}, not {self.regime!r}")

    @property
    def keeps_uploads(self) -> bool:
        return self.regime == "moments"

    def begin(self, task: Task) -> Packet:
        spec = self.features if self.features is not None else default_map(task, self.budget)
        meta = {
            "features": draw_map(spec, task).description,
            "refinement": draw_map(self.refinement, task, "refinement").description,
            "labels": task.labels and list(task.labels),
            "seed": task.seed,
        }
        return Packet({}, meta)

    def local(self, client: ClientData, broadcast: Packet) -> Moments:
        return self.answerable(super().local(client, broadcast), client)

    def answerable(self, upload: Moments, client: ClientData) -> Moments:
        """The upload as it travels. Where the server answers in the basis of the factor it receives, the client remembers the
        way back to its samples."""
        if self.regime == "moments" and upload.n < upload.dim:
            upload, client.memory["rotation"] = upload.rotated()
        return upload

    def aggregate(self, total: Moments, broadcast: Packet) -> Packet:
        beta, factor = solve_pooled(total, self.beta)
        parts: dict[str, Array] = {"weights": factor.solve(total.cross)}
        if total.labels is not None:
            leverage = mean_leverage(factor, beta, total.n)
            parts |= vars(Discriminant.from_moments(parts["weights"], total.cross, beta, total.counts, leverage))
            parts["counts"] = total.counts
        meta = {"chosen": {"beta": beta}, "fallback": factor.fallback}
        if self.regime != "sketch" or total.dim < 2 * SKETCH:  # no smaller than the triangle
            return extend(broadcast, parts | {"factor": factor.half}, meta, triangular="" if factor.fallback else "factor")
        signs = seeds.generator(broadcast.meta["seed"], "pace/sketch").choice([-1.0, 1.0], (total.dim, SKETCH))
        sketch = factor.solve_transposed(arrays.like(signs / math.sqrt(SKETCH), factor.half))
        return extend(broadcast, parts | {"sketch": sketch}, meta)

    def reply(self, upload: Moments, broadcast: Packet) -> Packet:
        if self.regime != "moments" or upload.n >= upload.dim:
            return broadcast
        rows, _ = upload.factor()
        half = factor_of(broadcast).solve_lower(rows.T)
        kept = {key: value for key, value in broadcast.arrays.items() if key != "factor"}
        return extend(broadcast, {**kept, "hat": arrays.gram(half)}, triangular="hat")

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        phi, psi = self.map(broadcast), self.refinement_map(broadcast)
        rows = self.rows(client, broadcast)
        targets = target_rows(client.train, broadcast, rows)
        weights = broadcast["weights"]
        scores = rows @ weights
        if FOLDED in client.memory:
            leverage = _leverages(rows, client, broadcast)
            scores = targets - left_out_residuals(targets - scores, leverage)
        refined = rows if psi.fingerprint == phi.fingerprint else psi(client.train.inputs)
        if labels_of(broadcast) is None:
            return self._regressor(broadcast, scores, targets, refined)

        evidence = np.stack([arrays.to_numpy(part) for part in _discriminant(broadcast).evidence(scores)])
        codes, counts = arrays.to_numpy(client.train.targets), arrays.to_numpy(targets).sum(0)
        prior = _log_prior(counts)
        start, precision = _weights_prior(len(prior))
        given = None if self.weights is None else np.array(self.weights)
        pair = given[:2] if given is not None else fit_weights(evidence, prior, codes, start[:2], precision[:2])
        unexplained = arrays.to_numpy(targets) - softmax(np.tensordot(pair, evidence, 1) + prior)
        refinement, fit = ridge_with_left_out(refined, arrays.like(unexplained, refined), GAMMA)
        evidence = np.concatenate([evidence, arrays.to_numpy(fit)[None]])
        three = given if given is not None else fit_weights(evidence, prior, codes, np.append(pair, start[2]), precision)
        left_out = np.tensordot(three, evidence, 1) + prior
        # two estimates: for new samples in the same class shares, and for new samples whose classes are a fresh draw as well, in
        # which case a sample must not count towards its own class
        redrawn = left_out.copy()
        redrawn[np.arange(len(codes)), codes] += (_log_prior(np.maximum(counts - 1, 0)) - prior)[codes]
        chosen = {
            **broadcast.meta["chosen"],
            "cosine": float(three[0]), "gaussian": float(three[1]), "refinement": float(three[2]),
            "leave_one_out_accuracy": float((left_out.argmax(1) == codes).mean()),
            "leave_one_out_accuracy_redrawn": float((redrawn.argmax(1) == codes).mean()),
        }  # fmt: skip
        return self._classifier(broadcast, three, prior, [Stream(psi, refinement, float(three[2]))], chosen)

    def rows(self, client: ClientData, broadcast: Packet) -> Array:
        """phi of the client's samples."""
        return self.map(broadcast)(client.train.inputs)

    def refinement_map(self, broadcast: Packet) -> Map:
        """psi: the map of the refinement stream."""
        return described_map(broadcast, "refinement")

    def _classifier(
        self, broadcast: Packet, weights: np.ndarray, prior: np.ndarray, refinement: list[Stream], chosen: dict[str, Any]
    ) -> Head:
        return Head(
            [Stream(self.map(broadcast), broadcast["weights"])],
            labels_of(broadcast),
            evidence=Evidence(_discriminant(broadcast), float(weights[0]), float(weights[1])),
            refinement=refinement,
            offset=prior,
            probabilistic=True,
            method=self.name,
            chosen=chosen,
        )

    def _regressor(self, broadcast: Packet, scores: Array, targets: Array, refined: Array) -> Head:
        """Without classes there is no prior and no discriminant: the refinement is ridge on the left-out residuals."""
        candidates = left_out_blends(Kernel.of(refined), targets - scores, scores)
        chosen = {**broadcast.meta["chosen"], **choose(candidates, targets, classification=False)}
        personal = ridge_from_rows(refined, targets - scores, chosen["gamma"])
        streams = [
            Stream(self.map(broadcast), broadcast["weights"]),
            Stream(self.refinement_map(broadcast), personal, chosen["lam"]),
        ]
        return Head(streams, None, method=self.name, chosen=chosen)

    def global_head(self, broadcast: Packet) -> Head:
        """Everybody's: no refinement, and everybody's class shares."""
        if labels_of(broadcast) is None:
            return self.shared_head(broadcast, broadcast["weights"])
        counts = broadcast["counts"]
        return self._classifier(broadcast, _weights_prior(len(counts))[0], _log_prior(counts), [], {})


def default_map(task: Task, budget: int) -> FeatureMap:
    """[1, z, cos(z Omega + b)] of normalised inputs: a Fourier feature for every ten samples, as long as four m x m matrices (the
    sum, its factor, and room to work) fit the budget."""
    affordable = math.isqrt(budget // 32) - task.inputs - 1
    wanted = (task.samples if task.samples is not None else 10 * 1024) // 10
    dim = min(max(wanted, 64), affordable, 8192)
    dim = 2 ** int(math.log2(dim)) if dim >= 1 else 0
    parts: list[FeatureMap] = [Bias(), Linear()]
    return Chain([Normalize(), Concat([*parts, Fourier(dim)] if dim else parts)])


def _log_prior(counts: np.ndarray) -> np.ndarray:
    """The client's class shares, up to a constant, with one pseudo-sample spread over all classes."""
    return np.log(counts + 1.0 / len(counts))


def _weights_prior(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Centre and precision of the weights' prior. A cosine in C - 1 dimensions has a spread of 1/sqrt(C): its weight goes with
    sqrt(C)."""
    cosine = 1.5 * math.sqrt(classes)
    spread = np.array([cosine / 2, 0.3, REFINEMENT_WEIGHT])
    return np.array([cosine, 0.0, REFINEMENT_WEIGHT]), PRIOR_SAMPLES / spread**2


def _discriminant(broadcast: Packet) -> Discriminant:
    return Discriminant(*(arrays.to_numpy(broadcast[key]) for key in ("mean", "axes", "centroids")))


def _leverages(rows: Array, client: ClientData, broadcast: Packet) -> Array:
    """h_i = f_i'(S + beta I)^-1 f_i, from whatever the server sent."""
    if "hat" in broadcast.arrays:
        rotation = client.memory["rotation"]
        hat = arrays.copy(broadcast["hat"])
        arrays.mirror(hat)
        return ((rotation @ hat) * rotation).sum(1)
    if "sketch" in broadcast.arrays:
        return ((rows @ broadcast["sketch"]) ** 2).sum(1)
    return leverages(factor_of(broadcast), rows)
