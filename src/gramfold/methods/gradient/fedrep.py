"""FedRep (Collins et al., ICML 2021, arXiv 2102.07078).

client   keeps its head; on the base it is sent trains that head, then, the head fixed, the base; sends the base
server   base = sum n_k base_k / sum n_k
client   trains its head once more on the final base
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.apart import PrivateHeads, trained
from gramfold.methods.gradient.base import Model, State, head_of, weighted

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort


@dataclass(frozen=True)
class FedRep(PrivateHeads):
    """Private heads on a shared base, so it needs a base: an MLP where the data are features. `head_epochs`: how long a client
    trains its head in a round, before it trains the base for `epochs`."""

    name: ClassVar[str] = "fedrep"
    summary: ClassVar[str] = "private heads on a shared base, trained in turns"
    paper: ClassVar[str] = "Collins et al., ICML 2021, arXiv 2102.07078"

    epochs: int = 1
    head_epochs: int = 10

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        base = cohort.spread(cohort.shared)
        head = self._head(cohort, base)
        cohort.remember("own", head)
        return weighted(cohort, trained(self, cohort, base, head, self.epochs, "base"))

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        base = cohort.spread(cohort.shared)
        return base | self._head(cohort, base)

    def _head(self, cohort: "Cohort", base: State) -> State:
        """Every client's own head, trained on a base."""
        own = cohort.recall("own", cohort.spread(head_of(cohort.net.initial)))
        return trained(self, cohort, own, base, self.head_epochs, "head")
