"""A network as a function of named tensors: a base that gives features, and a linear head on them."""

import json
import math
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from gramfold.errors import FeaturesError
from gramfold.networks.layers import Norm, Pixels, UnitLength, convolutions
from gramfold.networks.resnet import Adapter, ResNet
from gramfold.networks.side_by_side import SideBySide
from gramfold.numerics import seeds

State = dict[str, Tensor]
_built = threading.local()


class _Parts(nn.Module):
    """Base and head; `part` says where to enter and leave."""

    def __init__(self, base: nn.Module, width: int, classes: int, features: int) -> None:
        super().__init__()
        self.base = base
        self.head = nn.Linear(width, classes)
        if features:
            self.register_buffer("shift", torch.zeros(features))
            self.register_buffer("scale", torch.ones(features))

    def forward(self, x: Tensor, part: str) -> Any:
        if part == "head":
            return self.head(x)
        if part == "stages":
            return self.base.stages(x)  # type: ignore[operator]
        features = self.base(x)
        return features if part == "base" else self.head(features)


class Network:
    """Builds the modules of a description and calls them with whatever weights are given.

    What is trained are the names in `initial`; names that start with "head." belong to the head. `statistics` are the running
    ones of normalisation layers. Everything else is frozen: drawn from the seed or loaded from the `pretrained` file.
    """

    def __init__(self, description: Mapping[str, Any], device: str) -> None:
        self.description, self._device = dict(description), device
        base, width = _base(self.description)
        shape = self.description["shape"]
        self._module = _Parts(base, width, self.description["classes"], shape[0] if len(shape) == 1 else 0)
        self.width = width
        _draw(self._module, self.description["seed"])
        if self.description.get("pretrained"):
            _load(self._module, Path(self.description["pretrained"]))
        self._module.requires_grad_(False).to(device)
        trained: State = dict(self._module.named_parameters())
        if self.description.get("freeze"):
            trained = {name: tensor for name, tensor in trained.items() if not _is_frozen(name)}
        self.initial: State = trained
        self.buffers: State = {name: t for name, t in self._module.named_buffers() if not name.endswith("num_batches_tracked")}
        self.statistics: State = {name: tensor for name, tensor in self.buffers.items() if name not in ("shift", "scale")}
        self._norms = {name: module for name, module in self._module.named_modules() if isinstance(module, Norm)}
        self._adapters = [module for module in self._module.modules() if isinstance(module, Adapter)]
        if self._adapters:
            self(self.initial, torch.zeros(1, *shape, device=device))
        self.noise = sum(adapter.entries for adapter in self._adapters)
        """How many random numbers dropout takes for a sample."""

    @property
    def num_parameters(self) -> int:
        """How many numbers are trained."""
        return sum(tensor.numel() for tensor in self.initial.values())

    def prepare(self, inputs: Any, state: Mapping[str, Tensor]) -> Tensor:
        """Samples as the network takes them: images as they are; features as rows of length sqrt(d), the analytic methods'
        normalisation, then shifted and scaled by the `shift` and `scale` in the state."""
        x = torch.as_tensor(inputs)
        if len(self.description["shape"]) == 3:
            return x
        x = unit_rows(x)
        return (x - state["shift"]) / state["scale"] if "shift" in state else x

    def __call__(self, state: Mapping[str, Tensor], x: Tensor, part: str = "logits", train: bool = False) -> Any:
        """Logits of prepared samples; or, by `part`, their features ("base"), the logits of features ("head"), or the pooled
        outputs of a residual network's stages ("stages", the last one being its features)."""
        self._module.train(train)
        return functional_call(self._module, dict(state), (x, part))

    def normalizing(
        self, state: Mapping[str, Tensor], x: Tensor, part: str, share: Tensor, noise: Tensor | None = None
    ) -> tuple[Any, State]:
        """The same in training, for networks that normalise by batch and drop out: each sample's `share` in the statistics and
        its `noise` are given; the running statistics afterwards come out beside the outputs. Where `stackable`, tensors may have
        a first dimension of clients."""
        if share.ndim == 2:
            return self._side_by_side(state, x, part, share, noise)
        for norm in self._norms.values():
            norm.share = share
        start = 0
        for adapter in self._adapters:
            adapter.noise = None if noise is None else noise[:, start : start + adapter.entries]
            start += adapter.entries
        out = self(state, x, part, train=True)
        return out, {f"{name}.{key}": value for name, norm in self._norms.items() for key, value in norm.fresh.items()}

    @property
    def stackable(self) -> bool:
        """Whether many clients' weights, stacked, can be trained in one pass: a residual network with frozen convolutions."""
        return self.description["kind"] == "resnet" and bool(self.description["freeze"]) and "projector" not in self.description

    def _side_by_side(
        self, state: Mapping[str, Tensor], x: Tensor, part: str, share: Tensor, noise: Tensor | None
    ) -> tuple[Any, State]:
        frozen = {name: tensor for name, tensor in self._module.named_parameters() if name not in state}
        together = SideBySide({**frozen, **state}, share, noise)
        stages = together.stages(x, self.description["blocks"], self.description["stem"] == "imagenet")
        out = stages if part == "stages" else stages[-1] if part == "base" else classified(state, stages[-1])
        return out, together.statistics()

    def full_state(self, state: Mapping[str, Tensor]) -> State:
        """All weights, the frozen ones included: everything that a self-contained file needs."""
        return {**dict(self._module.named_parameters()), **self.buffers, **state}


def classified(state: Mapping[str, Tensor], features: Tensor) -> Tensor:
    """The head's logits of features, for one client or for many stacked."""
    return features @ state["head.weight"].mT + state["head.bias"][..., None, :]


def unit_rows(x: Tensor) -> Tensor:
    """float32 rows of length sqrt(d); an all-zero one stays zero."""
    x = x.to(torch.float32)
    lengths = x.square().sum(1, keepdim=True).sqrt()
    return x * (math.sqrt(x.shape[1]) / (lengths + (lengths == 0)))


def built(description: Mapping[str, Any], device: str) -> Network:
    """The network of a description, one per thread and device."""
    known: dict[str, Network] = _built.__dict__.setdefault("networks", {})
    key = json.dumps([description, device], sort_keys=True)
    if key not in known:
        known[key] = Network(description, device)
    return known[key]


def weight_shapes(description: Mapping[str, Any], most: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all weights, of a network that is not made."""
    if description.get("blocks", 0) > most:
        raise FeaturesError(f"a network of {description['blocks']} blocks has more than {most} weights")
    shape = description["shape"]
    with torch.device("meta"):
        base, width = _base(description)
        parts = _Parts(base, width, description["classes"], shape[0] if len(shape) == 1 else 0)
    return {name: tuple(tensor.shape) for name, tensor in parts.state_dict().items() if not name.endswith("num_batches_tracked")}


def _base(description: Mapping[str, Any]) -> tuple[nn.Module, int]:
    kind, shape = description["kind"], description["shape"]
    base: nn.Module
    if kind == "linear":
        base, width = nn.Identity(), shape[0]
    elif kind == "mlp":
        width = description["width"]
        base = nn.Sequential(nn.Linear(shape[0], width), nn.ReLU())
    elif kind == "cnn":
        width = 4 * description["width"]
        base = nn.Sequential(Pixels(), *convolutions(description["width"], shape[2]))
    else:
        base = ResNet(shape[2], description["width"], description["blocks"], description["stem"], description["adapters"])
        width = base.width
    if projector := description.get("projector", 0):
        base, width = nn.Sequential(base, nn.Linear(width, projector, bias=False), UnitLength()), projector
    return base, width


def _draw(module: nn.Module, seed: int) -> None:
    """Weights from the seed alone, equal on every machine: N(0, 2 / fan-in), adapters near zero, a head that starts at zero."""
    for name, tensor in module.named_parameters():
        if name.startswith("head."):
            nn.init.zeros_(tensor)
        elif tensor.ndim > 1:
            spread = 1e-4 if "adapter" in name else math.sqrt(2 / math.prod(tensor.shape[1:]))
            drawn = seeds.frozen(seed, f"network/{name}").standard_normal(tuple(tensor.shape)) * spread
            tensor.data.copy_(torch.from_numpy(drawn.astype(np.float32)))
        elif name.endswith("bias"):
            nn.init.zeros_(tensor)


def _is_frozen(name: str) -> bool:
    """Whether HEART-PFL freezes it: convolutions and the normalisation of shortcuts; adapters, bn1, bn2 and head train."""
    parts = name.split(".")
    return not (parts[0] == "head" or "adapter" in name or parts[-2] in ("bn1", "bn2"))


def _load(module: _Parts, path: Path) -> None:
    """Pretrained weights of the base from a state dict (torch.save or safetensors), by the names that ResNets go by."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            given = load_file(path)
        else:
            given = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise FeaturesError(f"cannot read pretrained weights from {path}: {' '.join(str(error).split())[:120]}") from None
    own = dict(module.base.state_dict())
    fitting = {name: tensor for name, tensor in given.items() if name in own and own[name].shape == tensor.shape}
    missing = [name for name in own if "adapter" not in name and not name.endswith("num_batches_tracked") and name not in fitting]
    if missing:
        raise FeaturesError(f"{path} has no weights of the right shape for {missing[0]} ({len(missing)} such); use another model")
    module.base.load_state_dict(fitting, strict=False)
