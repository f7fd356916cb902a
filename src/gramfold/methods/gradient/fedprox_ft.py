"""FedProx-FT: FedProx, then every client fine-tunes the final model on its own data, without the proximal term."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gramfold.methods.gradient.base import Model, State
from gramfold.methods.gradient.fedavg_ft import fine_tuned
from gramfold.methods.gradient.fedprox import FedProx

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class FedProxFT(FedProx):
    """`finetune_epochs`: how long each client trains the final model on its own cross-entropy."""

    name: ClassVar[str] = "fedprox-ft"
    summary: ClassVar[str] = "FedProx, then each client fine-tunes the final model"

    finetune_epochs: int = 10

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        return fine_tuned(self, cohort, self.finetune_epochs)
