"""Differential privacy: moments with Gaussian noise of a calibrated size (Dwork et al. 2014, Balle & Wang 2018).

One training sample more or less changes the gram by f f', the cross-moment by f y', the class counts by y: by at most R^2, R and
1, with R the length that its map lets a feature vector have. Nothing else is released: n is the sum of the noisy counts, and all
that the server makes of the moments, and sends, is made of these. Gaussian mechanisms side by side or one after another are again
one: their mu (sensitivity over noise) add in squares, so that composition is exact in closed form and needs no accountant.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from gramfold import wire
from gramfold.errors import PrivacyError
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.privacy import masks

GRAM, CROSS, COUNTS = 0.3, 0.66, 0.04
"""How the budget is divided, as shares of mu^2."""
FLOOR = 0.15
"""The least eigenvalue within classes, in units of the noise's spectral norm 2 sigma sqrt(m)."""
COVERS = (
    "one training sample of any client, added or removed: the moments, and so the broadcast, the shared head and what is made of "
    "them; not the figures that clients report (their numbers of samples, accuracies and choices), nor a client's own head"
)


@dataclass(frozen=True)
class DP:
    """A release of moments that is (`eps`, `delta`) differentially private for every training sample.

    Alone, each client adds all of the noise to its own moments; with `secure` each adds its share, and the sum has it.
    """

    eps: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        if not (math.isfinite(self.eps) and self.eps > 0 and 0 < self.delta < 1):
            raise PrivacyError(f"differential privacy takes eps above 0 and delta in (0, 1), not {self.eps} and {self.delta}")
        masks.require_cryptography()

    @property
    def mu(self) -> float:
        """The sensitivity over the standard deviation of the noise that gives eps and delta."""
        return mu_of(self.eps, self.delta)

    def noise(self, length: float) -> "Noise":
        """The noise for features whose squares sum to at most `length`."""
        parts = (length / math.sqrt(GRAM), math.sqrt(length / CROSS), math.sqrt(1 / COUNTS))
        return Noise(*(part / self.mu for part in parts))

    def statement(self) -> dict[str, Any]:
        """What a result says about it."""
        return {"eps": self.eps, "delta": self.delta, "covers": COVERS}


def delta_of(eps: float, mu: float) -> float:
    """The delta of a Gaussian mechanism (Balle & Wang 2018, theorem 8)."""
    return float(ndtr(mu / 2 - eps / mu) - math.exp(eps + log_ndtr(-mu / 2 - eps / mu)))


def mu_of(eps: float, delta: float) -> float:
    """The largest mu whose mechanism is (eps, delta) private."""
    return _largest(lambda mu: delta_of(eps, mu) <= delta)


def eps_of(mu: float, delta: float) -> float:
    """The eps of a mechanism at a delta."""
    return 0.0 if delta_of(0.0, mu) <= delta else _largest(lambda eps: delta_of(eps, mu) > delta)


def composed(releases: Sequence[DP], delta: float) -> float:
    """The eps, at this delta, of several releases about the same samples: updates, or rounds. Exact, since they are Gaussian."""
    return eps_of(math.sqrt(sum(release.mu**2 for release in releases)), delta)


def _largest(holds: Callable[[float], bool]) -> float:
    """The largest positive number for which something holds, by halving: it holds up to there, and not beyond."""
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True)
class Noise:
    """Standard deviations: of the gram's entries, the cross-moment's, the counts'."""

    gram: float
    cross: float
    counts: float

    def add(self, upload: Moments, share: float = 1.0, key: bytes | None = None) -> Moments:
        """Moments with this share of the noise's variance. Symmetric: one draw for both halves of the gram."""
        if upload.labels is None or upload.extra_weight:
            raise PrivacyError("differential privacy is for classes, and for samples without weights")
        if upload.rounding:
            raise PrivacyError("noise is calibrated for moments as they are, not for rounded ones; use precision='float64'")
        sizes = (wire.lower_size(upload.dim), upload.dim * upload.outputs, upload.outputs)
        drawn = gaussian(key if key is not None else secrets.token_bytes(32), sum(sizes))
        drawn *= np.repeat([self.gram, self.cross, self.counts], sizes) * math.sqrt(share)
        drawn += upload.vector()[:-2]
        return Moments.from_vector(np.concatenate([drawn, [drawn[-upload.outputs :].sum(), 0.0]]), upload.public())

    def repair(self, total: Moments, variance: float) -> Moments:
        """Noisy moments as methods can use them. `variance`: that of the noise in the sum, in units of this one.

        Counts are raised to a half, n is their sum. The gram is that between classes, M D^-1 M', which is positive, and that
        within them: the rest of it, with no eigenvalue below a floor that goes with the spectral norm of its noise. So gram,
        cross-moment and counts are those of some samples, and the floor is the least ridge penalty of what is solved with them.
        """
        counts, cross = np.maximum(arrays.to_numpy(total.squares), 0.5), arrays.to_numpy(total.cross)
        between = (cross / counts) @ cross.T
        values, vectors = np.linalg.eigh(arrays.to_numpy(total.gram) - between)
        floor = FLOOR * 2 * self.gram * math.sqrt(variance * total.dim)
        gram = (vectors * np.maximum(values, floor)) @ vectors.T + between
        space: dict[str, Any] = {"labels": total.labels, "fingerprint": total.fingerprint, "exact_counts": False}
        repaired = Moments.from_arrays(gram, cross, counts, 0, **space)
        repaired.exact_n = float(counts.sum())
        return repaired


def gaussian(key: bytes, size: int) -> np.ndarray:
    """Standard normal numbers that nobody without the key can tell from others: Box and Muller's, of a cipher's stream."""
    half = -(-size // 2)
    words = masks.stream(key, 2, half)
    first, second = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius = np.sqrt(-2 * np.log(first))
    angle = 2 * math.pi * second
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:size]
