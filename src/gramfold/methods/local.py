"""Each client alone: a tuned ridge on its own data. The baseline that federation has to beat.

client   W_k = (G_k + beta I)^-1 B_k, beta by leave-one-out
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.errors import GramfoldError
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin
from gramfold.methods.parts.selection import Candidate, choose_candidate, penalty_grid
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting, root_weights, scaled
from gramfold.numerics.arrays import Array
from gramfold.numerics.magnitude import require_products
from gramfold.solve.dual import ridge_from_rows, ridge_with_left_out
from gramfold.solve.leave_one_out import Kernel
from gramfold.solve.temperature import fit_temperature


@dataclass(frozen=True)
class Local(Analytic):
    """No federation. `beta`: the ridge penalty; None: each client's own, by leave-one-out."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "each client alone: ridge on its own data"
    paper: ClassVar[str] = "ridge regression"
    probabilistic: ClassVar[bool] = True

    beta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_penalties("beta")
        if self._plan is not None:
            raise GramfoldError("local learns nothing together; use a map without @learned")

    @property
    def rounds(self) -> int:
        return 0

    def solve(self, total: Any, broadcast: Begin) -> Begin:
        return broadcast

    def personalize(self, client: ClientData, broadcast: Begin) -> Head:
        space = broadcast.space
        train = counting(client)
        rows = space.map(train.inputs)
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        require_products(features=rows, targets=targets)
        rows = scaled(rows, roots)
        if self.beta is None:
            found, scores = choose_candidate(
                _left_out(Kernel.of(rows, roots), targets), targets, space.classification, train.weights
            )
            weights = ridge_from_rows(rows, scaled(targets, roots), found["beta"])
        else:
            found = {}
            weights, scores = ridge_with_left_out(rows, scaled(targets, roots), self.beta, roots)
        temperature = fit_temperature(scores, train.targets, counts=train.weights) if space.classification else None
        return space.head(weights, self.name, found, temperature)


def _left_out(kernel: Kernel, targets: Array) -> Iterator[Candidate]:
    for penalty in map(float, penalty_grid(kernel)):
        yield {"beta": penalty}, targets - kernel.left_out_residuals(targets, penalty)
