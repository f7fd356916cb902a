"""Where the classes lie at one client: the shared discriminant, moved and re-whitened as far as the client's samples tell."""

import numpy as np
import scipy.linalg

from gramfold.solve.discriminant import Discriminant, bent

CENTROID_SAMPLES = 30.0
"""How many samples of its class a shared centroid is worth."""
SCATTER_SAMPLES = 300.0
"""How many samples the shared scatter is worth."""


def own_discriminant(
    shared: Discriminant, scores: np.ndarray, codes: np.ndarray, once: np.ndarray, shares: np.ndarray, bend: float = 0.0
) -> tuple[Discriminant, np.ndarray]:
    """The client's discriminant from its left-out scores (n x C), and their evidence under it (2 x n x C), in which each sample
    is left out of its own class's centroid. `once`: how often each counts. `shares`: the client's class shares, for its mean.

    It works in the shared whitened space, where the scatter is one. For three classes and more.
    """
    whitened = (scores - shared.mean) @ shared.axes
    targets = np.eye(len(shares))[codes] * once[:, None]
    sums, counts = targets.T @ whitened, targets.sum(0)
    centroids = (sums + CENTROID_SAMPLES * shared.centroids) / (counts + CENTROID_SAMPLES)[:, None]
    left = whitened - centroids[codes]
    scatter = (left * once[:, None]).T @ left
    scatter[np.diag_indices(len(scatter))] += SCATTER_SAMPLES
    lower = scipy.linalg.cholesky(scatter / (once.sum() + SCATTER_SAMPLES), lower=True)
    turn = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).T
    mean = shares @ centroids
    # a mean of scores that lies there in the shared space: (mean - shared.mean) axes = its place
    moved = np.linalg.lstsq(shared.axes.T, mean, rcond=None)[0]
    found = Discriminant(shared.mean + moved, shared.axes @ turn, (centroids - mean) @ turn)
    evidence = np.stack(found.evidence(scores, bend))
    others = sums[codes] - once[:, None] * whitened + CENTROID_SAMPLES * shared.centroids[codes]
    without = (others / (counts[codes] - once + CENTROID_SAMPLES)[:, None] - mean) @ turn
    placed = (whitened - mean) @ turn
    products, squares = (placed * without).sum(1), (without**2).sum(1)
    lengths = np.sqrt((placed**2).sum(1) * squares)
    samples = np.arange(len(codes))
    evidence[0, samples, codes] = bent(products / (lengths + (lengths == 0)), bend)
    evidence[1, samples, codes] = products - 0.5 * squares
    return found, evidence
