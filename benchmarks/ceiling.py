"""What gradient descent on the pooled data reaches: softmax regression and an MLP, each client then adding its class prior.

    python -m benchmarks.ceiling FILE.npz [--seeds 3] [--device cuda]

Inputs are standardised. Learning rate, weight decay, dropout, label smoothing, width and temperature are chosen on a fifth of the
training samples, one after another, twice; the winner is trained anew on all of them, with three seeds.
Every client's prior is PACE's (gramfold.solve.class_prior), so that only the shared model differs. Needs PyTorch.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import gramfold as gf
from benchmarks.pace import CELLS
from benchmarks.timing import keep
from gramfold.federation import load_npz
from gramfold.solve.class_prior import ClassPrior

EPOCHS, BATCH = 30, 512


class Setting(NamedTuple):
    """How a model is trained; `width` 0 is softmax regression."""

    width: int = 0
    lr: float = 1e-3
    decay: float = 1e-2
    dropout: float = 0.0
    smoothing: float = 0.0


STARTS = {"softmax": Setting(), "mlp": Setting(2048, 1e-3, 1e-2, 0.3)}
STEPS: dict[str, tuple[float, ...]] = {
    "lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
    "decay": (0.0, 1e-2, 3e-2, 0.1, 0.3, 1.0),
    "dropout": (0.0, 0.3, 0.5, 0.7, 0.8),
    "smoothing": (0.0, 0.05, 0.1, 0.2, 0.3),
    "width": (1024, 2048, 4096, 8192),
}
"""Each in turn, the others as they are, twice; a grid goes on where its winner is at an end."""
TEMPERATURES = np.linspace(0.4, 2.0, 33)


def model(setting: Setting, inputs: int, classes: int) -> nn.Module:
    if not setting.width:
        return nn.Linear(inputs, classes)
    hidden = nn.Linear(inputs, setting.width)
    return nn.Sequential(hidden, nn.GELU(), nn.Dropout(setting.dropout), nn.Linear(setting.width, classes))


def trained(setting: Setting, X: Tensor, y: Tensor, classes: int, seed: int) -> nn.Module:
    """AdamW with a cosine schedule."""
    torch.manual_seed(seed)
    net = model(setting, X.shape[1], classes).to(X.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=setting.lr, weight_decay=setting.decay)
    steps = EPOCHS * -(-len(X) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    loss = nn.CrossEntropyLoss(label_smoothing=setting.smoothing)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(X), device=X.device).split(BATCH):
            optimizer.zero_grad()
            loss(net(X[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
    return net.eval()


def tuned(start: Setting, score: Callable[[Setting], float]) -> tuple[Setting, dict[Setting, float]]:
    """The best setting of all that were tried, one parameter after another."""
    tried = {start: score(start)}
    best = start
    for _ in range(2):
        for name, values in STEPS.items():
            if not start.width and name in ("dropout", "width"):
                continue
            for value in values:
                setting = best._replace(**{name: value})
                if setting not in tried:
                    tried[setting] = score(setting)
            best = max(tried, key=lambda setting: tried[setting])
    return best, tried


@torch.no_grad()
def accuracy(net: nn.Module, X: Tensor, y: Tensor) -> float:
    return float((net(X).argmax(1) == y).float().mean())


@torch.no_grad()
def likeliest(net: nn.Module, X: Tensor, y: Tensor) -> float:
    """The temperature that leaves held-out samples most likely."""
    logits = net(X).double()
    losses = [float(nn.functional.cross_entropy(logits / one, y)) for one in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    data = load_npz(given.file)
    whole = gf.Federation.from_dataset(data, clients=1, partition="iid")
    classes = whole.task.outputs

    def ready(samples: Any) -> tuple[Tensor, Tensor]:
        X = torch.as_tensor(np.asarray(samples.inputs, np.float32), device=given.device)
        X = X / X.norm(dim=1, keepdim=True) * X.shape[1] ** 0.5
        return X, torch.as_tensor(np.asarray(samples.targets), device=given.device)

    X, y = ready(whole.clients[0].train())
    mean, spread = X.mean(0), X.std(0)
    X = (X - mean) / spread
    order = torch.as_tensor(np.random.default_rng(0).permutation(len(X)), device=given.device)
    held, kept = order[: len(X) // 5], order[len(X) // 5 :]
    tests, codes = ready(whole.clients[0].test())
    tests = (tests - mean) / spread
    pooled = np.bincount(y.cpu().numpy(), minlength=classes)
    level = torch.as_tensor(np.log(pooled / pooled.sum()), device=given.device)
    rows = []
    for kind, start in STARTS.items():
        best, tried = tuned(start, lambda setting: accuracy(trained(setting, X[kept], y[kept], classes, 0), X[held], y[held]))
        print(kind, "chose", best, f"{100 * tried[best]:.2f} on validation, of {len(tried)}", flush=True)
        nets = [trained(best, X, y, classes, seed) for seed in range(given.seeds)]
        judge = trained(best, X[kept], y[kept], classes, 0)
        temperature = likeliest(judge, X[held], y[held])
        for clients, alpha in CELLS:
            for seed, net in enumerate(nets):
                federation = gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", random_state=seed)
                scores = []
                for client in federation:
                    test = client.test()
                    if not test.n:
                        continue
                    counts = np.bincount(np.asarray(client.train().targets), minlength=classes)
                    prior = torch.as_tensor(ClassPrior.of(counts[None], pooled).log_shares[0], device=given.device)
                    Z, t = ready(test)
                    with torch.no_grad():
                        logits = torch.log_softmax(net((Z - mean) / spread).double() / temperature, 1) - level
                        scores.append(float(((logits + prior).argmax(1) == t).float().mean()))
                rows.append({"model": kind, "clients": clients, "alpha": alpha, "seed": seed, "accuracy": float(np.mean(scores)),
                             "shared": accuracy(net, tests, codes), "setting": best._asdict(), "temperature": temperature,
                             "validation": tried[best], "tried": len(tried)})  # fmt: skip
        cell = [
            round(100 * float(np.mean([r["accuracy"] for r in rows if (r["model"], r["clients"], r["alpha"]) == (kind, *c)])), 2)
            for c in CELLS
        ]
        print(kind, cell, f"shared {100 * rows[-1]['shared']:.2f}, temperature {temperature:.2f}", flush=True)
    keep("ceiling", rows)


if __name__ == "__main__":
    main()
