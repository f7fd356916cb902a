"""FedAvg, federated averaging (McMahan et al., AISTATS 2017, arXiv 1602.05629).

client   w_k = w, then epochs of SGD on its own cross-entropy
server   w = sum n_k w_k / sum n_k
client   uses w
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.base import Gradient, Model, weighted

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class FedAvg(Gradient):
    """One shared model, trained by all clients."""

    name: ClassVar[str] = "fedavg"
    summary: ClassVar[str] = "one shared model, the average of locally trained ones"
    paper: ClassVar[str] = "McMahan et al., AISTATS 2017, arXiv 1602.05629"

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        return weighted(cohort, self.train(cohort, cohort.spread(cohort.shared)))
