"""Parts of a model that are trained apart: a base that clients share, and heads of their own."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.gradient.base import Gradient, Model, State, base_of

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras


@dataclass(frozen=True)
class WithBase(Gradient):
    """Needs a base: an MLP where the data are features."""

    normalizes: ClassVar[bool] = False
    on_features: ClassVar[str] = "mlp:256"

    def describe(self, task: Task) -> dict[str, Any]:
        network = super().describe(task)
        if network["kind"] == "linear":
            raise MethodError(f"{self.name} trains the base and the head apart, and 'linear' has no base; use mlp:WIDTH")
        return network


@dataclass(frozen=True)
class PrivateHeads(WithBase):
    """Only the base is shared."""

    def begin(self, task: Task) -> Model:
        begun = super().begin(task)
        return replace(begun, model=base_of(begun.model))

    def global_head(self, broadcast: Model) -> Head | None:
        return None


def trained(method: Gradient, cohort: "Cohort", part: State, fixed: State, epochs: int, purpose: str) -> State:
    """One part of every client's model after local training, the rest of it fixed."""
    from gramfold.methods.gradient.cohort import stacks

    whole = method.objective(cohort)

    @stacks
    def loss(state: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
        return whole({**extras["fixed"], **state}, extras, batch)  # type: ignore[no-any-return]

    return cohort.descend(loss, part, {"fixed": fixed}, epochs=epochs, optimizer=method.steps, purpose=purpose)
