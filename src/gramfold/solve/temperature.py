"""From ridge scores to probabilities: one number, the temperature at which their softmax is calibrated.

The scores of a ridge on one-hot targets say which class, but not how surely: softmax(scores / T) does, with the T of greatest
likelihood of left-out scores. It is a convex problem in 1/T, so a few Newton steps solve it, and order and argmax stay what they
are.
"""

import numpy as np

from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.discriminant import pooled_moments
from gramfold.solve.ridge import Penalty

STEPS = 50
START = 2.0
"""The first guess of 1/T, in units of the scores' spread."""
CLOSE = 1e-6
"""A relative step that is the last: Newton's error is of the order of its square."""
DRAWS = 4096
"""How many scores are drawn where only their moments are known."""
FLATTEST = 1e-3
"""The least 1/T, in units of the scores' spread: scores that were wrong more often than chance say nothing, not the opposite."""


def fit_temperature(
    scores: Array, codes: Array, offset: np.ndarray | float = 0.0, doubt: float = 1.0, counts: np.ndarray | None = None
) -> float:
    """T of greatest likelihood of the classes `codes` (n) given left-out `scores` (n x C) and an offset per class.

    `counts` says how often each sample counts; None: once.

    With the samples counts a doubt: as many more, of each class alike. So a client all of whose samples are right is as sure as
    Laplace's rule of succession allows, and no surer; it does not matter in what unit scores are.
    """
    scores, codes = arrays.to_numpy(scores), arrays.to_numpy(codes)
    rows, classes = scores.shape
    often = np.ones((rows, 1)) if counts is None else counts[:, None]
    n = float(often.sum())
    prior = np.broadcast_to(offset, classes)
    running = np.isfinite(prior)
    scores = np.where(running, scores - scores[:, running].mean(1, keepdims=True), 0.0)
    spread = float(np.sqrt((often * scores**2).sum() / (n * running.sum()))) if n > 0 else 0.0
    if not spread > 0.0:
        return 1.0
    scores = scores / spread
    targets = np.full((rows, classes), doubt / (n + doubt)) * running / running.sum()
    targets[np.arange(rows), codes] += n / (n + doubt)
    sharpness, wanted = START, float((often * targets * scores).sum())
    low, high = 0.0, np.inf
    for _ in range(STEPS):
        probabilities = sharpness * scores
        probabilities += prior
        probabilities -= probabilities.max(1, keepdims=True)
        np.exp(probabilities, out=probabilities)
        probabilities /= probabilities.sum(1, keepdims=True)
        mean = np.einsum("ij,ij->i", probabilities, scores)
        slope = float(often[:, 0] @ mean) - wanted
        low, high = (sharpness, high) if slope < 0 else (low, sharpness)
        if high == FLATTEST:  # no sharpness at all would be best
            break
        curvature = float(often[:, 0] @ (np.einsum("ij,ij,ij->i", probabilities, scores, scores) - mean**2))
        step = sharpness - slope / curvature if curvature > 0 else np.inf
        if not low < step < high:  # outside what is known to hold the optimum
            step = 2 * low if np.isinf(high) else (low + high) / 2
        step = max(step, FLATTEST)
        moved, sharpness = abs(step - sharpness), step
        if moved <= CLOSE * sharpness:
            break
    return spread / sharpness


def temperature_of_moments(weights: Array, cross: Array, penalty: Penalty, counts: np.ndarray, leverage: float) -> float:
    """T of a pooled ridge, from what a server has folded: that of scores drawn from a Gaussian for each class, with the first two
    moments of the left-out scores of all clients' samples (see `Discriminant`), every leverage taken at its mean.
    """
    with_targets, with_itself = pooled_moments(weights, cross, penalty, counts, leverage)
    means = (with_targets / np.maximum(counts, 1)).T
    within = (with_itself - (means.T * counts) @ means) / counts.sum()
    draws = seeds.frozen(0, "temperature")
    codes = np.repeat(np.arange(len(counts)), np.diff(np.rint(np.cumsum(counts) / counts.sum() * DRAWS).astype(int), prepend=0))
    values, vectors = np.linalg.eigh(within)
    noise = draws.standard_normal((len(codes), len(values))) * np.sqrt(np.maximum(values, 0.0))
    return fit_temperature(means[codes] + noise @ vectors.T, codes)
