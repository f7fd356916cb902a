"""How many times more a group's samples count in the model of its clients, from moments alone.

    W_a = (S + P + a G)^-1 (M + a B)            G, B: the group's own part of S, M
    RSS_a = Y'Y - 2 <W_a, B> + <W_a, G W_a>     of the group's samples
    df_a = (1 + a) trace((S + P + a G)^-1 G)    a sample is left out with all its copies
    a minimises n_g RSS_a / (n_g - df_a)^2      generalised cross-validation within the group
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
PROBES = 64
"""Random signs by which a trace is taken: it is off by sqrt(2 / 64) of a single direction's share."""


@dataclass(frozen=True)
class GroupWeight:
    """`weight`: a; `gain`: what left-out samples of the group gain by it, in nats."""

    weight: float
    gain: float


@dataclass(frozen=True)
class Sums:
    """Of a group's samples: G (its lower triangle is read), B, Y'Y and n."""

    gram: Array
    cross: Array
    squares: float
    n: float


def group_weight(gram: Array, cross: Array, penalty: Array | float, group: Sums) -> GroupWeight:
    """`gram` and `cross` are those of all samples, the group's among them."""
    own, n, squares = arrays.copy(group.gram), group.n, group.squares
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
        rss = squares - 2.0 * float((weights * group.cross).sum()) + float((weights * (own @ weights)).sum())
        freedom = (1.0 + a) * float((probes * factor.solve(through)).sum())
        if freedom >= 0.95 * n:
            break
        score = 0.5 * n * float(np.log(max(rss, 1e-12 * squares) / (n - freedom) ** 2))
        first = min(first, score) if a == 0 else first
        if score < least - (WORTH if a else 0.0):
            best, least = GroupWeight(a, first - score), score
    return best
