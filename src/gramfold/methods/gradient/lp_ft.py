"""LP-FT, linear probing and then fine-tuning (Kumar et al., ICLR 2022, arXiv 2202.10054), of FedAvg's model.

server   w as in FedAvg
client   trains the head of w alone, then all of it, on its own data

Derived for a federation: the pretrained model is FedAvg's.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gramfold.methods.gradient.apart import WithBase, trained
from gramfold.methods.gradient.base import Gradient, Model, State, base_of, head_of
from gramfold.methods.gradient.fedavg import FedAvg

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class LPFT(FedAvg, WithBase):
    """`probe_epochs`: how long each client trains the head of the final model; `finetune_epochs`: how long all of it afterwards.
    It needs a base: an MLP where the data are features."""

    name: ClassVar[str] = "lp-ft"
    summary: ClassVar[str] = "FedAvg, then each client trains the head, then all of it"
    paper: ClassVar[str] = "Kumar et al., ICLR 2022, arXiv 2202.10054"

    probe_epochs: int = 10
    finetune_epochs: int = 10

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        base = cohort.spread(base_of(cohort.shared))
        head = trained(self, cohort, cohort.spread(head_of(cohort.shared)), base, self.probe_epochs, "probe")
        objective = Gradient.objective(self, cohort)
        return cohort.descend(objective, base | head, {}, epochs=self.finetune_epochs, optimizer=self.steps, purpose="fine-tune")
