"""FedALA, adaptive local aggregation (Zhang et al., AAAI 2023, arXiv 2212.01197).

client   starts from w_k + (w - w_k) * W on the head (the rest from w); W in [0, 1] entry by entry, learned by gradient descent
         on 80 % of its data: the first time until W converges, later one epoch. Then local training, sent.
server   w = sum n_k w_k / sum n_k
client   uses the model it would start from
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.base import Gradient, Model, State, head_of, weighted
from gramfold.methods.gradient.optimizer import Optimizer

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras

CONVERGED_CHANGE = 0.01
"""W has converged for a client when an epoch moves its entries by less than this on average."""


@dataclass(frozen=True)
class FedALA(Gradient):
    """`eta`: the step of the aggregation weights (0 leaves them at 1: FedAvg). `adapt_part`: how much of the data they are
    learned on. `first_epochs`: the maximum number of epochs the first time."""

    name: ClassVar[str] = "fedala"
    summary: ClassVar[str] = "each client learns, entry by entry, how much of the shared head to take"
    paper: ClassVar[str] = "Zhang et al., AAAI 2023, arXiv 2212.01197"

    eta: float = 1.0
    adapt_part: float = 0.8
    first_epochs: int = 10

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        trained = self.train(cohort, self._received(cohort))
        cohort.remember("previous", head_of(trained))
        return weighted(cohort, trained)

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        return self._received(cohort)

    def _received(self, cohort: "Cohort") -> State:
        """What each client starts from."""
        start = cohort.spread(cohort.shared)
        known = cohort.knows("previous")
        if not known.any():
            return start
        shared = head_of(start)
        previous = cohort.recall("previous", shared)
        weights = self._learn(
            cohort, previous, cohort.recall("weights", {name: t.new_ones(t.shape) for name, t in shared.items()})
        )
        cohort.remember("weights", weights, only=known)
        # lerp is exact at 0 and 1
        return start | {name: previous[name].lerp(shared[name], weights[name]) for name in shared}

    def _learn(self, cohort: "Cohort", previous: State, weights: State) -> State:
        import torch

        from gramfold.methods.gradient.cohort import cross_entropy

        shared = head_of(cohort.shared)

        def loss(weights: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
            mixed = {name: extras["previous"][name].lerp(shared[name], weights[name]) for name in weights}
            return cross_entropy(cohort.net(cohort.shared | mixed, batch.x), batch), {}

        done = cohort.knows("weights").to(cohort.device)
        for epoch in range(self.first_epochs):
            before = {name: tensor.clone() for name, tensor in weights.items()}
            weights = cohort.descend(
                loss, weights, {"previous": previous}, epochs=1, optimizer=Optimizer(), lr=self.eta,
                purpose=f"adapt/{epoch}", part=self.adapt_part, project=lambda tensor: tensor.clamp_(0, 1),
            )  # fmt: skip
            moved = torch.stack([(weights[name] - before[name]).abs().flatten(1).mean(1) for name in weights]).mean(0)
            if epoch:  # clients that have converged, or learned in an earlier round, keep their weights
                for name, tensor in weights.items():
                    tensor[done] = before[name][done]
            done = done | (moved < CONVERGED_CHANGE)
            if bool(done.all()):
                break
        return weights
