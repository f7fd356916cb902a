"""FedDBE, domain bias eliminator (Zhang et al., NeurIPS 2023, arXiv 2311.14975).

    client   z = base(x), logits = head(z + u_k); the offset u_k is trained with the model and stays; r_k, the running mean of z,
             is pulled towards the global mean r: f_k + kappa mean(1/2 (r_k - r)^2)
    server   w = sum n_k w_k / sum n_k; r = sum n_k r_k / sum n_k, once, after the first round
    client   uses w with its own u_k

On a linear head the base is the input itself: u_k then is a private shift of the features, and r_k has nothing to train.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold import networks
from gramfold.methods.gradient.base import LEARNING_RATES, MODEL, Gradient, Model, State, weighted
from gramfold.uploads import NamedSums

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras


@dataclass(frozen=True)
class FedDBE(Gradient):
    """`kappa`: how strongly the mean feature is pulled towards the global one; None: swept. `mean_momentum`: a batch's
    weight in the running mean."""

    name: ClassVar[str] = "feddbe"
    summary: ClassVar[str] = "a private feature offset absorbs what is specific to a client"
    paper: ClassVar[str] = "Zhang et al., NeurIPS 2023, arXiv 2311.14975"
    normalizes: ClassVar[bool] = False
    on_features: ClassVar[str] = "mlp:256"
    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"lr": LEARNING_RATES, "kappa": (0.0, 1.0, 50.0)}

    kappa: float | None = None
    mean_momentum: float = 0.1

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[NamedSums]:
        import torch

        from gramfold.methods.gradient.cohort import cross_entropy

        consensus = torch.as_tensor(broadcast.extra["mean"], device=cohort.device) if "mean" in broadcast.extra else None

        def loss(state: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
            features = cohort.net(state, batch.x, "base", train=True)
            logits = cohort.net(state, features + state["offset"], "head")
            mean = (features * batch.weight[:, None]).sum(0)
            running = extras["mean"] + self.mean_momentum * (mean - extras["mean"])
            value = cross_entropy(logits, batch)
            if consensus is not None:
                value = value + (self.kappa or 0.0) * 0.5 * (running - consensus).square().mean()
            return value, {"mean": running.detach()}

        start = cohort.spread(cohort.shared) | cohort.recall("private", {"offset": self._zeros(cohort)})
        extras = cohort.recall("private", {"mean": cohort.feature_means(cohort.shared)})
        trained = cohort.descend(loss, start, extras, epochs=self.epochs, optimizer=self.steps)
        cohort.remember("private", {"offset": trained.pop("offset"), "mean": extras["mean"]})
        uploads = weighted(cohort, trained)
        if consensus is None:
            for k, upload in enumerate(uploads):
                upload["mean"] = cohort.sizes[k] * extras["mean"][k]
        return uploads

    def upload_shapes(self, broadcast: Model) -> dict[str, tuple[int, ...]]:
        means = {} if "mean" in broadcast.extra else {"mean": (networks.build(dict(broadcast.network)).width,)}
        return {**super().upload_shapes(broadcast), **means}

    def _zeros(self, cohort: "Cohort") -> Any:
        return next(iter(cohort.shared.values())).new_zeros(len(cohort), cohort.net.width)

    def fold(self, total: NamedSums, broadcast: Model) -> Model:
        extra = broadcast.extra or {"mean": (total["mean"] / total["n"]).float()}
        return broadcast.next({name: total[MODEL + name] / total["n"] for name in broadcast.model}, extra=extra)

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        """head(z + u) is the head with W u added to its bias."""
        state = cohort.spread(cohort.shared)
        offset = cohort.recall("private", {"offset": self._zeros(cohort)})["offset"]
        state["head.bias"] = state["head.bias"] + (state["head.weight"] @ offset[..., None])[..., 0]
        return state
