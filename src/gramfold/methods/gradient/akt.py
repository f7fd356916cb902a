"""AKT, the adversarial knowledge transfer of HEART-PFL: the server distils its clients' models into their average.

On proxy images and on adversarial copies of them the average is drawn towards the mean logits of the clients' models; the
result is kept only if it validates better than the plain average did.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gramfold.methods.gradient.optimizer import Optimizer
from gramfold.networks.network import Network, State
from gramfold.numerics import seeds

EPSILON, STEP, STEPS = 8 / 255, 2 / 255, 20
LEARNING_RATE = 1e-3
BATCH = 64


def symmetric_kl(a: Tensor, b: Tensor) -> Tensor:
    """KL(a||b) + KL(b||a) of two rows of logits, averaged over the rows: sum (p - q)(log p - log q)."""
    log_p, log_q = a.log_softmax(1), b.log_softmax(1)
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(1).mean()


def adversarial(loss: Callable[[Tensor], Tensor], images: Tensor, generator: torch.Generator) -> Tensor:
    """PGD: copies of images in [0, 1], at most EPSILON away in every pixel, on which the loss is higher."""
    start = torch.rand(images.shape, generator=generator).to(images.device) * 2 - 1
    moved = (images + EPSILON * start).clamp(0, 1)
    for _ in range(STEPS):
        moved = moved.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(moved), [moved])
        moved = (moved + STEP * gradient.sign()).detach()
        moved = (images + (moved - images).clamp(-EPSILON, EPSILON)).clamp(0, 1)
    return moved


def accuracy(net: Network, state: State, images: Tensor, codes: Tensor) -> float:
    with torch.no_grad():
        right = [
            int((net(state, images[i : i + BATCH]).argmax(1) == codes[i : i + BATCH]).sum()) for i in range(0, len(images), BATCH)
        ]
    return sum(right) / max(len(images), 1)


def distilled(
    net: Network,
    average: State,
    clients: Sequence[State],
    proxy: Tensor,
    held_out: tuple[Tensor, Tensor],
    *,
    epochs: int,
    seed: int,
) -> tuple[State, bool]:
    """The average after distillation and True, or the average itself and False where it validates no worse."""
    student = {name: average[name].clone()[None] for name in net.initial}
    fixed = {name: tensor for name, tensor in average.items() if name not in student}
    optimizer, rng = Optimizer("adam"), seeds.generator(seed, "akt")
    noise = torch.Generator().manual_seed(int(rng.integers(2**62)))
    slots = optimizer.slots(student)
    batches = [rows for _ in range(epochs) for rows in torch.split(torch.from_numpy(rng.permutation(len(proxy))), BATCH)]
    for number, rows in enumerate(batches):
        clean = proxy[rows.to(proxy.device)].to(torch.float32) / 255
        with torch.no_grad():
            wanted = torch.stack([net(client, clean) for client in clients]).mean(0)
        current = {name: tensor[0].detach().requires_grad_() for name, tensor in student.items()}

        def apart(x: Tensor, state: State = current, wanted: Tensor = wanted) -> Tensor:
            return symmetric_kl(net({**fixed, **state}, x), wanted)

        loss = apart(clean) + apart(adversarial(apart, clean, noise))
        grads = torch.autograd.grad(loss, list(current.values()))
        rate = LEARNING_RATE * (1 + torch.cos(torch.tensor(torch.pi * number / len(batches))).item()) / 2
        optimizer.step(student, {name: g[None] for name, g in zip(current, grads, strict=True)}, slots, rate)
    result = {**fixed, **{name: tensor[0].detach() for name, tensor in student.items()}}
    better = accuracy(net, result, *held_out) > accuracy(net, average, *held_out)
    return (result, True) if better else (average, False)
