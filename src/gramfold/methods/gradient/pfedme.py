"""pFedMe (Dinh et al., NeurIPS 2020, arXiv 2006.08848).

client   for each batch: theta, K steps on f(theta) + lam/2 ||theta - w_k||^2; then w_k <- w_k - eta lam (w_k - theta); sends w_k
server   w = sum n_k w_k / sum n_k
client   uses theta
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.base import LEARNING_RATES, Gradient, Model, State, weighted

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Batch, Cohort


@dataclass(frozen=True)
class PFedMe(Gradient):
    """`lr` is the inner step, `inner_steps` (K) of them a batch; `eta` the outer one (None: swept); `lam` how strongly the
    personal model is pulled towards the shared one."""

    name: ClassVar[str] = "pfedme"
    summary: ClassVar[str] = "personal models from Moreau envelopes around the shared one"
    paper: ClassVar[str] = "Dinh et al., NeurIPS 2020, arXiv 2006.08848"
    normalizes: ClassVar[bool] = False
    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"lr": LEARNING_RATES, "eta": (0.005, 0.02, 0.06)}

    lam: float = 15.0
    eta: float | None = None
    inner_steps: int = 5

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        from gramfold.methods.gradient.cohort import cut

        outer, personal = cohort.spread(cohort.shared), cohort.spread(cohort.shared)
        step = (self.eta if self.eta is not None else self.grids["eta"][1]) * self.lam
        for batch in cohort.batches(self.epochs, "train"):
            m = len(batch.x)
            theta = self.inner(cohort, cut(outer, m), batch)
            for name, value in theta.items():
                personal[name][:m] = value
                outer[name][:m].lerp_(value, step)
        cohort.remember("personal", personal)
        return weighted(cohort, outer)

    def inner(self, cohort: "Cohort", anchor: State, batch: "Batch") -> State:
        """An approximate minimiser of f(theta) + lam/2 ||theta - anchor||^2 on one batch, for each client."""
        objective, optimizer = self.objective(cohort), self.steps
        theta = {name: tensor.clone() for name, tensor in anchor.items()}
        slots = optimizer.slots(theta)
        for _ in range(self.inner_steps):
            grads, _, _ = cohort.gradient(objective, theta, {}, batch)
            penalised = {name: grads[name] + self.lam * (theta[name] - anchor[name]) for name in theta}
            optimizer.step(theta, penalised, slots, cohort.lr)
        return theta

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        return cohort.recall("personal", cohort.spread(cohort.shared))
