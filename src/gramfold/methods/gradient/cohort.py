"""Clients that train side by side. Their tensors are stacked along a first dimension, so that one computation serves them all;
a cohort of one is the plain loop over batches, the reference for the batched one in tests."""

import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gramfold.errors import MethodError
from gramfold.methods.gradient.optimizer import Optimizer
from gramfold.methods.gradient.recorded import Recorded
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
                raise MethodError(f"client {client.name!r} has no training samples; leave it out")
        self.order = sorted(range(len(clients)), key=lambda k: (-clients[k].train.n, k))
        self.clients = [clients[k] for k in self.order]
        self.net, self.lr = net, lr
        self.shared = {name: tensor for name, tensor in shared.items() if name not in ("shift", "scale")}
        self.batch_size, self._seed, self._stream = batch_size, seed, stream
        self.x = torch.cat([net.prepare(client.train.inputs, shared) for client in self.clients])
        self.y = torch.cat([torch.as_tensor(client.train.targets) for client in self.clients])
        self.device = self.x.device
        self.sizes = [client.train.n for client in self.clients]
        self.starts = np.cumsum([0, *self.sizes[:-1]])

    def __len__(self) -> int:
        return len(self.clients)

    def pick(self, which: Sequence[int]) -> "Cohort":
        """Some of the clients, in the same order; one that is named several times has several models to train."""
        other = copy.copy(self)
        other.clients, other.sizes = [self.clients[k] for k in which], [self.sizes[k] for k in which]
        other.starts = self.starts[list(which)]
        return other

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
        schedule = Schedule(self, epochs, purpose, part)
        for t, m in enumerate(schedule.active):
            schedule.draw(m)
            yield schedule.batch(torch.tensor([t], device=self.device), m)

    def noise_of(self, client: ClientData, purpose: str) -> torch.Generator:
        drawn = int(self.generator(client, f"{purpose}/noise").integers(2**62))
        return torch.Generator(self.device).manual_seed(drawn)

    def plan(self, k: int, epochs: int, purpose: str, part: float) -> np.ndarray:
        """Row numbers of client k: batches x batch size, -1 where there is none."""
        rng, n = self.generator(self.clients[k], purpose), self.sizes[k]
        pool = np.arange(n) if part == 1 else rng.permutation(n)[: max(1, round(part * n))]
        per_epoch = -(-len(pool) // self.batch_size)
        plan = np.full((epochs, per_epoch * self.batch_size), -1)
        for epoch in range(epochs):
            plan[epoch, : len(pool)] = rng.permutation(pool)
        return plan.reshape(epochs * per_epoch, self.batch_size)

    def samples(self, k: int) -> tuple[Tensor, Tensor]:
        """All prepared samples of client k and their class codes."""
        rows = slice(self.starts[k], self.starts[k] + self.sizes[k])
        return self.x[rows], self.y[rows]

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

    def _stacked(self, objective: Objective) -> bool:
        """Whether all clients go through the network in one pass as they are, without vmap."""
        return len(self) > 1 and self.net.stackable and getattr(objective, "stacks", False)

    def gradient(self, objective: Objective, state: State, extras: Extras, batch: Batch) -> tuple[State, Tensor, Extras]:
        """Every client's gradient and loss, and the extras that change."""
        if self._stacked(objective):
            leaves = {name: tensor.detach().requires_grad_() for name, tensor in state.items()}
            losses, changed = objective(leaves, extras, batch)
            found = torch.autograd.grad(losses.sum(), list(leaves.values()))
            return dict(zip(leaves, found, strict=True)), losses.detach(), changed
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
        purpose: str | Sequence[str] = "train",
        part: float = 1.0,
        project: Callable[[Tensor], Any] | None = None,
        pull: tuple[float | Tensor, State] | None = None,
    ) -> State:
        """The weights after so many epochs of gradient steps, every client on its own samples. `state` is written to; running
        statistics in it change with each batch. `pull` is (strength, anchor): strength/2 ||state - anchor||^2 is added to the
        objective, of all clients or of each with its own strength. `project` is applied in place to what a step has changed.
        `purpose` names random numbers; several take turns among the clients."""
        statistics = {name: tensor for name, tensor in state.items() if name in self.net.statistics}
        trained = {name: tensor for name, tensor in state.items() if name not in statistics}
        if statistics:
            extras = {**extras, "statistics": statistics}
        slots, pulling = optimizer.slots(trained), self._pulling(pull, trained)
        schedule = Schedule(self, epochs, purpose, part)
        now = torch.zeros(1, dtype=torch.long, device=self.device)

        def step(m: int) -> None:
            front = cut(trained, m)
            grads, _, changed = self.gradient(objective, front, cut(extras, m), schedule.batch(now, m))
            if pulling is not None:
                grads = pulled(grads, front, *(cut(each, m) for each in pulling))
            optimizer.step(front, grads, cut(slots, m), self.lr if lr is None else lr)
            _write(extras, changed, m)
            if project is not None:
                for tensor in front.values():
                    project(tensor)
            now.add_(1)

        self._walked(step, schedule, on_gpu=self.device.type == "cuda" and self._stacked(objective))
        return state

    @staticmethod
    def _walked(step: Callable[[int], None], schedule: "Schedule", on_gpu: bool) -> None:
        """A step for each batch; those of as many clients are recorded once, on a GPU."""
        recorded = Recorded(step, on_gpu=on_gpu)
        for m, steps in itertools.groupby(schedule.active):
            repeats = len(list(steps))
            take = recorded.run(m, repeats)
            for _ in range(repeats):
                schedule.draw(m)
                take()

    def _pulling(self, pull: tuple[float | Tensor, State] | None, trained: State) -> tuple[State, State] | None:
        """A pull's strength and anchor for every weight of every client, in the weights' own shape: kernels that take many
        tensors at once want them alike. None where nothing pulls."""
        strength, anchor = pull if pull is not None else (0.0, {})
        if not isinstance(strength, Tensor) and strength <= 0:
            return None
        each = torch.as_tensor(strength, device=self.device).expand(len(self))
        strengths = {name: each.reshape(-1, *[1] * (t.ndim - 1)).expand_as(t).contiguous() for name, t in trained.items()}
        return strengths, self.spread({name: anchor[name] for name in trained})

    def outputs(self, state: State, extras: Extras, batch: Batch, part: str = "logits") -> tuple[Any, Extras]:
        """What the network makes of a batch in training, and the running statistics afterwards where it has some."""
        if not self.net.statistics:
            return self.net(state, batch.x, part, train=True), {}
        weights, noise = {**extras["statistics"], **state}, batch.noise if self.net.noise else None
        found, statistics = self.net.normalizing(weights, batch.x, part, batch.weight, noise)
        return found, {"statistics": statistics}


class Schedule:
    """The batches of a stretch of training: `active` clients in each, in a place in memory that does not move."""

    def __init__(self, cohort: Cohort, epochs: int, purpose: str | Sequence[str], part: float) -> None:
        purposes = [purpose] if isinstance(purpose, str) else list(purpose)
        purposes = [purposes[k % len(purposes)] for k in range(len(cohort))]
        plans = [cohort.plan(k, epochs, purposes[k], part) for k in range(len(cohort))]
        plan = np.full((len(cohort), max(map(len, plans), default=0), cohort.batch_size), -1)
        for k, own in enumerate(plans):
            plan[k, : len(own)] = np.where(own < 0, -1, own + cohort.starts[k])
        self.active = [int(m) for m in (plan[:, :, 0] >= 0).sum(0)]
        self._cohort, self._rows = cohort, torch.from_numpy(plan).to(cohort.device)
        self._streams = []
        if cohort.net.noise:
            self._streams = [cohort.noise_of(*each) for each in zip(cohort.clients, purposes, strict=True)]
        self._noise = torch.empty(len(cohort), cohort.batch_size, cohort.net.noise, device=cohort.device)

    def draw(self, m: int) -> None:
        """The next random numbers of the first m clients, each from its own stream."""
        for own, stream in zip(self._noise[:m], self._streams[:m], strict=False):
            own.uniform_(generator=stream)

    def batch(self, t: Tensor, m: int) -> Batch:
        """Batch t of the first m clients. A client on its own has no padding."""
        rows, noise = self._rows[:m].index_select(1, t)[:, 0], self._noise[:m]
        if len(self._cohort) == 1:
            rows = rows[rows >= 0][None]
            noise = noise[:, : rows.shape[1]]
        valid, taken = rows >= 0, rows.clamp(min=0)
        return Batch(self._cohort.x[taken], self._cohort.y[taken], valid / valid.sum(1, keepdim=True), noise)


def stacks(objective: Objective) -> Objective:
    """Marks an objective that takes stacked tensors as they are, and returns a loss for each client: its operations are on the
    last dimensions only."""
    objective.stacks = True  # type: ignore[attr-defined]
    return objective


def pulled(grads: State, state: State, strength: State, anchor: State) -> State:
    """Gradients of an objective with strength/2 ||state - anchor||^2 added."""
    grad, weight, strong, fixed = ([tree[name] for name in grads] for tree in (grads, state, strength, anchor))
    return dict(zip(grads, torch._foreach_addcmul(grad, torch._foreach_sub(weight, fixed), strong), strict=True))


def cut(tree: Any, m: int) -> Any:
    """The first m clients of stacked tensors: views, so that writing to them writes to the whole."""
    return _each(lambda tensor: tensor[:m], tree)


def _each(function: Callable[[Any], Any], tree: Any) -> Any:
    return {name: _each(function, value) for name, value in tree.items()} if isinstance(tree, dict) else function(tree)


def _write(tree: Any, changed: Any, m: int) -> None:
    """New values for the first m clients."""
    for name, value in changed.items():
        if isinstance(value, dict):
            if value:
                torch._foreach_copy_([tree[name][key][:m] for key in value], list(value.values()))
        else:
            tree[name][:m] = value


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """The weighted mean over a batch, or over each of several stacked."""
    picked = logits.log_softmax(-1).gather(-1, batch.y[..., None])[..., 0]
    return -(picked * batch.weight).sum(-1)
