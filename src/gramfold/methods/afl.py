"""AFL, analytic federated learning (He et al., CVPR 2025, arXiv 2405.16240).

    client   G_k = F_k'F_k, B_k = F_k'Y_k
    server   S = sum G_k, M = sum B_k, W = (S + beta P)^-1 M          P = I in the paper; zero for an intercept: see solve/units
    client   uses W; for probabilities softmax(F W / T), with T from the moments of left-out scores

The paper's recursion over clients equals this sum, with more rounding and many more inversions.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin, Shared
from gramfold.methods.parts.selection import left_out_r2
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting, left_out_by_mean, root_weights
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.renamed import renamed


@renamed(beta="penalty")
@dataclass(frozen=True)
class AFL(Analytic):
    """One shared head, exactly that of pooled data. `penalty`: the ridge penalty; None: by GCV."""

    name: ClassVar[str] = "afl"
    summary: ClassVar[str] = "one shared ridge head, exactly that of pooled data"
    paper: ClassVar[str] = "He et al., CVPR 2025, arXiv 2405.16240"
    penalties: ClassVar[tuple[str, ...]] = ("penalty",)
    probabilistic: ClassVar[bool] = True

    penalty: float | None = None

    def solve(self, total: Moments, broadcast: Begin) -> Shared:
        pooled = PooledRidge.of(total, self.penalty, broadcast.space.units())
        return Shared(broadcast.space, pooled.weights, {"penalty": pooled.beta}, pooled.leverage, pooled.temperature)

    def personalize(self, client: ClientData, broadcast: Shared) -> Head:
        space, found = broadcast.space, {}
        if not space.classification:
            targets, scores, weights = left_out(client, broadcast)
            found = left_out_r2(targets, scores, weights)
        return space.head(broadcast.weights, self.name, found, broadcast.temperature)


def left_out(client: ClientData, broadcast: Shared) -> tuple[Array, Array, np.ndarray | None]:
    """A client's targets, the shared head's scores with each sample left out, and the samples' weights."""
    space, train = broadcast.space, counting(client)
    rows = space.map(train.inputs)
    targets, roots = space.targets(train, rows), root_weights(train, rows)
    leverage = broadcast.leverage if client.contributed else 0.0
    scores = left_out_by_mean(targets, rows @ broadcast.weights, leverage, 1.0 if roots is None else roots**2)
    return targets, scores, train.weights
