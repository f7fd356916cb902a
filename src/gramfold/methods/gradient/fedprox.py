"""FedProx (Li et al., MLSys 2020, arXiv 1812.06127).

client   w_k: epochs of SGD on f_k(w_k) + mu/2 ||w_k - w||^2
server   w = sum n_k w_k / sum n_k
client   uses w
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gramfold.methods.gradient.base import LEARNING_RATES, State
from gramfold.methods.gradient.fedavg import FedAvg

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedAvg with a proximal term that keeps clients near the shared model. `mu`: its weight; 0 is FedAvg, None: swept."""

    name: ClassVar[str] = "fedprox"
    summary: ClassVar[str] = "FedAvg with a proximal term towards the shared model"
    paper: ClassVar[str] = "Li et al., MLSys 2020, arXiv 1812.06127"
    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"lr": LEARNING_RATES, "mu": (1e-3, 1e-2, 0.1, 1.0)}

    mu: float | None = None

    def train(self, cohort: "Cohort", start: State) -> State:
        pull = self.mu or 0.0, cohort.shared
        return cohort.descend(self.objective(cohort), start, {}, epochs=self.epochs, optimizer=self.steps, pull=pull)
