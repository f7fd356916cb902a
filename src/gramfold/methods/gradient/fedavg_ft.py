"""FedAvg-FT: FedAvg, then every client fine-tunes the final model on its own data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gramfold.methods.gradient.base import Gradient, Model, State
from gramfold.methods.gradient.fedavg import FedAvg

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class FedAvgFT(FedAvg):
    """`finetune_epochs`: how long each client trains the final model on its own cross-entropy."""

    name: ClassVar[str] = "fedavg-ft"
    summary: ClassVar[str] = "FedAvg, then each client fine-tunes the final model"

    finetune_epochs: int = 10

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        objective = Gradient.objective(self, cohort)
        start = cohort.spread(cohort.shared)
        return cohort.descend(objective, start, {}, epochs=self.finetune_epochs, optimizer=self.steps, purpose="fine-tune")
