"""A handful of weights of a softmax model: logits = sum_j w_j G_j + offset. Convex, so a few Newton steps give the optimum."""

import numpy as np

STEPS = 20
MIN_GAIN = 1e-5
"""A step that lowers the mean negative log-likelihood by less than this is the last."""


def most_likely(
    evidence: np.ndarray,
    offset: np.ndarray,
    codes: np.ndarray,
    start: np.ndarray,
    precision: np.ndarray,
    counts: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """The weights (k) of greatest likelihood of `codes` (n), with a Gaussian prior around `start`; and how unlikely they leave
    the samples, prior included: the sum of negative logarithms.

    `evidence` is k x n x C, `offset` has C entries or n x C, `precision` is the prior's, in samples per unit squared.
    `counts` says how often each sample counts; None: once.
    """
    if counts is not None and not counts.any():
        return start.copy(), 0.0
    rows, n = len(codes), len(codes) if counts is None else float(counts.sum())
    shares = np.full(rows, 1.0 / n) if counts is None else counts / n
    samples, k = np.arange(rows), len(start)
    flat = evidence.reshape(k, -1)
    right = evidence[:, samples, codes]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        logits = (weights @ flat).reshape(rows, -1)
        logits += offset
        logits -= logits.max(1, keepdims=True)
        chosen = logits[samples, codes]
        np.exp(logits, out=logits)
        total = logits.sum(1, keepdims=True)
        nll = float(shares @ (np.log(total[:, 0]) - chosen))
        logits /= total
        away = weights - start
        return nll + 0.5 / n * float(away @ (precision * away)), logits

    weights = start.astype(float)
    current, probabilities = loss(weights)
    for _ in range(STEPS):
        weighted = evidence * probabilities
        mean = weighted.sum(2)
        gradient = (mean - right) @ shares + precision * (weights - start) / n
        weighted *= shares[:, None]
        hessian = weighted.reshape(k, -1) @ flat.T - (mean * shares) @ mean.T + np.diag(precision) / n
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        proposed, after = loss(weights - step)
        while proposed > current and size > 1e-3:
            size /= 2
            proposed, after = loss(weights - size * step)
        if proposed >= current:
            break
        weights, gain, current, probabilities = weights - size * step, current - proposed, proposed, after
        if gain < MIN_GAIN:
            break
    return weights, n * current
