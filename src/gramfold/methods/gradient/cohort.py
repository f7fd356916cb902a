"""Clients that train side by side. Their tensors are stacked along a first dimension, so that one computation serves them all;
a cohort of one is the plain loop over batches, the reference for the batched one in tests."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gramfold.errors import GramfoldError
from gramfold.methods.gradient.optimizer import Optimizer
from gramfold.methods.protocol import ClientData
from gramfold.networks.network import Network, State
from gramfold.numerics import seeds

Extras = dict[str, Any]
"""What an objective needs in addition to the trained weights: stacked tensors, or dicts of them."""


class Batch(NamedTuple):
    """Prepared samples, class codes, each sample's weight in the mean (padding weighs nothing), and random numbers for networks
    that take some; one row per client."""

    x: Tensor
    y: Tensor
    weight: Tensor
    noise: Tensor


Objective = Callable[[State, Extras, Batch], tuple[Tensor, Extras]]
"""One client's loss on a batch, and new values for some of the extras."""


class Cohort:
    """The participants of a round, largest first: those that still have batches left are always the first few.

    `shared` is the model they were sent, `lr` the learning rate of the round, `stream` the name of its random numbers. If they
    were sent the features' `shift` and `scale`, their samples are standardised by them.
    """

    def __init__(
        self, clients: Sequence[ClientData], net: Network, shared: State, *, batch_size: int, lr: float, seed: int, stream: str
    ) -> None:
        for client in clients:
            if not client.train.n:
                raise GramfoldError(f"client {client.name!r} has no training samples; leave it out")
        self.order = sorted(range(len(clients)), key=lambda k: (-clients[k].train.n, k))
        self.clients = [clients[k] for k in self.order]
        self.net, self.lr = net, lr
        self.shared = {name: tensor for name, tensor in shared.items() if name not in ("shift", "scale")}
        self._batch_size, self._seed, self._stream = batch_size, seed, stream
        self._x = torch.cat([net.prepare(client.train.inputs, shared) for client in self.clients])
        self._y = torch.cat([torch.as_tensor(client.train.targets) for client in self.clients])
        self.device = self._x.device
        self.sizes = [client.train.n for client in self.clients]
        self._starts = np.cumsum([0, *self.sizes[:-1]])

    def __len__(self) -> int:
        return len(self.clients)

    def generator(self, client: ClientData, what: str) -> np.random.Generator:
        """A client's own random numbers for one purpose in this round."""
        return seeds.generator(self._seed, f"{self._stream}/{what}/{client.name}")

    # --- stacked weights ---

    def spread(self, state: State) -> State:
        """The same weights for every client, each with a copy of its own."""
        return {name: tensor.expand(len(self), *tensor.shape).clone() for name, tensor in state.items()}

    def recall(self, name: str, default: State) -> State:
        """What every client remembered under a name; the stacked default for those that remember nothing."""
        found = {key: list(tensor) for key, tensor in default.items()}
        for k, client in enumerate(self.clients):
            for key in default:
                if (kept := client.memory.get(f"{name}/{key}")) is not None:
                    found[key][k] = torch.as_tensor(kept, device=self.device)
        return {key: torch.stack(tensors) for key, tensors in found.items()}

    def knows(self, name: str) -> Tensor:
        """Which clients remember anything under a name."""
        return torch.tensor([any(key.startswith(f"{name}/") for key in client.memory) for client in self.clients])

    def remember(self, name: str, state: State, only: Tensor | None = None) -> None:
        """Keep stacked tensors at their clients, or at those that `only` marks."""
        for k, client in enumerate(self.clients):
            if only is None or only[k]:
                client.memory |= {f"{name}/{key}": tensor[k].clone() for key, tensor in state.items()}

    # --- batches ---

    def batches(self, epochs: int, purpose: str, part: float = 1.0) -> Iterator[Batch]:
        """Every client's samples in batches, `epochs` times, each time in a new order; of `part` of them, drawn at random.

        Batch t holds the clients that have more than t batches, which are the first of the cohort.
        """
        plans = [self._plan(k, epochs, purpose, part) for k in range(len(self))]
        plan = np.full((len(self), max(map(len, plans), default=0), self._batch_size), -1)
        for k, own in enumerate(plans):
            plan[k, : len(own)] = np.where(own < 0, -1, own + self._starts[k])
        rows_of = torch.from_numpy(plan).to(self.device)
        active = (plan[:, :, 0] >= 0).sum(0)
        streams = [self._noise(client, purpose) for client in self.clients] if self.net.noise else []
        for t, m in enumerate(active):
            rows = rows_of[:m, t]
            drawn = [torch.rand(*rows.shape[1:], self.net.noise, generator=own, device=self.device) for own in streams[:m]]
            noise = torch.stack(drawn) if drawn else self._x.new_empty(*rows.shape, 0)
            if len(self) == 1:
                rows = rows[rows >= 0][None]
                noise = noise[:, : rows.shape[1]]
            valid = rows >= 0
            taken = rows.clamp(min=0)
            yield Batch(self._x[taken], self._y[taken], valid / valid.sum(1, keepdim=True), noise)

    def _noise(self, client: ClientData, purpose: str) -> torch.Generator:
        drawn = int(self.generator(client, f"{purpose}/noise").integers(2**62))
        return torch.Generator(self.device).manual_seed(drawn)

    def _plan(self, k: int, epochs: int, purpose: str, part: float) -> np.ndarray:
        """Row numbers of client k: batches x batch size, -1 where there is none."""
        rng, n = self.generator(self.clients[k], purpose), self.sizes[k]
        pool = np.arange(n) if part == 1 else rng.permutation(n)[: max(1, round(part * n))]
        per_epoch = -(-len(pool) // self._batch_size)
        plan = np.full((epochs, per_epoch * self._batch_size), -1)
        for epoch in range(epochs):
            plan[epoch, : len(pool)] = rng.permutation(pool)
        return plan.reshape(epochs * per_epoch, self._batch_size)

    def samples(self, k: int) -> tuple[Tensor, Tensor]:
        """All prepared samples of client k and their class codes."""
        rows = slice(self._starts[k], self._starts[k] + self.sizes[k])
        return self._x[rows], self._y[rows]

    # --- features ---

    @torch.no_grad()
    def prototypes(self, state: State) -> tuple[Tensor, Tensor]:
        """The mean feature of every class at every client (zero where it has none), and the class counts."""
        counts = torch.zeros(len(self), self.net.description["classes"], device=self.device)
        sums = torch.zeros(*counts.shape, self.net.width, device=self.device)
        for k in range(len(self)):
            x, y = self.samples(k)
            sums[k].index_add_(0, y, self.net({name: tensor[k] for name, tensor in state.items()}, x, "base"))
            counts[k] = torch.bincount(y, minlength=counts.shape[1])
        return sums / counts.clamp(min=1)[..., None], counts

    @torch.no_grad()
    def feature_means(self, state: State) -> Tensor:
        """The mean feature of every client under one model."""
        return torch.stack([self.net(state, self.samples(k)[0], "base").mean(0) for k in range(len(self))])

    # --- training ---

    def gradient(self, objective: Objective, state: State, extras: Extras, batch: Batch) -> tuple[State, Tensor, Extras]:
        """Every client's gradient and loss, and the extras that change."""
        if len(batch.x) > 1 or len(self) > 1:

            def values(state: State, extras: Extras, batch: Batch) -> tuple[Tensor, tuple[Tensor, Extras]]:
                loss, changed = objective(state, extras, batch)
                return loss, (loss, changed)

            grads, (loss, changed) = torch.func.vmap(torch.func.grad(values, has_aux=True))(state, extras, batch)
            return grads, loss.detach(), changed
        one = {name: tensor[0].detach().requires_grad_() for name, tensor in state.items()}
        loss, changed = objective(one, _each(lambda tensor: tensor[0], extras), Batch(*(part[0] for part in batch)))
        found = torch.autograd.grad(loss, list(one.values()), allow_unused=True)
        grads = {
            name: torch.zeros_like(t)[None] if g is None else g[None] for (name, t), g in zip(one.items(), found, strict=True)
        }
        return grads, loss.detach()[None], _each(lambda value: value.detach()[None], changed)

    def descend(
        self,
        objective: Objective,
        state: State,
        extras: Extras,
        *,
        epochs: int,
        optimizer: Optimizer,
        lr: float | None = None,
        purpose: str = "train",
        part: float = 1.0,
        project: Callable[[Tensor], Any] | None = None,
    ) -> State:
        """The weights after so many epochs of gradient steps, every client on its own samples. `state` is written to.

        `project`, if given, is applied in place to what a step has changed.
        """
        slots = optimizer.slots(state)
        for batch in self.batches(epochs, purpose, part):
            m = len(batch.x)
            front = cut(state, m)
            grads, _, changed = self.gradient(objective, front, cut(extras, m), batch)
            optimizer.step(front, grads, cut(slots, m), self.lr if lr is None else lr)
            _write(extras, changed, m)
            if project is not None:
                for tensor in front.values():
                    project(tensor)
        return state


def cut(tree: Any, m: int) -> Any:
    """The first m clients of stacked tensors: views, so that writing to them writes to the whole."""
    return _each(lambda tensor: tensor[:m], tree)


def _each(function: Callable[[Any], Any], tree: Any) -> Any:
    return {name: _each(function, value) for name, value in tree.items()} if isinstance(tree, dict) else function(tree)


def _write(tree: Any, changed: Any, m: int) -> None:
    """New values for the first m clients."""
    for name, value in changed.items():
        if isinstance(value, dict):
            _write(tree[name], value, m)
        else:
            tree[name][:m] = value


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """The weighted mean over a batch."""
    picked = logits.log_softmax(-1).gather(-1, batch.y[..., None])[..., 0]
    return -(picked * batch.weight).sum()


def squared_distance(state: State, anchor: State) -> Tensor:
    """||state - anchor||^2 over all tensors."""
    return torch.stack([(tensor - anchor[name]).square().sum() for name, tensor in state.items()]).sum()
