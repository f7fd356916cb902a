"""Each client alone: a tuned ridge on its own data. What federation has to beat.

client   W_k = (G_k + beta I)^-1 B_k, beta by leave-one-out
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.heads import Head, Stream
from gramfold.methods.analytic import Analytic, described_map, labels_of, target_rows
from gramfold.methods.protocol import ClientData
from gramfold.methods.selection import choose, is_classification, penalty_grid
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.leave_one_out import Kernel
from gramfold.wire import Packet


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

    def aggregate(self, total: Any, broadcast: Packet) -> Packet:
        return broadcast

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        phi = described_map(broadcast)
        rows = phi(client.train.inputs)
        targets = target_rows(client.train, broadcast, rows)
        chosen = {} if self.beta is not None else _choose(rows, targets, is_classification(broadcast.meta))
        beta = self.beta if self.beta is not None else chosen["beta"]
        weights = ridge_from_rows(rows, targets, beta)
        return Head([Stream(phi, weights)], labels_of(broadcast), method=self.name, chosen=chosen)


def _choose(rows: Array, targets: Array, classification: bool) -> dict[str, float]:
    kernel = Kernel.of(rows)
    left_out = ((p, targets - kernel.left_out_residuals(targets, p)) for p in map(float, penalty_grid(kernel)))
    return choose((({"beta": penalty}, scores) for penalty, scores in left_out), targets, classification)
