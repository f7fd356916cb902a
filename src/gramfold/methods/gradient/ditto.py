"""Ditto (Li et al., ICML 2021, arXiv 2012.04221).

client   v_k: epochs of SGD on f_k(v_k) + lam/2 ||v_k - w||^2, kept;  w_k: a FedAvg step, sent
server   w = sum n_k w_k / sum n_k
client   uses v_k
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.base import LEARNING_RATES, Model, State
from gramfold.methods.gradient.fedavg import FedAvg
from gramfold.methods.gradient.fedprox import proximal

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class Ditto(FedAvg):
    """A personal model in addition to FedAvg's. `lam`: how strongly it is pulled towards it; 0 is local training, None: swept."""

    name: ClassVar[str] = "ditto"
    summary: ClassVar[str] = "a personal model kept near FedAvg's"
    paper: ClassVar[str] = "Li et al., ICML 2021, arXiv 2012.04221"
    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"lr": LEARNING_RATES, "lam": (0.1, 1.0, 2.0)}

    lam: float | None = None

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        cohort.remember("personal", self._personal(cohort))
        return super().update(cohort, broadcast)

    def _personal(self, cohort: "Cohort") -> State:
        start = cohort.recall("personal", cohort.spread(cohort.shared))
        objective = proximal(self.objective(cohort), cohort.shared, self.lam or 0.0)
        return cohort.descend(objective, start, {}, epochs=self.epochs, optimizer=self.steps, purpose="personal")

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        """The personal models; clients never sampled train theirs from the last shared one."""
        if cohort.knows("personal").all():
            return cohort.recall("personal", cohort.spread(cohort.shared))
        return cohort.recall("personal", self._personal(cohort))
