"""How many times more a group's samples count in the model of its clients, from moments alone.

    W_a = (S + P + a G)^-1 (M + a B)            G, B: the group's own part of S, M
    R_a = Y'Y - W_a'B - B'W_a + W_a'G W_a       products of the residuals of the group's samples
    df_a = (1 + a) trace((S + P + a G)^-1 G)    a sample is left out with all its copies
    a minimises n_g / 2 log det [R_a / (n_g - df_a)^2]

That is generalised cross-validation within the group, by the likelihood of normal residuals: of classes, whose residuals sum to
zero, of all but one; of several values each alone.
"""

from dataclasses import dataclass

import numpy as np

from gramfold.numerics import arrays, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import factorise

TRIED = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""How many times more than others' they may count."""
WORTH = 3.0
"""In nats: what a weight must gain on a smaller one."""
MOST = 0.85
"""Degrees of freedom per sample, at most."""
PROBES = 64
"""Random signs by which a trace is taken: it is off by sqrt(2 / 64) of a single direction's share."""


@dataclass(frozen=True)
class GroupWeight:
    """`weight`: a; `gain`: what left-out samples of the group gain by it, in nats."""

    weight: float
    gain: float
    leverage: float = 0.0
    """The mean of the group's samples, all their copies together."""


@dataclass(frozen=True)
class Sums:
    """Of a group's samples: G (its lower triangle is read), B, the diagonal of Y'Y, n, and whether targets are classes."""

    gram: Array
    cross: Array
    squares: Array
    n: float
    classes: bool = False

    @property
    def outputs(self) -> int:
        """Those whose residuals are free."""
        return len(self.squares) - self.classes


def group_weight(gram: Array, cross: Array, penalty: Array | float, group: Sums) -> GroupWeight:
    """`gram` and `cross` are those of all samples, the group's among them."""
    own, n = arrays.copy(group.gram), group.n
    arrays.mirror(own)
    signs = seeds.frozen(0, "group weight").choice([-1.0, 1.0], (len(own), PROBES)) / np.sqrt(PROBES)
    probes = arrays.like(signs, own)
    through = own @ probes
    best, least = GroupWeight(0.0, 0.0), np.inf
    first = np.inf
    for a in TRIED:
        if n < 2:
            break
        factor = factorise(gram + a * own, penalty)
        weights = factor.solve(cross + a * group.cross)
        freedom = (1.0 + a) * float((probes * factor.solve(through)).sum())
        if freedom >= MOST * n and a:  # near interpolation the criterion is 0/0
            break
        freedom = min(freedom, 0.95 * n)
        score = 0.5 * n * _log_determinant(group, weights, own) - n * group.outputs * float(np.log(n - freedom))
        first = min(first, score) if a == 0 else first
        if score < least - (WORTH if a else 0.0):
            best, least = GroupWeight(a, first - score, freedom / n), score
    return best


def _log_determinant(group: Sums, weights: Array, own: Array) -> float:
    """That of R."""
    cross, squares = arrays.to_numpy(weights.T @ group.cross), arrays.to_numpy(group.squares)
    residuals = np.diag(squares) - cross - cross.T + arrays.to_numpy(weights.T @ (own @ weights))
    least = 1e-12 * float(squares.sum()) + 1e-300
    if not group.classes:
        return float(np.log(residuals.diagonal().clip(least)).sum())
    return float(np.log(np.linalg.eigvalsh(residuals[:-1, :-1]).clip(least)).sum())
