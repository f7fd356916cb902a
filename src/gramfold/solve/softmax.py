"""A handful of weights of a softmax model: logits = sum_j w_j G_j + offset. Convex, so a few Newton steps give the optimum.

Of clients side by side, each its own: one that is done waits for the others.
"""

import numpy as np

from gramfold.numerics import arrays, stacks
from gramfold.numerics.arrays import Array

STEPS = 20
MIN_GAIN = 1e-5
"""A step that lowers the mean negative log-likelihood by less than this is the last."""
ROUNDING = 1e-14
"""What is gained by less is gained by rounding."""
SHORTEST = 1e-3
"""The least part of a step that is tried."""


def most_likely(
    evidence: Array, offset: Array, codes: Array, start: np.ndarray, precision: np.ndarray, counts: Array
) -> tuple[np.ndarray, np.ndarray]:
    """The weights (clients x k) of greatest likelihood of `codes` (clients x n), with a Gaussian prior around `start`; and how
    unlikely they leave a client's samples, prior included: the sum of negative logarithms.

    `evidence` is clients x k x n x C, `offset` clients x n x C; `start` and `precision`, in samples per unit squared, are the
    prior's (k, or clients x k). `counts` (clients x n) says how often each sample counts.
    """
    problem = _Problem(evidence, offset, codes, start, precision, counts)
    weights = np.broadcast_to(start, evidence.shape[:2]).astype(float)
    current, probabilities = problem.loss(weights)
    active = np.ones(len(weights), bool)
    for _ in range(STEPS):
        step = problem.newton(weights, probabilities)
        size = np.ones((len(weights), 1))
        proposed, probabilities = problem.loss(weights - step)
        while (halved := active & (proposed > current) & (size[:, 0] > SHORTEST)).any():
            size[halved] /= 2
            proposed, probabilities = problem.loss(weights - size * step)
        active &= current - proposed > ROUNDING * (1.0 + abs(current))
        weights = np.where(active[:, None], weights - size * step, weights)
        gain, current = current - proposed, np.where(active, proposed, current)
        active &= gain >= MIN_GAIN
        if not active.any():
            break
    return weights, problem.n * current


class _Problem:
    """The mean negative log-likelihood, with its derivatives. Few numbers are NumPy's, many where the evidence is."""

    def __init__(
        self, evidence: Array, offset: Array, codes: Array, start: np.ndarray, precision: np.ndarray, counts: Array
    ) -> None:
        self.evidence, self.offset, self.codes, self.start, self.precision = evidence, offset, codes, start, precision
        clients, k = evidence.shape[:2]
        self.flat = evidence.reshape(clients, k, -1)
        n = arrays.to_numpy(counts.sum(-1))
        self.n = n + (n == 0)
        self.shares = counts / arrays.like(self.n, counts)[:, None]
        right = stacks.pick(evidence, codes[:, None])
        self.right = arrays.to_numpy((right * self.shares[:, None]).sum(-1))

    def loss(self, weights: np.ndarray) -> tuple[np.ndarray, Array]:
        """Each client's, and the probabilities."""
        logits = (arrays.like(weights, self.flat)[:, None] @ self.flat).reshape(self.offset.shape)
        logits += self.offset
        logits -= arrays.last_max(logits)
        chosen = stacks.pick(logits, self.codes)
        probabilities = arrays.exp_inplace(logits)
        total = probabilities.sum(-1)
        nll = arrays.to_numpy((self.shares * (arrays.log(total) - chosen)).sum(-1))
        probabilities /= total[..., None]
        away = weights - self.start
        return nll + 0.5 / self.n * (self.precision * away**2).sum(-1), probabilities

    def newton(self, weights: np.ndarray, probabilities: Array) -> np.ndarray:
        """The Newton step of each client."""
        weighted = self.evidence * probabilities[:, None]
        mean = weighted.sum(-1)
        weighted *= self.shares[:, None, :, None]
        means = mean * self.shares[:, None]
        curvature = weighted.reshape(self.flat.shape) @ stacks.transposed(self.flat) - means @ stacks.transposed(mean)
        told = arrays.to_numpy(arrays.concatenate([curvature, means.sum(-1)[..., None]], axis=-1))
        n, k = self.n[:, None], weights.shape[1]
        precision = np.broadcast_to(self.precision, weights.shape)
        gradient = told[..., -1] - self.right + precision * (weights - self.start) / n
        hessian = told[..., :-1] + (precision / n)[..., None] * np.eye(k)
        return np.asarray(np.linalg.solve(hessian, gradient[..., None])[..., 0])
