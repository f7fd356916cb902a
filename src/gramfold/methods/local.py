"""Each client alone: a tuned ridge on its own data. The baseline that federation has to beat.

client   W_k = (G_k + beta I)^-1 B_k, beta by leave-one-out
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin
from gramfold.methods.parts.selection import Candidate, choose_candidate, penalty_grid
from gramfold.methods.protocol import ClientData
from gramfold.numerics.arrays import Array
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
        self.check_penalties("beta")

    @property
    def rounds(self) -> int:
        return 0

    def aggregate(self, total: Any, broadcast: Begin) -> Begin:
        return broadcast

    def personalize(self, client: ClientData, broadcast: Begin) -> Head:
        space = broadcast.space
        rows = space.map(client.train.inputs)
        targets = space.targets(client.train, rows)
        if self.beta is None:
            found, scores = choose_candidate(_left_out(rows, targets), targets, space.classification)
            weights = ridge_from_rows(rows, targets, found["beta"])
        else:
            found = {}
            weights, scores = ridge_with_left_out(rows, targets, self.beta)
        temperature = fit_temperature(scores, client.train.targets) if space.classification else None
        return space.head(weights, self.name, found, temperature)


def _left_out(rows: Array, targets: Array) -> Iterator[Candidate]:
    kernel = Kernel.of(rows)
    for penalty in map(float, penalty_grid(kernel)):
        yield {"beta": penalty}, targets - kernel.left_out_residuals(targets, penalty)
