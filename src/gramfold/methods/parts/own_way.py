"""Whether a client goes a way of its own: its samples count for more where that makes them, left out, more likely."""

import math
from dataclasses import dataclass

import numpy as np

from gramfold.heads import softmax
from gramfold.methods.parts.influence import Influence, blended
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import Discriminant
from gramfold.solve.own_discriminant import own_discriminant
from gramfold.solve.softmax import most_likely

ALPHAS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
"""How many times more the client's own samples may count in its base, tried in turn as long as that makes them more likely."""
WORTH = 4.0
"""How much more likely, as a logarithm, they must become before a client goes a way of its own at all: there are eight
tries, and of some hundred samples the likelihood says little by less."""
BEND, FEW_CLASSES = 0.5, 20
"""How far the cosine is bent among many classes, and up to how many it is not: there the likelihood bends the evidence itself."""


def bend(classes: int) -> float:
    return BEND * max(1.0 - FEW_CLASSES / classes, 0.0)


def evidence_of(discriminant: Discriminant, scores: Array) -> np.ndarray:
    parts = discriminant.evidence(scores, bend(len(discriminant.centroids)))
    return np.stack([arrays.to_numpy(part) for part in parts])


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
class OwnWay:
    """A client's samples, how their evidence is weighed (`fit`, and the prior's `start` and `precision`), and what they do to the
    shared ridge. `residuals` of this are times the `roots` of the samples' weights; `folded`: whether they are part of it."""

    fit: Fit
    start: np.ndarray
    precision: np.ndarray
    influence: Influence
    residuals: Array
    targets: Array
    roots: Array | None
    folded: bool

    def choose(self, discriminant: Discriminant, loss: float) -> tuple[float, Array | None, Array | None]:
        """alpha, the shared solution's move and the left-out scores there; `loss` is that of staying, at alpha = 0."""
        found: tuple[float, Array | None, Array | None] = (0.0, None, None)
        for alpha in ALPHAS:
            move, left = blended(self.influence, self.residuals, alpha, self.folded)
            scores = self.targets - (left if self.roots is None else left / self.roots)
            _, tried = self.fit.weights(evidence_of(discriminant, scores), self.start, self.precision)
            if tried > loss - (0.0 if found[0] else WORTH):
                break
            loss, found = tried, (alpha, move, scores)
        return found

    def discriminant(
        self, shared: Discriminant, scores: Array, once: np.ndarray, log_shares: np.ndarray
    ) -> tuple[Discriminant, np.ndarray]:
        """Where the classes lie at this client, and the evidence there. Two classes have one axis, and keep the shared one."""
        if len(log_shares) == 2:
            return shared, evidence_of(shared, scores)
        shares = softmax(log_shares[None])[0]
        return own_discriminant(shared, arrays.to_numpy(scores), self.fit.codes, once, shares, bend(len(shares)))
