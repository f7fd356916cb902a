"""AKT, the adversarial knowledge transfer of HEART-PFL: the server distils its clients' models into their average.

On proxy images and on adversarial copies of them the average is drawn towards the mean logits of the clients' models. Of the
average and of what distillation makes of it, the server keeps what validates best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gramfold.errors import GramfoldError
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
            raise GramfoldError(
                f"AKT's direction is one of {', '.join(DIRECTIONS)}, its adversary one of {', '.join(ADVERSARIES)}"
            )
        if min(self.steps, self.batch) < 1 or self.temperature <= 0:
            raise GramfoldError("AKT's steps and batch must be at least 1, its temperature above 0")

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
    student = {name: average[name].clone()[None] for name in net.initial}
    fixed = {name: tensor for name, tensor in average.items() if name not in student}
    optimizer, rng = Optimizer("adam"), seeds.generator(seed, "akt")
    slots, targets, device = optimizer.slots(student), answers(net, clients, images), images.device
    size = min(how.batch, len(images))
    epochs = [rng.permutation(len(images)) for _ in range(-(-how.steps * size // len(images)))]
    rows = torch.stack([torch.from_numpy(epoch) for epoch in epochs]).flatten()[: how.steps * size].reshape(how.steps, size)
    rows = rows.to(device)
    rates = (LEARNING_RATE / 2 * (1 + torch.cos(torch.pi * torch.arange(how.steps) / how.steps))).to(device)
    noise = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
    # a GPU is told each step once, so that all it reads and writes has its place: the batch, its copies, the rate
    clean, wanted = torch.empty(size, *images.shape[1:], device=device), torch.empty_like(targets[:size])
    copies, rate = torch.empty_like(clean), torch.empty(1, device=device)

    def apart(weights: State, x: Tensor, answer: Tensor) -> Tensor:
        return how.divergence(net({**fixed, **weights}, x), answer)

    def climb(_: int) -> None:
        current = {name: tensor[0].detach() for name, tensor in student.items()}
        copies.copy_(climbed(lambda x: apart(current, x, wanted), clean, copies))

    def learn(_: int) -> None:
        current = {name: tensor[0].detach().requires_grad_() for name, tensor in student.items()}
        loss = apart(current, clean, wanted)
        if how.adversary != "none":
            loss = loss + apart(current, copies, wanted if how.adversary == "student" else answers(net, clients, copies))
        grads = torch.autograd.grad(loss, list(current.values()))
        optimizer.step(student, {name: g[None] for name, g in zip(current, grads, strict=True)}, slots, rate)

    on_gpu = device.type == "cuda"
    climbing = 0 if how.adversary == "none" else STEPS
    climb_once, learn_once = Recorded(climb, on_gpu).run(1, how.steps * climbing), Recorded(learn, on_gpu).run(1, how.steps)
    best, best_score = average, score(average)
    for number, taken in enumerate(rows, start=1):
        clean.copy_(images[taken].to(torch.float32) / 255)
        wanted.copy_(targets[taken])
        rate.copy_(rates[number - 1 : number])
        copies.copy_((clean + EPSILON * (2 * torch.rand(clean.shape, generator=noise, device=device) - 1)).clamp(0, 1))
        for _ in range(climbing):
            climb_once()
        learn_once()
        if number * CHECKPOINTS // how.steps > (number - 1) * CHECKPOINTS // how.steps:
            state = {**fixed, **{name: tensor[0].clone() for name, tensor in student.items()}}
            if (found := score(state)) > best_score:
                best, best_score = state, found
    return best, best is not average
