"""Base of the gradient methods: rounds in which sampled clients train the model they receive, and a server that averages.

A method defines what a cohort of clients does with the shared model (`update`) and which weights its clients end up with
(`final`); both are written once, on stacked tensors, for one client and for many side by side.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramfold import networks
from gramfold.errors import MethodError, NotFiniteError
from gramfold.federation import Federation, Task
from gramfold.heads import Head
from gramfold.methods.asked import Asked, AskedSums
from gramfold.methods.gradient.optimizer import Optimizer
from gramfold.methods.protocol import Batched, ClientData, Method, Tunable
from gramfold.numerics import seeds
from gramfold.numerics.arrays import Array, is_sparse
from gramfold.uploads import NamedSums
from gramfold.wire import Packet
from gramfold.wire.record import Record

if TYPE_CHECKING:
    from torch import Tensor

    from gramfold.methods.gradient.cohort import Batch, Cohort, Extras

State = dict[str, Any]
MODEL = "model/"
"""The prefix of a model's tensors in uploads."""
LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Model(Record, kind="gradient/model"):
    """A round's broadcast: the shared model's tensors by name, the features' `shift` and `scale` once they are known, and what a
    method sends in addition."""

    network: Mapping[str, Any]
    labels: tuple[int | str, ...]
    seed: int
    round: int
    model: Mapping[str, Array]
    standardization: Mapping[str, Array]
    extra: Mapping[str, Array]
    chosen: Mapping[str, Any]

    @property
    def noted(self) -> Mapping[str, Any]:
        """For the history."""
        return self.chosen

    def next(self, model: Mapping[str, Array], **changes: Any) -> "Model":
        """The next round's: weights in float32."""
        shared = {name: part.float() for name, part in tensors(model).items()}
        return replace(self, model=shared, round=self.round + 1, **changes)


@dataclass(frozen=True)
class Weighted(AskedSums):
    """Sums of so many samples."""

    def check(self, upload: Any) -> None:
        super().check(upload)
        if "n" in upload and not float(upload["n"][0]) >= 0:
            raise MethodError(f"an upload of {float(upload['n'][0]):g} samples")


@dataclass(frozen=True)
class Gradient(Batched, Tunable):
    """`model`: linear, mlp:WIDTH, cnn:WIDTH, resnet:WIDTHxBLOCKS or resnet18; None: by the kind of data. For residual networks:
    `pretrained`, a state-dict file of weights to start from (safetensors or torch); `freeze`, whether convolutions keep them;
    `adapters`, whether each has one to train (HEART-PFL's). `lr`: None sweeps a grid, `sweep_rounds` rounds each,
    on a validation part of every client's training data. `participation`: the fraction of clients sampled in a round.
    `schedule`: constant, cosine, or decay:FACTOR per round. `batched`: whether clients train side by side in one computation;
    None: where that is faster, on linear and mlp. `standardize`: features get mean 0 and variance 1 over all clients, for which
    the first round gathers their sums; without it SGD on correlated features takes ten times the rounds.
    """

    input_kinds: ClassVar[frozenset[str]] = frozenset({"features", "images"})
    probabilistic: ClassVar[bool] = True
    threaded: ClassVar[bool] = False  # torch has threads of its own
    has_round_models: ClassVar[bool] = True
    normalizes: ClassVar[bool] = True
    """Whether it can train a network with running statistics, which a residual one has."""
    on_features: ClassVar[str] = "linear"
    on_images: ClassVar[str] = "cnn:32"
    grids: ClassVar[Mapping[str, tuple[float, ...]]] = {"lr": LEARNING_RATES}
    """The parameters that may be None, and the values tried then: one parameter after another, the others at their middle."""

    model: str | None = None
    pretrained: str | None = None
    freeze: bool = False
    adapters: bool = False
    rounds: int = 200
    epochs: int = 3
    batch_size: int = 32
    lr: float | None = None
    participation: float = 1.0
    optimizer: str = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: str = "constant"
    batched: bool | None = None
    standardize: bool = True
    sweep_rounds: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.participation <= 1:
            raise MethodError(f"participation must be a fraction in (0, 1], not {self.participation}")
        if min(self.epochs, self.batch_size) < 1 or self.rounds < 0:
            raise MethodError("epochs and batch_size must be at least 1, rounds at least 0")
        _ = self.steps, self.rate(0)

    @property
    def steps(self) -> Optimizer:
        """The optimizer."""
        return Optimizer(self.optimizer, self.momentum, self.weight_decay)

    def rate(self, round_number: int) -> float:
        """The learning rate of a round; after the last one, for models that clients train for themselves, that of the first."""
        round_number = round_number if round_number < self.rounds else 0
        lr = self.lr if self.lr is not None else LEARNING_RATES[len(LEARNING_RATES) // 2]
        kind, _, factor = self.schedule.partition(":")
        try:
            if self.schedule == "cosine":
                return lr * (1 + math.cos(math.pi * round_number / max(self.rounds, 1))) / 2
            return lr * {"constant": lambda: 1.0, "decay": lambda: float(factor) ** round_number}[kind]()
        except (KeyError, ValueError):
            raise MethodError(f"cannot read schedule {self.schedule!r}; write constant, cosine or decay:FACTOR") from None

    # --- for subclasses ---

    @abstractmethod
    def update(self, cohort: "Cohort", broadcast: Model) -> Sequence[Any]:
        """The uploads of a round, in the cohort's order."""

    def upload_shapes(self, broadcast: Model) -> dict[str, tuple[int, ...]]:
        """The names and shapes of an upload: by default the model's, and the number of samples."""
        return {**named_shapes(broadcast), "n": (1,)}

    def final(self, cohort: "Cohort", broadcast: Model) -> State:
        """The stacked weights of the clients' own models: by default the shared ones."""
        return cohort.spread(cohort.shared)

    def objective(self, cohort: "Cohort") -> Any:
        """The loss of local training: cross-entropy."""
        from gramfold.methods.gradient.cohort import cross_entropy, stacks

        @stacks
        def loss(state: State, extras: "Extras", batch: "Batch") -> tuple["Tensor", "Extras"]:
            logits, changed = cohort.outputs(state, extras, batch)
            return cross_entropy(logits, batch), changed

        return loss

    def train(self, cohort: "Cohort", start: State) -> State:
        """Local training on this method's objective."""
        return cohort.descend(self.objective(cohort), start, {}, epochs=self.epochs, optimizer=self.steps)

    # --- the protocol ---

    def describe(self, task: Task) -> dict[str, Any]:
        """The network for a task."""
        spec = self.model or (self.on_images if task.shape else self.on_features)
        shape = task.shape or (task.inputs,)
        if not spec.startswith("resnet"):
            if self.pretrained or self.freeze or self.adapters:
                raise MethodError(
                    f"pretrained, freeze and adapters are for residual networks, not {spec!r}; use resnet:WIDTHxBLOCKS"
                )
            return networks.describe(spec, shape, task.outputs, task.seed)
        if not self.normalizes:
            raise MethodError(f"{self.name} does not take {spec!r}, which normalises by batch; use cnn:WIDTH")
        more = {"adapters": self.adapters, "freeze": self.freeze, "pretrained": self.pretrained}
        return networks.describe(spec, shape, task.outputs, task.seed, **more)

    def begin(self, task: Task) -> Model:
        if task.labels is None:
            raise MethodError(f"{self.name} classifies; for regression use an analytic method")
        if self.standardize and self.rounds == 1 and not task.shape:
            raise MethodError(f"the first round of {self.name} gathers means of features; ask for more than one")
        network = self.describe(task)
        net = networks.build(network)
        return Model(network, task.labels, task.seed, 0, {**net.initial, **net.statistics}, {}, {}, {})

    def participants(self, round_number: int, names: Sequence[str], seed: int) -> Sequence[str]:
        if self.participation == 1:
            return names
        rng = seeds.generator(seed, f"participants/{round_number}")
        count = max(1, round(self.participation * len(names)))
        return [names[k] for k in np.sort(rng.choice(len(names), count, replace=False))]

    def prefers_batching(self, broadcast: Model) -> bool:
        return self.batched if self.batched is not None else broadcast.network["kind"] in ("linear", "mlp")

    def local(self, client: ClientData, broadcast: Model) -> Any:
        return self.local_many([client], broadcast)[0]

    def local_many(self, clients: Sequence[ClientData], broadcast: Model) -> Sequence[Any]:
        if self._standardizing(broadcast):
            return [feature_sums(client) for client in clients]
        cohort = self._cohort(clients, broadcast)
        return _as_given(cohort, self.update(cohort, broadcast))

    def _standardizing(self, broadcast: Model) -> bool:
        """Whether this round gathers the feature sums for standardisation."""
        return self.standardize and len(broadcast.network["shape"]) == 1 and not broadcast.standardization

    def asked(self, broadcast: Model) -> Asked:
        if not self._standardizing(broadcast):
            return Weighted(self.upload_shapes(broadcast))
        inputs = broadcast.network["shape"][0]
        return Weighted({"features": (inputs,), "squares": (inputs,), "n": (1,)})

    def aggregate(self, total: Any, broadcast: Model) -> Model:
        packed = total.pack()
        total = type(total).unpack(Packet(tensors(packed.arrays), packed.meta))  # over a network they arrive as NumPy arrays
        if self._standardizing(broadcast):
            found = {name: part.float() for name, part in tensors(standardization(total)).items()}
            return broadcast.next(broadcast.model, standardization=found)
        return self.fold(total, broadcast)

    def fold(self, total: Any, broadcast: Model) -> Model:
        """The next broadcast from the uploads' sum: the weighted mean of the models."""
        return broadcast.next({name: total[MODEL + name] / total["n"] for name in broadcast.model})

    def personalize(self, client: ClientData, broadcast: Model) -> Head:
        return self.personalize_many([client], broadcast)[0]

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Model) -> Sequence[Head]:
        cohort = self._cohort(clients, broadcast)
        states = self.final(cohort, broadcast)
        heads = [self.head({name: t[k].detach() for name, t in states.items()}, broadcast) for k in range(len(cohort))]
        return _as_given(cohort, heads)

    def global_head(self, broadcast: Model) -> Head | None:
        return self.head(broadcast.model, broadcast)

    def head(self, state: Mapping[str, Array], broadcast: Model) -> Head:
        from gramfold.heads.torch_head import TorchHead

        weights = {**state, **broadcast.standardization}
        return TorchHead(labels=broadcast.labels, method=self.name, network=broadcast.network, state=weights)

    def _cohort(self, clients: Sequence[ClientData], broadcast: Model) -> "Cohort":
        from gramfold.methods.gradient.cohort import Cohort

        require_dense(clients)
        inputs = clients[0].train.inputs
        device = str(inputs.device) if hasattr(inputs, "device") and not isinstance(inputs, np.ndarray) else "cpu"
        shared = tensors({**broadcast.model, **broadcast.standardization}, device)
        number = broadcast.round
        return Cohort(
            clients, networks.build(dict(broadcast.network), device), shared,
            batch_size=self.batch_size, lr=self.rate(number), seed=broadcast.seed, stream=f"round/{number}",
        )  # fmt: skip

    # --- choosing what is None ---

    @property
    def undecided(self) -> Sequence[str]:
        return [name for name in self.grids if getattr(self, name) is None]

    def tune(self, federation: Federation, score: Callable[[Method, Federation], float]) -> tuple[Method, Mapping[str, Any]]:
        """Choose every parameter that is None, on training data held out from the candidates."""
        missing = self.undecided
        if not missing:
            return self, {}
        held_out, chosen, best = federation.validation(), {}, 0.0
        middle = {name: self.grids[name][len(self.grids[name]) // 2] for name in missing}
        method = replace(self, rounds=min(self.rounds, self.sweep_rounds), **middle)  # type: ignore[arg-type]

        def validated(candidate: Method) -> float:
            try:
                return score(candidate, held_out)
            except NotFiniteError:  # it diverged
                return 0.0

        for name in missing:
            scores = {value: validated(replace(method, **{name: value})) for value in self.grids[name]}  # type: ignore[arg-type]
            chosen[name] = max(scores, key=lambda value: (scores[value], -value))
            best = scores[chosen[name]]
            method = replace(method, **{name: chosen[name]})  # type: ignore[arg-type]
        return replace(self, **chosen), {**chosen, "validation_accuracy": best}  # type: ignore[arg-type]


def named(state: Mapping[str, Array]) -> dict[str, Array]:
    """A model's tensors under their names in uploads."""
    return {MODEL + name: tensor for name, tensor in state.items()}


def named_shapes(broadcast: Model, prefix: str = MODEL) -> dict[str, tuple[int, ...]]:
    """The shapes of the shared model's tensors under their names in uploads."""
    return {prefix + name: tuple(part.shape) for name, part in broadcast.model.items()}


def head_of(state: Mapping[str, Array]) -> State:
    """The tensors of the head."""
    return {name: part for name, part in state.items() if name.startswith("head.")}


def base_of(state: Mapping[str, Array]) -> State:
    """The tensors before the head."""
    return {name: part for name, part in state.items() if name.startswith("base.")}


def tensors(parts: Mapping[str, Array], device: str | None = None) -> State:
    """Arrays as torch tensors, where they are or on a device."""
    import torch

    return {name: torch.as_tensor(part, device=device) for name, part in parts.items()}


def require_dense(clients: Sequence[ClientData]) -> None:
    """Raise if samples are sparse, which networks do not take."""
    for client in clients:
        if is_sparse(client.train.inputs):
            raise MethodError(f"client {client.name!r} has sparse samples, which gradient methods do not take; use .toarray()")


def feature_sums(client: ClientData) -> NamedSums:
    """Sums of a client's features and of their squares, after scaling each row to length sqrt(d)."""
    import torch

    from gramfold.networks.network import unit_rows

    require_dense([client])
    x = unit_rows(torch.as_tensor(client.train.inputs)).double()
    return NamedSums({"features": x.sum(0), "squares": x.square().sum(0), "n": x.new_tensor([len(x)])})


def standardization(total: NamedSums) -> dict[str, Array]:
    """The shift and scale to mean 0 and variance 1; a constant feature is only centred."""
    mean = total["features"] / total["n"]
    variance = total["squares"] / total["n"] - mean**2
    spread = variance.clamp(min=0).sqrt()
    return {"shift": mean, "scale": spread + (spread < 1e-6)}


def weighted(cohort: "Cohort", trained: State, weights: Sequence[float] | None = None) -> list[NamedSums]:
    """Every client's upload: its weights times its number of samples (or `weights`), and that number."""
    given = weights if weights is not None else cohort.sizes
    some = next(iter(trained.values()))
    return [
        NamedSums({**named({name: t[k] * given[k] for name, t in trained.items()}), "n": some.new_tensor([given[k]])})
        for k in range(len(cohort))
    ]


def _as_given(cohort: "Cohort", values: Sequence[Any]) -> Sequence[Any]:
    """Values in the cohort's order, put in the order in which the clients were given."""
    return [value for _, value in sorted(zip(cohort.order, values, strict=True), key=lambda pair: pair[0])]
