"""Whether a client goes a way of its own: its samples count for more where that makes them, left out, more likely."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gramfold.heads import softmax
from gramfold.methods.parts.influence import Influence, blended
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.left_out_discriminant import LeftOutDiscriminant
from gramfold.solve.own_discriminant import own_discriminant
from gramfold.solve.softmax import most_likely

ALPHAS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
"""How many times more the client's own samples may count in its base, tried in turn as long as that makes them more likely."""
WORTH = 6.0
"""How much more likely, as a logarithm, they must become before a way of its own is believed as much as the shared one: there are
eight tries, and of some hundred samples the likelihood says little by less. It goes as much of each way as it believes it."""
HARDLY = 0.01
"""A way of its own that is believed less is none."""
BEND, FEW_CLASSES = 0.5, 20
"""How far the cosine is bent among many classes, and up to how many it is not: there the likelihood bends the evidence itself."""


def bend(classes: int) -> float:
    return BEND * max(1.0 - FEW_CLASSES / classes, 0.0)


def evidence_of(discriminant: Discriminant, scores: Array) -> np.ndarray:
    parts = discriminant.evidence(scores, bend(len(discriminant.centroids)))
    return np.stack([arrays.to_numpy(part) for part in parts])


def left_out_evidence_of(discriminant: LeftOutDiscriminant, scores: Array) -> np.ndarray:
    return discriminant.evidence(arrays.to_numpy(scores), bend(len(discriminant.shared.centroids)))


@dataclass(frozen=True)
class Fit:
    """A client's samples, to weigh evidence by: their classes, their left-out prior (n x C), how often each counts (None: once),
    the weights where they are given, and the left-out fit of the refinement once there is one."""

    codes: np.ndarray
    prior: np.ndarray
    counts: np.ndarray | None
    given: tuple[float, float, float] | None
    refined: np.ndarray | None = None

    def weights(self, evidence: np.ndarray, start: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, float]:
        """The most likely weights of the evidence (and of the refinement), and how unlikely they leave the samples."""
        if self.given is not None:
            return np.array(self.given[: len(start)]), math.inf
        return most_likely(self._all(evidence), self.prior, self.codes, start, precision, self.counts)

    def logits(self, evidence: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.asarray(np.tensordot(weights, self._all(evidence), 1))

    def _all(self, evidence: np.ndarray) -> np.ndarray:
        return evidence if self.refined is None else np.concatenate([evidence, self.refined[None]])


@dataclass(frozen=True)
class Blended:
    """What a client makes of the shared ridge: how far it goes a way of its own, how many times more its samples count there on
    average, the shared solution's move and the left-out scores."""

    own: float
    alpha: float
    move: Array
    scores: Array


@dataclass(frozen=True)
class OwnWay:
    """A client's samples, how their evidence is weighed (`fit`, and the prior's `start` and `precision`), and what they do to the
    shared ridge. `residuals` of this are times the `roots` of the samples' weights, `scores` are left-out ones; `folded`: whether
    they are part of it. `evidence` is that of left-out scores under the shared discriminant."""

    fit: Fit
    start: np.ndarray
    precision: np.ndarray
    influence: Influence
    residuals: Array
    targets: Array
    scores: Array
    roots: Array | None
    folded: bool
    evidence: Callable[[Array], np.ndarray]

    def choose(self, loss: float) -> "Blended | None":
        """As much of each alpha as the likelihood believes it; `loss` is that of staying, at alpha = 0. None: it stays."""
        losses: list[float] = [loss - WORTH]
        moves: list[Array] = []
        scores: list[Array] = []
        for alpha in ALPHAS:
            move, left = blended(self.influence, self.residuals, alpha, self.folded)
            tried = self.targets - (left if self.roots is None else left / self.roots)
            _, unlikely = self.fit.weights(self.evidence(tried), self.start, self.precision)
            if unlikely >= (losses[-1] if moves else loss):
                break
            losses, moves, scores = [*losses, unlikely], [*moves, move], [*scores, tried]
        believed = softmax(-np.array([losses]))[0]
        own = float(believed[1:].sum())
        if own < HARDLY:
            return None
        shares = [float(share) for share in believed[1:]]
        stayed = float(believed[0]) * self.scores
        return Blended(
            own,
            float(np.dot(shares, ALPHAS[: len(shares)])),
            sum((share * move for share, move in zip(shares[1:], moves[1:], strict=True)), shares[0] * moves[0]),
            sum((share * tried for share, tried in zip(shares, scores, strict=True)), stayed),
        )

    def discriminant(
        self, shared: Discriminant, way: Blended, once: np.ndarray, log_shares: np.ndarray
    ) -> tuple[Discriminant, np.ndarray]:
        """Where the classes lie at this client, and the evidence there: its samples count as far as it goes its own way. Two
        classes have one axis, and keep the shared one."""
        scores = way.scores
        if len(log_shares) == 2:
            return shared, evidence_of(shared, scores)
        shares = softmax(log_shares[None])[0]
        return own_discriminant(shared, arrays.to_numpy(scores), self.fit.codes, way.own * once, shares, bend(len(shares)))
