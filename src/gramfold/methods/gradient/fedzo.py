"""FedZO, zeroth-order federated optimisation (Fang et al., IEEE TSP 2022, arXiv 2201.09531): no gradient is computed either.

client   w_k = w, then for every batch, with v_1 .. v_b drawn evenly from the unit sphere of R^d:
           g = d / (b mu) sum_i (F(w_k + mu v_i) - F(w_k)) v_i        an estimate of the gradient of a smoothed loss
           w_k <- w_k - lr g
server   w = sum n_k w_k / sum n_k
client   uses w

A batch takes b + 1 forward passes, and the estimate's variance grows with d / b.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.errors import MethodError
from gramfold.methods.gradient.fedavg import FedAvg

if TYPE_CHECKING:
    import torch

    from gramfold.methods.gradient.base import State
    from gramfold.methods.gradient.cohort import Batch, Cohort


@dataclass(frozen=True)
class FedZO(FedAvg):
    """`directions`: b, the differences that make up a step. `step`: mu, how far the loss is looked at."""

    name: ClassVar[str] = "fedzo"
    summary: ClassVar[str] = "one shared model, trained by differences of the loss along drawn directions; no gradients"
    paper: ClassVar[str] = "Fang et al., IEEE TSP 2022, arXiv 2201.09531"
    normalizes: ClassVar[bool] = False  # what a loss does to running statistics would depend on where it is looked at
    grids: ClassVar[Any] = {"lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1)}

    directions: int = 20
    step: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.directions < 1 or not self.step > 0:
            raise MethodError("FedZO needs at least one direction, and a positive step")

    def train(self, cohort: "Cohort", start: "State") -> "State":
        import torch

        from gramfold.methods.gradient.cohort import cut

        drawn = [torch.Generator().manual_seed(_seed(cohort, client)) for client in cohort.clients]
        slots = self.steps.slots(start)
        for batch in cohort.batches(self.epochs, "train"):
            m = len(batch.x)
            front = cut(start, m)
            with torch.no_grad():
                estimate = self._estimate(cohort, front, batch, drawn[:m])
            self.steps.step(front, estimate, cut(slots, m), cohort.lr)
        return start

    def _estimate(self, cohort: "Cohort", state: "State", batch: "Batch", drawn: "list[torch.Generator]") -> "State":
        """Every client's g."""
        import torch

        here, total = self._losses(cohort, state, batch), {name: torch.zeros_like(part) for name, part in state.items()}
        numbers = sum(part[0].numel() for part in state.values())
        for _ in range(self.directions):
            directions = [_direction(state, generator) for generator in drawn]
            along = {name: torch.stack([own[name] for own in directions]) for name in state}
            moved = {name: part.double() + self.step * along[name] for name, part in state.items()}
            slope = (self._losses(cohort, moved, batch) - here).mul(numbers / (self.directions * self.step)).float()
            for name, part in along.items():
                total[name] += part * slope.reshape(-1, *[1] * (part.ndim - 1))
        return total

    def _losses(self, cohort: "Cohort", state: "State", batch: "Batch") -> "torch.Tensor":
        """Every client's loss on its batch, in float64: a difference over mu magnifies rounding."""
        import torch

        from gramfold.methods.gradient.cohort import Batch

        objective, state = self.objective(cohort), {name: part.double() for name, part in state.items()}
        batch = batch._replace(x=batch.x.double(), weight=batch.weight.double(), noise=batch.noise.double())
        if len(batch.x) == 1:
            alone = {name: part[0] for name, part in state.items()}
            one: torch.Tensor = objective(alone, {}, Batch(*(part[0] for part in batch)))[0][None]
            return one
        side_by_side: torch.Tensor = torch.func.vmap(lambda own, some: objective(own, {}, some)[0])(state, batch)
        return side_by_side


def _seed(cohort: "Cohort", client: Any) -> int:
    return int(cohort.generator(client, "directions").integers(2**62))


def _direction(state: "State", generator: "torch.Generator") -> "State":
    """A point of the unit sphere, in the shape of one client's weights. Drawn on the CPU: the same on every device."""
    import torch

    drawn = {name: torch.randn(part.shape[1:], generator=generator) for name, part in state.items()}
    length = torch.stack([part.square().sum() for part in drawn.values()]).sum().sqrt()
    return {name: (part / length).to(state[name].device) for name, part in drawn.items()}
