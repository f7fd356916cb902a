"""FedAS (Yang et al., CVPR 2024).

client   keeps its head; trains the base it is sent for one epoch towards its own class prototypes (means of its previous
         base's features), then base and head on its data; sends the base and the trace of its Fisher information
server   base = sum F_k base_k / sum F_k
client   uses the aligned base with its own head
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.apart import PrivateHeads
from gramfold.methods.gradient.base import Gradient, Model, State, base_of, head_of, weighted

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras

BATCH_CLIENTS = 32
"""Clients whose per-sample gradients are in memory at the same time."""


@dataclass(frozen=True)
class FedAS(PrivateHeads):
    """A private head on a shared base, so it needs a base: an MLP where the data are features."""

    name: ClassVar[str] = "fedas"
    summary: ClassVar[str] = "private heads on a shared base, aligned on receipt and weighted by Fisher information"
    paper: ClassVar[str] = "Yang et al., CVPR 2024"

    align_epochs: int = 1

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        trained = self.train(cohort, self._received(cohort))
        cohort.remember("own", trained)
        return weighted(cohort, base_of(trained), fisher_traces(self, cohort, trained))

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        return self._received(cohort)

    def _received(self, cohort: "Cohort") -> State:
        """The shared base, aligned, and each client's own head."""
        import torch

        first = cohort.spread(cohort.shared | head_of(cohort.net.initial))
        own = cohort.recall("own", first)
        prototypes = cohort.prototypes(own)[0]

        def distance(state: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
            apart = (cohort.net(state, batch.x, "base", train=True) - extras["prototypes"][batch.y]).square().mean(1)
            return (apart * batch.weight).sum(), {}

        aligned = cohort.descend(
            distance, cohort.spread(cohort.shared), {"prototypes": prototypes},
            epochs=self.align_epochs, optimizer=self.steps, purpose="align",
        )  # fmt: skip
        known = cohort.knows("own").to(cohort.device)
        base = {name: torch.where(known.reshape(-1, *[1] * (t.ndim - 1)), t, first[name]) for name, t in aligned.items()}
        return base | head_of(own)


def fisher_traces(method: Gradient, cohort: "Cohort", state: State) -> list[float]:
    """Every client's trace of the empirical Fisher information: the mean over its samples of the squared gradient's length."""
    import torch
    from torch.func import grad, vmap

    from gramfold.methods.gradient.cohort import Batch, cut

    objective = method.objective(cohort)

    def length(state: State, x: Any, y: Any) -> Any:
        one = Batch(x[None], y[None], torch.ones(1, device=x.device), x.new_empty(1, 0))
        grads = grad(lambda state: objective(state, {}, one)[0])(state)
        return torch.stack([g.square().sum() for g in grads.values()]).sum()

    over_clients = vmap(vmap(length, (None, 0, 0)), chunk_size=BATCH_CLIENTS)
    total = torch.zeros(len(cohort), device=cohort.device)
    for batch in cohort.batches(1, "fisher"):
        m = len(batch.x)
        total[:m] += (over_clients(cut(state, m), batch.x, batch.y) * (batch.weight > 0)).sum(1)
    # a client without any loss still gets a small weight, so that a round of such clients has a mean
    return [max(float(value) / n, 1e-12) for value, n in zip(total, cohort.sizes, strict=True)]
