"""Groups of clients, from one point for each: which there are, and how many the points speak for.

A point s_k (q numbers) is a client's mean in units of its samples' own spread, so what of it is chance is known: v_k = 1 / n_k.
Ward's tree of the points, cut at every height and made better by k-means. How many groups there are is asked of points that are
left out, in nats:

    log p(s_k | all but k) = log [ sum_g m_g N(s_k; c_g, w + v_k) + A N(s_k; c, b + v_k) ] - log(K - 1 + A)

c_g and m_g are a group's mean and size without k, w and b how far clients vary within groups and in all beyond chance: either a
client is one of a group, or one of its own. Any cloud of points can be cut in two along one direction; that is not enough.
"""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import logsumexp

MOST = 16
"""Groups, at most."""
OWN = 1.0
"""A: for how many clients the prior has one that is in no group."""
WORTH, EACH = 10.0, 3.0
"""So many nats groups must be worth more than none, and each of them."""


@dataclass(frozen=True)
class Grouping:
    """`labels`, of each point; `centres` (groups x q); `tree`, Ward's, as SciPy's `linkage` gives it; `evidence`, by the number
    of groups, in nats."""

    labels: np.ndarray
    centres: np.ndarray
    tree: np.ndarray
    evidence: dict[int, float]

    @property
    def count(self) -> int:
        return len(self.centres)


def grouped(points: np.ndarray, noise: np.ndarray, count: int | None = None) -> Grouping:
    """The groups of points (K x q) of which a variance of `noise` (K) in every direction is chance. `count`: how many; None: as
    many as left-out points speak for."""
    K = len(points)
    tree = linkage(points, "ward") if K > 1 else np.zeros((0, 4))
    weights = _weights(noise)
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for J in range(1, max(1, min(MOST, K // 2)) + 1) if count is None else [min(count, K)]:
        start = fcluster(tree, J, "maxclust") - 1 if K > 1 else np.zeros(K, int)
        labels, centres = k_means(points, weights, start)
        found.setdefault(len(centres), (labels, centres))
    evidence = {J: left_out_evidence(points, noise, labels) if K > 2 else 0.0 for J, (labels, _) in found.items()}
    best = max(evidence, key=lambda J: evidence[J] - EACH * J)
    if 1 in evidence and evidence[best] < evidence[1] + WORTH:
        best = 1
    labels, centres = found[best]
    return Grouping(labels, centres, tree, evidence)


def k_means(points: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lloyd's steps from a start; groups that lose their last point are gone."""
    for _ in range(100):
        _, labels = np.unique(labels, return_inverse=True)
        centres = _means(points, weights, labels)
        nearest = nearest_centres(points, centres)
        if np.array_equal(nearest, labels):
            return labels, centres
        labels = nearest
    _, labels = np.unique(labels, return_inverse=True)
    return labels, _means(points, weights, labels)


def nearest_centres(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    squares = ((points[:, None, :] - centres[None]) ** 2).sum(2)
    return np.asarray(squares.argmin(1))


def _means(points: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.stack([np.average(points[labels == g], axis=0, weights=weights[labels == g]) for g in range(labels.max() + 1)])


def left_out_evidence(points: np.ndarray, noise: np.ndarray, labels: np.ndarray) -> float:
    """How likely each point is given the others and how they are grouped, in nats."""
    K, q = points.shape
    within, between = _spread(points, noise, labels), _spread(points, noise, np.zeros(K, int))
    total = left_out_means(points, noise, np.zeros(K, int))
    of_all = _log_normal(points - total[0][:, 0], between + noise + total[1][:, 0], q)
    means, uncertain, sizes = left_out_means(points, noise, labels)
    of_groups = _log_normal(points[:, None] - means, within + noise[:, None] + uncertain, q)
    with np.errstate(divide="ignore"):
        each = np.column_stack([np.log(sizes) + of_groups, np.log(OWN) + of_all])
    return float(logsumexp(each, axis=1).sum() - K * np.log(K - 1 + OWN))


def left_out_means(points: np.ndarray, noise: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The groups' means without each point (K x groups x q), how uncertain chance leaves these, and their sizes without it."""
    weights = _weights(noise)
    mine = np.arange(labels.max() + 1)[None, :] == labels[:, None]  # K x groups
    own = mine * weights[:, None]
    left = own.sum(0)[None, :] - own
    safe = np.where(left > 1e-9 * weights.max(), left, 1.0)
    means = ((own.T @ points)[None] - own[:, :, None] * points[:, None, :]) / safe[:, :, None]
    chance = (own**2).T @ noise
    return means, (chance[None] - own**2 * noise[:, None]) / safe**2, mine.sum(0)[None, :] - mine


def _weights(noise: np.ndarray) -> np.ndarray:
    """Of points in a mean: who has few samples says less, and nobody with many says all. Beside the harmonic mean of the noise,
    so that a client of next to no samples does not make those of many and of few alike."""
    return np.asarray(1.0 / (noise + 1.0 / np.mean(1.0 / noise)))


def _spread(points: np.ndarray, noise: np.ndarray, labels: np.ndarray) -> float:
    """The variance in every direction of points about their group's mean, beyond chance."""
    K, q = points.shape
    means, uncertain, sizes = left_out_means(points, noise, labels)
    at = np.arange(K), labels
    left = sizes[at]
    if not (left > 0).any():
        return _spread(points, noise, np.zeros(K, int))
    chance, counts = (noise + uncertain[at])[left > 0], 1.0 + 1.0 / left[left > 0]
    apart = (((points - means[at]) ** 2).sum(1) / q)[left > 0] - chance
    sure = (chance + chance.mean() * 1e-6) ** -2.0  # of a point that may be anywhere nothing can be told
    return max(float((sure * apart).sum() / (sure * counts).sum()), 0.0)


def _log_normal(apart: np.ndarray, variance: np.ndarray, q: int) -> np.ndarray:
    return np.asarray(-(apart**2).sum(-1) / (2 * variance) - q / 2 * np.log(2 * np.pi * variance))
