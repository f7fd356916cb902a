"""HEART-PFL (Kim & Kim, WACV 2026, arXiv 2603.24209).

client   v_k: SGD on CE(v_k) + prox ||v_k - w||^2 + hda L_HDA, kept;  w_k: SGD on CE, sent. Convolutions are frozen; adapters,
         normalisation and the head are trained. Prototypes of HDA are v_k's class means at the start of the round
server   w = mean of w_k; in the first rounds AKT distils the clients' models into it, on proxy images (hda.py, akt.py)
client   uses v_k
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramfold import networks
from gramfold.errors import MethodError
from gramfold.federation import Dataset, Task, load_npz
from gramfold.methods.asked import Asked
from gramfold.methods.gradient.base import MODEL, Gradient, Model, State, named, named_shapes, weighted
from gramfold.methods.gradient.sides import Side, descended, personal_models
from gramfold.uploads import NamedSums, PerClient

if TYPE_CHECKING:
    from torch import Tensor

    from gramfold.methods.gradient.akt import Distillation
    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras
    from gramfold.networks.network import Network

BATCH_IMAGES = 256
"""Batch size for computing prototypes."""


HDA_SIZE = "hda_gradient"
"""The name, in uploads and in the history, of the length of HDA's gradient as a part of cross-entropy's."""


@dataclass(frozen=True)
class EachModel(Asked):
    """Each client's own, as arrays of these shapes."""

    shapes: Mapping[str, tuple[int, ...]]

    def check(self, upload: Any) -> None:
        if not isinstance(upload, PerClient):
            raise MethodError(f"expected each client's model, got {upload.kind}")
        upload.require_shapes(self.shapes)


@dataclass(frozen=True)
class HeartPFL(Gradient):
    """`model`: resnet18 or resnet:WIDTHxBLOCKS, from the state-dict file `pretrained` (or drawn from the seed), its convolutions
    frozen unless `freeze` is False. `adapters`, HDA and AKT can each be switched off.

    `hda`: its weight. `hda_side`: whose features are drawn to the personal prototypes, those of the "personal" model or of the
    "shared" one in training. `hda_split`: how many stages are aligned by direction, the others by value.

    AKT needs `proxy`, an .npz file of images at the server, of whatever classes, and runs for the first `akt_rounds`. What it
    keeps is what validates best on `validation`, another such file, of the federation's classes; if that is not given, on every
    other proxy image: by labels if they are the federation's, by nearness to the clients' models if not. `akt_steps` of
    `akt_batch` images; `akt_temperature`, `akt_direction` of the divergence (symmetric, forward, reverse), `akt_adversary`
    (student, own, none).
    """

    name: ClassVar[str] = "heart-pfl"
    summary: ClassVar[str] = "adapters in a frozen residual network, stages aligned to prototypes, adversarial distillation"
    paper: ClassVar[str] = "Kim & Kim, WACV 2026, arXiv 2603.24209"
    input_kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    on_images: ClassVar[str] = "resnet18"

    epochs: int = 10
    batch_size: int = 16
    participation: float = 0.4
    freeze: bool = True
    adapters: bool = True
    prox: float = 1.0
    hda: float = 0.1
    hda_side: str = "personal"
    hda_split: int = 2
    proxy: str | None = None
    validation: str | None = None
    akt_rounds: int = 30
    akt_steps: int = 500
    akt_batch: int = 256
    akt_temperature: float = 1.0
    akt_direction: str = "symmetric"
    akt_adversary: str = "student"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hda_side not in ("personal", "shared"):
            raise MethodError(f"hda_side is personal or shared, not {self.hda_side!r}")

    def describe(self, task: Task) -> dict[str, Any]:
        spec = self.model or self.on_images
        if not spec.startswith("resnet") or not task.shape:
            raise MethodError("heart-pfl trains a residual network on images; use resnet18 or resnet:WIDTHxBLOCKS")
        return super().describe(task)

    # --- the client ---

    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        start = cohort.recall("personal", cohort.spread(cohort.shared))
        prototypes = self.prototypes(cohort, start) if self.hda else {}
        sizes = self._hda_size(cohort, start, prototypes)
        sides = [
            self._side(cohort, "personal", start, prototypes),
            self._side(cohort, "shared", cohort.spread(cohort.shared), prototypes),
        ]
        personal, trained = self._trained(cohort, *sides)
        cohort.remember("personal", personal)
        if not self._distils(broadcast):
            uploads: Sequence[Any] = weighted(cohort, trained, [1.0] * len(cohort))
        else:
            uploads = [
                PerClient({client.name: named({name: tensor[k] for name, tensor in trained.items()})})
                for k, client in enumerate(cohort.clients)
            ]
        for upload, client, size in zip(uploads, cohort.clients, sizes, strict=True):
            (upload if isinstance(upload, NamedSums) else upload.parcels[client.name])[HDA_SIZE] = size[None]
        return uploads

    def upload_shapes(self, broadcast: Model) -> dict[str, tuple[int, ...]]:
        return {**super().upload_shapes(broadcast), HDA_SIZE: (1,)}

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        def trained(rest: "Cohort") -> list[State]:
            start = rest.spread(cohort.shared)
            return self._trained(rest, self._side(rest, "personal", start, self.prototypes(rest, start) if self.hda else {}))

        return personal_models(cohort, trained)

    def _side(self, cohort: "Cohort", which: str, start: State, prototypes: "dict[str, Tensor]") -> Side:
        import torch

        aligned = torch.full((len(cohort),), self.hda if which == self.hda_side else 0.0, device=cohort.device)
        pull = 2 * self.prox if which == "personal" else 0.0
        return Side(which, start, pull, {"prototypes": prototypes, "hda": aligned})

    def _trained(self, cohort: "Cohort", *sides: Side) -> list[State]:
        return descended(cohort, self.objective(cohort), sides, cohort.shared, epochs=self.epochs, optimizer=self.steps)

    def objective(self, cohort: "Cohort", parts: tuple[float, float] = (1.0, 1.0)) -> Any:
        """Cross-entropy, plus HDA where there are prototypes; `parts` weighs the two."""
        from gramfold.methods.gradient.cohort import cross_entropy, stacks
        from gramfold.methods.gradient.hda import alignment
        from gramfold.networks.network import classified

        @stacks
        def loss(state: State, extras: "Extras", batch: "Batch") -> tuple[Any, "Extras"]:
            stages, changed = cohort.outputs(state, extras, batch, "stages")
            value = parts[0] * cross_entropy(classified(state, stages[-1]), batch)
            if extras["prototypes"]:
                aligned = alignment(stages, list(extras["prototypes"].values()), batch.y, self.hda_split)
                value = value + parts[1] * extras["hda"] * (aligned * batch.weight).sum(-1)
            return value, changed

        return loss

    def _hda_size(self, cohort: "Cohort", start: State, prototypes: "dict[str, Tensor]") -> "Tensor":
        """How long HDA's gradient is beside cross-entropy's, for every client, on its first batch of the round."""
        import torch

        if not prototypes:
            return torch.zeros(len(cohort), device=cohort.device)
        net, batch = cohort.net, next(cohort.batches(1, "personal"))
        trained = {name: start[name] for name in net.initial}
        extras = {
            "statistics": {name: start[name] for name in net.statistics},
            "prototypes": prototypes,
            "hda": torch.full((len(cohort),), self.hda, device=cohort.device),
        }
        lengths = []
        for parts in ((0.0, 1.0), (1.0, 0.0)):
            grads, _, _ = cohort.gradient(self.objective(cohort, parts), trained, extras, batch)
            lengths.append(torch.stack([grad.flatten(1).square().sum(1) for grad in grads.values()]).sum(0).sqrt())
        return lengths[0] / lengths[1].clamp(min=1e-12)

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

    @property
    def distillation(self) -> "Distillation":
        from gramfold.methods.gradient.akt import Distillation

        return Distillation(self.akt_steps, self.akt_batch, self.akt_temperature, self.akt_direction, self.akt_adversary)

    def asked(self, broadcast: Model) -> Asked:
        return EachModel({**named_shapes(broadcast), HDA_SIZE: (1,)}) if self._distils(broadcast) else super().asked(broadcast)

    def fold(self, total: Any, broadcast: Model) -> Model:
        import torch

        if isinstance(total, NamedSums):
            found = {HDA_SIZE: float(total[HDA_SIZE][0] / total["n"][0])} if self.hda else {}
            return replace(super().fold(total, broadcast), chosen={**broadcast.chosen, **found})
        from gramfold.methods.gradient.akt import distilled

        parcels = total.in_order()
        clients = [{name.removeprefix(MODEL): part for name, part in parcel.items() if name != HDA_SIZE} for parcel in parcels]
        average = {name: torch.stack([client[name] for client in clients]).mean(0) for name in broadcast.model}
        device = str(next(iter(average.values())).device)
        net, how = networks.build(dict(broadcast.network), device), self.distillation
        images, score = self._server_images(net, clients, broadcast.labels, device)
        shared, better = distilled(net, average, clients, images, score, how, seed=broadcast.seed + broadcast.round)
        chosen = {**broadcast.chosen, "akt_kept": broadcast.chosen.get("akt_kept", 0) + better}
        if self.hda:
            chosen[HDA_SIZE] = float(torch.cat([parcel[HDA_SIZE] for parcel in parcels]).mean())
        return broadcast.next(shared, chosen=chosen)

    def _server_images(
        self, net: "Network", clients: Sequence[State], labels: tuple[int | str, ...], device: str
    ) -> "tuple[Tensor, Callable[[State], float]]":
        """What AKT learns from, and how it validates."""
        from gramfold.methods.gradient.akt import answers

        images, codes = _images(str(self.proxy), labels, device)
        if self.validation is not None:
            held, known = _images(self.validation, labels, device)
            if known is None:
                raise MethodError(f"{self.validation} holds other classes than the federation's; AKT validates on those")
        else:  # the file may be sorted by class: distil on every other image, validate on the rest
            held, known, images = images[1::2], None if codes is None else codes[1::2], images[::2]
        if known is None:
            wanted, how = answers(net, clients, held), self.distillation
            return images, lambda state: -float(how.divergence(answers(net, [state], held), wanted))
        return images, lambda state: float((answers(net, [state], held).argmax(1) == known).float().mean())


def _images(path: str, labels: tuple[int | str, ...], device: str) -> "tuple[Tensor, Tensor | None]":
    """The server's images, and their class codes if all of them are of the federation's classes."""
    import torch

    images, codes = _read(path, labels)
    return torch.as_tensor(images, device=device), None if codes is None else torch.as_tensor(codes, device=device)


@functools.lru_cache(maxsize=4)
def _read(path: str, labels: tuple[int | str, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    data: Dataset = load_npz(path)
    if data.inputs.ndim != 4 or data.inputs.dtype != np.uint8:
        raise MethodError(f"{path} does not contain byte images; AKT needs `images` (n x H x W x 3, uint8)")
    known = {label: code for code, label in enumerate(labels)}
    names = [(data.labels or ())[code] for code in data.codes]
    return data.inputs, np.array([known[name] for name in names]) if all(name in known for name in names) else None
