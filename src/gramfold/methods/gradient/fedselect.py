"""FedSelect (Tamirisa et al., CVPR 2024, arXiv 2404.02478).

client   starts from its own values where its mask is set, from w elsewhere; local training; every third round the quarter of
         its shared weights that moved most becomes personal, up to 80 % in all; sends the weights it shares
server   w = the mean over those that share a weight, entry by entry
client   uses its own values where its mask is set, w elsewhere
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gramfold.methods.gradient.base import MODEL, Gradient, Model, State, named, named_shapes, tensors
from gramfold.uploads import NamedSums

if TYPE_CHECKING:
    from gramfold.methods.gradient.cohort import Cohort

WEIGHT = "weight/"
"""The prefix of the sums of samples of the clients that share an entry."""


@dataclass(frozen=True)
class FedSelect(Gradient):
    """`share`: the part of the shared weights that becomes personal, `every` so many rounds, until `most` are personal. With
    most=0 it is FedAvg; with share=1, every=1, most=1 local training."""

    name: ClassVar[str] = "fedselect"
    summary: ClassVar[str] = "the weights that move most become personal, one mask per client"
    paper: ClassVar[str] = "Tamirisa et al., CVPR 2024, arXiv 2404.02478"

    share: float = 0.25
    every: int = 3
    most: float = 0.8

    def upload_shapes(self, broadcast: Model) -> dict[str, tuple[int, ...]]:
        return {**named_shapes(broadcast), **named_shapes(broadcast, WEIGHT)}

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[NamedSums]:
        start, mask = self._received(cohort)
        before = {name: tensor.clone() for name, tensor in start.items()}
        trained = self.train(cohort, start)
        uploads = []
        for k, n in enumerate(cohort.sizes):
            shares = {
                name: (~mask[name][k]).to(t.dtype) * n if name in mask else t[k].new_full(t[k].shape, n)
                for name, t in trained.items()
            }
            sums = {name: trained[name][k] * shares[name] for name in trained}
            uploads.append(NamedSums({**named(sums), **{WEIGHT + name: share for name, share in shares.items()}}))
        if (broadcast.round + 1) % self.every == 0:
            mask = self._grown(mask, {name: (trained[name] - before[name]).abs() for name in mask})
        cohort.remember("own", trained)
        cohort.remember("mask", mask)
        return uploads

    def _received(self, cohort: "Cohort") -> tuple[State, State]:
        import torch

        shared = cohort.spread(cohort.shared)
        nothing = {name: torch.zeros_like(t, dtype=torch.bool) for name, t in shared.items() if name not in cohort.net.statistics}
        mask, own = cohort.recall("mask", nothing), cohort.recall("own", shared)
        return shared | {name: torch.where(mask[name], own[name], shared[name]) for name in mask}, mask

    def _grown(self, mask: State, moved: State) -> State:
        """The masks with the shared weights that moved most added."""
        import torch

        flat = torch.cat([mask[name].flatten(1) for name in mask], 1)
        distance = torch.cat([moved[name].flatten(1) for name in mask], 1).masked_fill(flat, -1.0)
        total = flat.shape[1]
        for k in range(len(flat)):
            personal = int(flat[k].sum())
            count = min(round(self.share * (total - personal)), int(self.most * total) - personal)
            if count > 0:
                flat[k, distance[k].topk(count).indices] = True
        parts = torch.split(flat, [mask[name][0].numel() for name in mask], 1)
        return {name: part.reshape(mask[name].shape) for name, part in zip(mask, parts, strict=True)}

    def fold(self, total: Any, broadcast: Model) -> Model:
        import torch

        shared = {}
        for name, before in tensors(broadcast.model, str(total[f"{MODEL}head.bias"].device)).items():
            weight = total[WEIGHT + name]
            shared[name] = torch.where(weight > 0, total[MODEL + name] / weight.clamp(min=1), before.to(weight.dtype))
        return broadcast.next(shared)

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        return self._received(cohort)[0]
