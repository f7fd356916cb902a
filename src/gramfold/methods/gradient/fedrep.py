"""FedRep (Collins et al., ICML 2021, arXiv 2102.07078).

client   keeps its head; on the base it is sent trains that head, then, the head fixed, the base; sends the base
server   base = sum n_k base_k / sum n_k
client   trains its head once more on the final base
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.gradient.base import Gradient, Model, State, base_of, head_of, weighted

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras


@dataclass(frozen=True)
class FedRep(Gradient):
    """Private heads on a shared base, so it needs a base: an MLP where the data are features. `head_epochs`: how long a client
    trains its head in a round, before it trains the base for `epochs`."""

    name: ClassVar[str] = "fedrep"
    summary: ClassVar[str] = "private heads on a shared base, trained in turns"
    paper: ClassVar[str] = "Collins et al., ICML 2021, arXiv 2102.07078"
    normalizes: ClassVar[bool] = False
    on_features: ClassVar[str] = "mlp:256"

    epochs: int = 1
    head_epochs: int = 10

    def describe(self, task: Task) -> dict[str, Any]:
        network = super().describe(task)
        require_base(self.name, network)
        return network

    def begin(self, task: Task) -> Model:
        begun = super().begin(task)
        return replace(begun, model=base_of(begun.model))

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        base = cohort.spread(cohort.shared)
        head = self._head(cohort, base)
        cohort.remember("own", head)
        return weighted(cohort, trained(self, cohort, base, head, self.epochs, "base"))

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        base = cohort.spread(cohort.shared)
        return base | self._head(cohort, base)

    def global_head(self, broadcast: Model) -> Head | None:
        return None

    def _head(self, cohort: "Cohort", base: State) -> State:
        """Every client's own head, trained on a base."""
        own = cohort.recall("own", cohort.spread(head_of(cohort.net.initial)))
        return trained(self, cohort, own, base, self.head_epochs, "head")


def require_base(name: str, network: dict[str, Any]) -> None:
    if network["kind"] == "linear":
        raise MethodError(f"{name} trains the base and the head apart, and 'linear' has no base; use mlp:WIDTH")


def trained(method: Gradient, cohort: "Cohort", part: State, fixed: State, epochs: int, purpose: str) -> State:
    """One part of every client's model after local training, the rest of it fixed."""
    from gramfold.methods.gradient.cohort import stacks

    whole = method.objective(cohort)

    @stacks
    def loss(state: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
        return whole({**extras["fixed"], **state}, extras, batch)  # type: ignore[no-any-return]

    return cohort.descend(loss, part, {"fixed": fixed}, epochs=epochs, optimizer=method.steps, purpose=purpose)
