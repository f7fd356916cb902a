"""AFL, analytic federated learning (He et al., CVPR 2025, arXiv 2405.16240).

    client   G_k = F_k'F_k, B_k = F_k'Y_k
    server   S = sum G_k, M = sum B_k, W = (S + beta I)^-1 M
    client   uses W; for probabilities softmax(F W / T), with T from the moments of left-out scores

The paper's recursion over clients equals this sum, with more rounding and many more inversions.
"""

from dataclasses import dataclass
from typing import ClassVar

from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin, Shared
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import shared_temperature, solve_pooled
from gramfold.moments import Moments
from gramfold.solve.leave_one_out import mean_leverage


@dataclass(frozen=True)
class AFL(Analytic):
    """One shared head, exactly that of pooled data. `beta`: the ridge penalty; None: by GCV."""

    name: ClassVar[str] = "afl"
    summary: ClassVar[str] = "one shared ridge head, exactly that of pooled data"
    paper: ClassVar[str] = "He et al., CVPR 2025, arXiv 2405.16240"
    probabilistic: ClassVar[bool] = True

    beta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_penalties("beta")

    def solve(self, total: Moments, broadcast: Begin) -> Shared:
        beta, factor = solve_pooled(total, self.beta)
        weights, leverage = factor.solve(total.cross), mean_leverage(factor, beta, total.weight)
        return Shared(broadcast.space, weights, {"beta": beta}, leverage, shared_temperature(total, weights, beta, leverage))

    def personalize(self, client: ClientData, broadcast: Shared) -> Head:
        return broadcast.space.head(broadcast.weights, self.name, temperature=broadcast.temperature)
