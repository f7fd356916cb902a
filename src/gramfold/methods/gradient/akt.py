"""AKT, the adversarial knowledge transfer of HEART-PFL: the server distils its clients' models into their average.

On proxy images and on adversarial copies of them the average is drawn towards the mean logits of the clients' models. Of the
average and of what distillation makes of it, the server keeps what validates best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gramfold.errors import MethodError
from gramfold.methods.gradient.optimizer import Optimizer
from gramfold.methods.gradient.recorded import Recorded
from gramfold.networks.network import Network, State
from gramfold.numerics import seeds

EPSILON, STEP, STEPS = 8 / 255, 2 / 255, 20
LEARNING_RATE = 1e-3
BATCH = 512
"""Images that go through a network at a time where nothing is learned from them."""
CHECKPOINTS = 10
DIRECTIONS = ("symmetric", "forward", "reverse")
ADVERSARIES = ("student", "own", "none")


@dataclass(frozen=True)
class Distillation:
    """How: `steps` of `batch` images; logits divided by `temperature`; the divergence's `direction`, forward being KL(clients ||
    student); adversarial copies as hard as can be for the "student", whose target is the clients' answer to the image, or for
    their "own" answer to the copy as target, or "none"."""

    steps: int = 500
    batch: int = 256
    temperature: float = 1.0
    direction: str = "symmetric"
    adversary: str = "student"

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS or self.adversary not in ADVERSARIES:
            raise MethodError(f"AKT's direction is one of {', '.join(DIRECTIONS)}, its adversary one of {', '.join(ADVERSARIES)}")
        if min(self.steps, self.batch) < 1 or self.temperature <= 0:
            raise MethodError("AKT's steps and batch must be at least 1, its temperature above 0")

    def divergence(self, student: Tensor, clients: Tensor) -> Tensor:
        """Of two rows of logits, averaged over the rows; times the square of the temperature, which keeps gradients in size."""
        log_s, log_t = ((logits / self.temperature).log_softmax(1) for logits in (student, clients))
        weight = {
            "symmetric": lambda: log_s.exp() - log_t.exp(),
            "forward": lambda: -log_t.exp(),
            "reverse": log_s.exp,
        }[self.direction]()  # fmt: skip
        return (weight * (log_s - log_t)).sum(1).mean() * self.temperature**2


def climbed(loss: Callable[[Tensor], Tensor], images: Tensor, moved: Tensor) -> Tensor:
    """A step of PGD: copies of images in [0, 1], at most EPSILON away in every pixel, moved to where the loss is higher."""
    moved = moved.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(moved), [moved])
    moved = (moved + STEP * gradient.sign()).detach()
    return (images + (moved - images).clamp(-EPSILON, EPSILON)).clamp(0, 1)


def images_in(images: Tensor) -> list[Tensor]:
    """In parts that go through a network at a time."""
    return [images[i : i + BATCH] for i in range(0, len(images), BATCH)]


@torch.no_grad()
def answers(net: Network, states: Sequence[State], images: Tensor) -> Tensor:
    """The mean logits of several models."""
    parts = [torch.stack([net(state, part) for state in states]).mean(0) for part in images_in(images)]
    return torch.cat(parts)


class Student:
    """The average that learns from the clients' models, with Adam. A GPU is told each step once, so that all it reads and writes
    has its place: the images, the answers wanted, the copies, the rate."""

    def __init__(self, net: Network, average: State, clients: Sequence[State], clean: Tensor, wanted: Tensor, how: Distillation):
        self.net, self.clients, self.how, self.clean, self.wanted = net, clients, how, clean, wanted
        self.copies, self.rate = torch.empty_like(clean), torch.empty(1, device=clean.device)
        self.trained = {name: average[name].clone()[None] for name in net.initial}
        self.fixed = {name: tensor for name, tensor in average.items() if name not in self.trained}
        self.optimizer = Optimizer("adam")
        self.slots = self.optimizer.slots(self.trained)

    @property
    def state(self) -> State:
        """A copy."""
        return {**self.fixed, **{name: tensor[0].clone() for name, tensor in self.trained.items()}}

    def apart(self, weights: State, x: Tensor, answer: Tensor) -> Tensor:
        return self.how.divergence(self.net({**self.fixed, **weights}, x), answer)

    def climb(self, _: int) -> None:
        current = {name: tensor[0].detach() for name, tensor in self.trained.items()}
        self.copies.copy_(climbed(lambda x: self.apart(current, x, self.wanted), self.clean, self.copies))

    def learn(self, _: int) -> None:
        current = {name: tensor[0].detach().requires_grad_() for name, tensor in self.trained.items()}
        loss = self.apart(current, self.clean, self.wanted)
        if self.how.adversary != "none":
            own = self.how.adversary == "own"
            loss = loss + self.apart(current, self.copies, answers(self.net, self.clients, self.copies) if own else self.wanted)
        grads = torch.autograd.grad(loss, list(current.values()))
        self.optimizer.step(self.trained, {name: g[None] for name, g in zip(current, grads, strict=True)}, self.slots, self.rate)


def _batches(images: int, how: Distillation, rng: np.random.Generator) -> Tensor:
    """Which images each step is of."""
    size = min(how.batch, images)
    epochs = [rng.permutation(images) for _ in range(-(-how.steps * size // images))]
    return torch.stack([torch.from_numpy(epoch) for epoch in epochs]).flatten()[: how.steps * size].reshape(how.steps, size)


def distilled(
    net: Network,
    average: State,
    clients: Sequence[State],
    images: Tensor,
    score: Callable[[State], float],
    how: Distillation,
    seed: int,
) -> tuple[State, bool]:
    """The best by `score` of the average and of the student at some checkpoints, and whether it is the student."""
    rng, targets, device = seeds.generator(seed, "akt"), answers(net, clients, images), images.device
    batches = _batches(len(images), how, rng).to(device)
    rates = (LEARNING_RATE / 2 * (1 + torch.cos(torch.pi * torch.arange(how.steps) / how.steps))).to(device)
    noise, size = torch.Generator(device).manual_seed(int(rng.integers(2**62))), batches.shape[1]
    clean = torch.empty(size, *images.shape[1:], device=device)
    student = Student(net, average, clients, clean, torch.empty_like(targets[:size]), how)
    climbing, on_gpu = 0 if how.adversary == "none" else STEPS, device.type == "cuda"
    climb = Recorded(student.climb, on_gpu).run(1, how.steps * climbing)
    learn = Recorded(student.learn, on_gpu).run(1, how.steps)
    best, best_score = average, score(average)
    for number, taken in enumerate(batches, start=1):
        clean.copy_(images[taken].to(torch.float32) / 255)
        student.wanted.copy_(targets[taken])
        student.rate.copy_(rates[number - 1 : number])
        student.copies.copy_((clean + EPSILON * (2 * torch.rand(clean.shape, generator=noise, device=device) - 1)).clamp(0, 1))
        for _ in range(climbing):
            climb()
        learn()
        checked = number * CHECKPOINTS // how.steps > (number - 1) * CHECKPOINTS // how.steps
        if checked and (found := score(state := student.state)) > best_score:
            best, best_score = state, found
    return best, best is not average
