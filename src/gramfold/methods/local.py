"""Each client alone: a tuned ridge on its own data. What federation has to beat.

client   W_k = (G_k + beta I)^-1 B_k, beta by leave-one-out
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin, counting, root_weights, scaled
from gramfold.methods.parts.selection import choose, penalty_grid
from gramfold.methods.protocol import ClientData
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.leave_one_out import Kernel


@dataclass(frozen=True)
class Local(Analytic):
    """No federation. `beta`: the ridge penalty; None: each client's own, by leave-one-out."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "each client alone: ridge on its own data"
    paper: ClassVar[str] = "ridge regression"

    beta: float | None = None

    def __post_init__(self) -> None:
        self.check_penalties("beta")

    @property
    def rounds(self) -> int:
        return 0

    def aggregate(self, total: Any, broadcast: Begin) -> Begin:
        return broadcast

    def personalize(self, client: ClientData, broadcast: Begin) -> Head:
        space = broadcast.space
        train = counting(client)
        rows = space.map(train.inputs)
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        rows, beta, chosen = scaled(rows, roots), self.beta, {}
        if beta is None:
            chosen = _choose(Kernel.of(rows, roots), targets, space.classification, train.weights)
            beta = chosen["beta"]
        return space.head(ridge_from_rows(rows, scaled(targets, roots), beta), self.name, chosen)


def _choose(kernel: Kernel, targets: Array, classification: bool, weights: np.ndarray | None) -> dict[str, float]:
    left_out = ((p, targets - kernel.left_out_residuals(targets, p)) for p in map(float, penalty_grid(kernel)))
    return choose((({"beta": penalty}, scores) for penalty, scores in left_out), targets, classification, weights)
