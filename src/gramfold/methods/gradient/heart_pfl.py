"""HEART-PFL (Kim & Kim, WACV 2026, arXiv 2603.24209).

client   v_k: SGD on CE(v_k) + prox ||v_k - w||^2 + hda L_HDA, kept;  w_k: SGD on CE, sent. Convolutions are frozen; adapters,
         normalisation and the head are trained. Prototypes of HDA are v_k's class means at the start of the round
server   w = mean of w_k; in the first rounds AKT distils the clients' models into it, on proxy images (hda.py, akt.py)
client   uses v_k
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramfold import networks
from gramfold.errors import GramfoldError
from gramfold.federation import Dataset, Task, load_npz
from gramfold.methods.gradient.base import MODEL, Gradient, Model, State, named, named_shapes, weighted
from gramfold.methods.gradient.fedprox import proximal
from gramfold.uploads import NamedSums, PerClient

if TYPE_CHECKING:
    from torch import Tensor

    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras

BATCH_IMAGES = 256
"""Batch size for computing prototypes."""


@dataclass(frozen=True)
class HeartPFL(Gradient):
    """`model`: resnet18 or resnet:WIDTHxBLOCKS, its convolutions from the state-dict file `pretrained` (or drawn from the seed)
    and frozen unless `freeze` is False. `adapters`, `hda` (its weight) and AKT can each be switched off: AKT needs `proxy`,
    an .npz file of labelled images at the server, and runs for the first `akt_rounds`.
    """

    name: ClassVar[str] = "heart-pfl"
    summary: ClassVar[str] = "adapters in a frozen residual network, stages aligned to prototypes, adversarial distillation"
    paper: ClassVar[str] = "Kim & Kim, WACV 2026, arXiv 2603.24209"
    input_kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    on_images: ClassVar[str] = "resnet18"

    epochs: int = 10
    batch_size: int = 16
    participation: float = 0.4
    pretrained: str | None = None
    freeze: bool = True
    adapters: bool = True
    prox: float = 1.0
    hda: float = 0.1
    proxy: str | None = None
    akt_rounds: int = 30
    akt_epochs: int = 1

    def describe(self, task: Task) -> dict[str, Any]:
        spec = self.model or self.on_images
        if not spec.startswith("resnet") or not task.shape:
            raise GramfoldError("heart-pfl trains a residual network on images; use resnet18 or resnet:WIDTHxBLOCKS")
        more = {"adapters": self.adapters, "freeze": self.freeze, "pretrained": self.pretrained}
        return networks.describe(spec, task.shape, task.outputs, task.seed, **more)

    def begin(self, task: Task) -> Model:
        begun = super().begin(task)
        return replace(begun, model={**begun.model, **networks.build(dict(begun.network)).buffers})

    # --- the client ---

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        cohort.remember("personal", self._personal(cohort))
        trained = self._descend(cohort, self.objective(cohort), cohort.spread(cohort.shared), "shared")
        if not self._distils(broadcast):
            return weighted(cohort, trained, [1.0] * len(cohort))
        return [
            PerClient({client.name: named({name: tensor[k] for name, tensor in trained.items()})})
            for k, client in enumerate(cohort.clients)
        ]

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        """The personal models; clients never sampled train theirs from the last shared one."""
        import torch

        known = cohort.knows("personal").to(cohort.device)
        kept = cohort.recall("personal", cohort.spread(cohort.shared))
        if known.all():
            return kept
        made = self._personal(cohort)
        return {name: torch.where(known.reshape(-1, *[1] * (t.ndim - 1)), t, made[name]) for name, t in kept.items()}

    def _personal(self, cohort: "Cohort") -> State:
        start = cohort.recall("personal", cohort.spread(cohort.shared))
        anchor = {name: cohort.shared[name] for name in cohort.net.initial}
        prototypes = self.prototypes(cohort, start) if self.hda else None
        objective = proximal(self.objective(cohort), anchor, 2 * self.prox)
        return self._descend(cohort, objective, start, "personal", prototypes)

    def _descend(
        self, cohort: "Cohort", objective: Any, state: State, purpose: str, prototypes: "dict[str, Tensor] | None" = None
    ) -> State:
        """Train the trainable weights, towards the prototypes if there are any; running statistics change with each batch."""
        trained = {name: state[name] for name in cohort.net.initial}
        extras = {"statistics": {name: state[name] for name in cohort.net.buffers}, "prototypes": prototypes or {}}
        cohort.descend(objective, trained, extras, epochs=self.epochs, optimizer=self.steps, purpose=purpose)
        return {**trained, **extras["statistics"]}

    def objective(self, cohort: "Cohort") -> Any:
        """Cross-entropy, plus HDA where there are prototypes."""
        from gramfold.methods.gradient.cohort import cross_entropy
        from gramfold.methods.gradient.hda import alignment

        net = cohort.net

        def loss(state: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
            weights = {**extras["statistics"], **state}
            stages, statistics = net.normalizing(weights, batch.x, "stages", batch.weight, batch.noise if net.noise else None)
            value = cross_entropy(net(weights, stages[-1], "head"), batch)
            if extras["prototypes"]:
                aligned = alignment(stages, list(extras["prototypes"].values()), batch.y)
                value = value + self.hda * (aligned * batch.weight).sum()
            return value, {"statistics": statistics}

        return loss

    def prototypes(self, cohort: "Cohort", start: State) -> "dict[str, Tensor]":
        """The class means of every stage, over all of a client's samples, under the weights it starts from; stacked."""
        import torch

        from gramfold.methods.gradient.hda import class_means

        found = []
        for k in range(len(cohort)):
            (x, y), state = cohort.samples(k), {name: tensor[k] for name, tensor in start.items()}
            with torch.no_grad():
                parts = [cohort.net(state, x[i : i + BATCH_IMAGES], "stages") for i in range(0, len(x), BATCH_IMAGES)]
                stages = [torch.cat(stage) for stage in zip(*parts, strict=True)]
            found.append(class_means(stages, y, cohort.net.description["classes"]))
        return {f"stage {number}": torch.stack(stage) for number, stage in enumerate(zip(*found, strict=True), start=1)}

    # --- the server ---

    def _distils(self, broadcast: Model) -> bool:
        return self.proxy is not None and broadcast.round < self.akt_rounds

    def check(self, upload: Any, broadcast: Model) -> None:
        if not self._distils(broadcast):
            super().check(upload, broadcast)
        elif isinstance(upload, PerClient):
            upload.require_shapes(named_shapes(broadcast))
        else:
            raise GramfoldError(f"expected each client's model, got {upload.kind}")

    def fold(self, total: Any, broadcast: Model) -> Model:
        if isinstance(total, NamedSums):
            return super().fold(total, broadcast)
        import torch

        from gramfold.methods.gradient.akt import distilled

        clients = [{name.removeprefix(MODEL): part for name, part in parcel.items()} for parcel in total.in_order()]
        average = {name: torch.stack([client[name] for client in clients]).mean(0) for name in broadcast.model}
        device = str(next(iter(average.values())).device)
        net = networks.build(dict(broadcast.network), device)
        images, codes = (torch.as_tensor(part, device=device) for part in _proxy(str(self.proxy), broadcast.labels))
        # the file may be sorted by class: distil on every other image, validate on the rest
        shared, better = distilled(
            net, average, clients, images[::2], (images[1::2], codes[1::2]),
            epochs=self.akt_epochs, seed=broadcast.seed + broadcast.round,
        )  # fmt: skip
        return broadcast.next(shared, chosen={"akt_kept": broadcast.chosen.get("akt_kept", 0) + better})


@functools.lru_cache(maxsize=2)
def _proxy(path: str, labels: tuple[int | str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The server's images and their class codes."""
    data: Dataset = load_npz(path)
    if data.inputs.ndim != 4 or data.inputs.dtype != np.uint8:
        raise GramfoldError(f"{path} does not contain byte images; AKT needs `images` (n x H x W x 3, uint8)")
    known = {label: code for code, label in enumerate(labels)}
    names = [(data.labels or ())[code] for code in data.codes]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise GramfoldError(f"{path} has label {unknown[0]!r}, which is not among the federation's classes")
    return data.inputs, np.array([known[name] for name in names])
