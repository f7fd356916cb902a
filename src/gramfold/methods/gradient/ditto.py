"""Ditto (Li et al., ICML 2021, arXiv 2012.04221).

client   v_k: epochs of SGD on f_k(v_k) + lam/2 ||v_k - w||^2, kept;  w_k: a FedAvg step, sent
server   w = sum n_k w_k / sum n_k
client   uses v_k
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.base import LEARNING_RATES, Model, State, weighted
from gramfold.methods.gradient.fedavg import FedAvg
from gramfold.methods.gradient.sides import Side, descended, personal_models

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
        personal, sent = self._trained(cohort, self._personal(cohort), Side("train", cohort.spread(cohort.shared), 0.0, {}))
        cohort.remember("personal", personal)
        return weighted(cohort, sent)

    def _personal(self, cohort: "Cohort") -> Side:
        return Side("personal", cohort.recall("personal", cohort.spread(cohort.shared)), self.lam or 0.0, {})

    def _trained(self, cohort: "Cohort", *sides: Side) -> list[State]:
        return descended(cohort, self.objective(cohort), sides, cohort.shared, epochs=self.epochs, optimizer=self.steps)

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        return personal_models(cohort, lambda rest: self._trained(rest, self._personal(rest)))
