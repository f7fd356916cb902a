"""Each client alone, by SGD from the common start: the baseline that federated training has to beat ("Local-CNN" on images)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.base import Gradient, Model, State

if TYPE_CHECKING:
    from gramfold.heads import Head
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class LocalSGD(Gradient):
    """No federation; `epochs` of local training."""

    name: ClassVar[str] = "local-sgd"
    summary: ClassVar[str] = "each client alone: SGD on its own data"
    paper: ClassVar[str] = "stochastic gradient descent"

    rounds: int = 0
    epochs: int = 100

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        return []

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        return self.train(cohort, cohort.spread(cohort.shared))

    def global_head(self, broadcast: Model) -> "Head | None":
        return None
