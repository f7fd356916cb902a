"""Which directions matter to clients' own functions, whatever these are: learned over all of them by sums.

client   f_k: its own kernel ridge in the metric so far                                  (`own_kernel`)
         A_k = sum_i grad f_k(x_i) grad f_k(x_i)'
         sends g_k n_k A_k / trace A_k        g_k: the share of its variance that it explains, left out. Who has learned
                                              nothing has no say, and however steep its function, none has more than samples
         and n_k / 2 log(left-out error / variance)      how unlikely this metric leaves its samples
server   A = sum;  M = A / trace A + FLOOR I / d;  T = M^(1/2), so that clients' samples vary by d in all along x T
"""

from dataclasses import dataclass

import numpy as np

from gramfold.solve.own_kernel import fit_kernel

FLOOR = 1e-4
"""What all directions together have of the metric's trace, whether or not any function depends on them."""
LEAST = 5
"""Samples from which on a client has a say."""


@dataclass(frozen=True)
class Say:
    """What one client sends, and what sums are of: `products` and `within` are d x d; `loss` in nats."""

    products: np.ndarray
    within: np.ndarray
    loss: float
    n: float


def say(rows: np.ndarray, targets: np.ndarray, root: np.ndarray, weights: np.ndarray | None = None) -> Say:
    """A client's, in the metric whose root this is. `rows` (n x d) are comparable between clients, `targets` n x outputs."""
    d = rows.shape[1]
    once = np.ones(len(rows)) if weights is None else weights
    if len(rows) < LEAST:
        return Say(np.zeros((d, d)), np.zeros((d, d)), 0.0, 0.0)
    centred = rows - once @ rows / once.sum()
    within = (centred * once[:, None]).T @ centred
    found = fit_kernel(centred @ root, targets, weights)
    if not found.nothing > 0 or not np.isfinite(found.error):
        return Say(np.zeros((d, d)), within, 0.0, 0.0)
    products = np.zeros((d, d))
    for gradients in found.gradients(centred @ root):
        products += (gradients * once[:, None]).T @ gradients
    n = float(once.sum())
    loss = 0.5 * n * float(np.log(max(found.error / found.nothing, 1e-12)))
    products = root @ products @ root
    trace = float(np.trace(products))
    return Say(found.gain * n / trace * products if trace > 0 else products, within, loss, n)


def next_root(products: np.ndarray, within: np.ndarray, n: float) -> np.ndarray:
    """T of the next pass, symmetric, from the sums."""
    d, trace = len(products), float(np.trace(products))
    metric = np.eye(d) / d if not trace > 0 else products / trace + FLOOR / d * np.eye(d)
    return unit_spread(metric, within, n)


def unit_spread(metric: np.ndarray, within: np.ndarray, n: float) -> np.ndarray:
    """The root of a metric, scaled so that samples vary by d in all about their client's mean."""
    values, vectors = np.linalg.eigh(metric)
    root = (vectors * values.clip(0.0) ** 0.5) @ vectors.T
    spread = float(np.trace(root @ within @ root)) / max(n, 1.0)
    return np.asarray(root * (len(metric) / spread) ** 0.5) if spread > 0 else root


def importance(root: np.ndarray, within: np.ndarray) -> np.ndarray:
    """What share of the spread along x T each column has: how much a column matters, in all."""
    spread = np.diagonal(within) * (root**2).sum(0)
    return np.asarray(spread / spread.sum()) if spread.sum() > 0 else np.full(len(root), 1.0 / len(root))
