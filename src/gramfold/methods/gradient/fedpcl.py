"""FedPCL, prototype-wise contrastive learning (Tan et al., NeurIPS 2022, arXiv 2209.10083).

client   trains its own projector (unit length) so that each sample is nearest its class among the global mean prototypes,
         and among each client's; sends its class prototypes and nothing else
server   broadcasts all prototypes, and their mean by class
client   gives a sample the class of the nearest of its own prototypes
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.asked import Asked
from gramfold.methods.gradient.base import Gradient, Model, State, base_of, tensors
from gramfold.numerics.arrays import to_numpy
from gramfold.uploads import PerClient, require_shapes

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras

ABSENT_CLASS_LOGIT = -1e4
"""The logit of a class of which a client has no prototype."""


@dataclass(frozen=True)
class Prototypes(Asked):
    """Of so many classes at most, so many numbers each."""

    classes: int
    width: int

    def check(self, upload: Any) -> None:
        if not isinstance(upload, PerClient):
            raise MethodError(f"expected prototypes, got {upload.kind}")
        for parcel in upload.parcels.values():
            held = to_numpy(parcel.get("classes", np.zeros(0)))
            if held.dtype.kind not in "iu" or held.ndim != 1 or not np.isin(held, np.arange(self.classes)).all():
                raise MethodError(f"prototypes of classes that are not among the {self.classes}")
            if len(np.unique(held)) != len(held):
                raise MethodError("two prototypes of one class")
            require_shapes(parcel, {"classes": held.shape, "prototypes": (len(held), self.width), "counts": held.shape})
            if not (to_numpy(parcel["counts"]) >= 0).all():
                raise MethodError("prototypes of less than no samples")


@dataclass(frozen=True)
class FedPCL(Gradient):
    """`projector`: its width. `tau`: the temperature of the contrast."""

    name: ClassVar[str] = "fedpcl"
    summary: ClassVar[str] = "only class prototypes are sent; private projectors are trained by contrast to them"
    paper: ClassVar[str] = "Tan et al., NeurIPS 2022, arXiv 2209.10083"
    normalizes: ClassVar[bool] = False

    projector: int = 256
    tau: float = 0.07

    def describe(self, task: Task) -> dict[str, Any]:
        return {**super().describe(task), "projector": self.projector}

    def begin(self, task: Task) -> Model:
        return replace(super().begin(task), model={})

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[PerClient]:
        own = cohort.recall("own", cohort.spread(base_of(cohort.net.initial)))
        if "apart" in broadcast.extra:
            own = cohort.descend(self._contrast(cohort, broadcast), own, {}, epochs=self.epochs, optimizer=self.steps)
            cohort.remember("own", own)
        prototypes, counts = cohort.prototypes(own)
        uploads = []
        for k, client in enumerate(cohort.clients):
            held = counts[k].nonzero()[:, 0]
            uploads.append(
                PerClient({client.name: {"classes": held, "prototypes": prototypes[k, held], "counts": counts[k, held]}})
            )
        return uploads

    def asked(self, broadcast: Model) -> Asked:
        if self._standardizing(broadcast):
            return super().asked(broadcast)
        return Prototypes(len(broadcast.labels), self.projector)

    def fold(self, total: PerClient, broadcast: Model) -> Model:
        """The prototypes by client and class (zero where there is none), and their means weighted by samples."""
        parcels = total.in_order()
        some = parcels[0]["prototypes"]
        apart = some.new_zeros(len(parcels), len(broadcast.labels), self.projector)
        counts = some.new_zeros(apart.shape[:2])
        for k, parcel in enumerate(parcels):
            apart[k, parcel["classes"]] = parcel["prototypes"]
            counts[k, parcel["classes"]] = parcel["counts"].to(some.dtype)
        mean = (apart * counts[..., None]).sum(0) / counts.sum(0).clamp(min=1)[:, None]
        return broadcast.next({}, extra={"apart": apart.float(), "mean": mean.float()})

    def _contrast(self, cohort: "Cohort", broadcast: Model) -> Any:
        """Cross-entropy of the similarities to the mean prototypes, plus that to each client's, averaged over those that hold
        the sample's class."""
        import torch

        received = tensors(broadcast.extra, str(cohort.device))
        sets = torch.cat([received["mean"][None], received["apart"]])
        held = sets.abs().sum(2) > 0
        sets = torch.nn.functional.normalize(sets, dim=2)

        def loss(state: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
            z = cohort.net(state, batch.x, "base", train=True)
            near = torch.einsum("bd,scd->bsc", z, sets) / self.tau
            logs = near.masked_fill(~held, ABSENT_CLASS_LOGIT).log_softmax(2)
            right = logs.gather(2, batch.y[:, None, None].expand(-1, len(sets), 1))[..., 0]
            has = held.T[batch.y].to(z.dtype)
            right = right * has
            value = right[:, 0] + right[:, 1:].sum(1) / has[:, 1:].sum(1).clamp(min=1)
            return -(value * batch.weight).sum(), {}

        return loss

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        own = cohort.recall("own", cohort.spread(base_of(cohort.net.initial)))
        prototypes, counts = cohort.prototypes(own)
        weight = prototypes / prototypes.norm(dim=2, keepdim=True).clamp(min=1e-12) / self.tau
        return own | {"head.weight": weight, "head.bias": ABSENT_CLASS_LOGIT * (counts == 0)}

    def global_head(self, broadcast: Model) -> Head | None:
        return None
