"""What gradient descent on the pooled data reaches: softmax regression and an MLP, each client then adding its class prior.

    python -m benchmarks.ceiling FILE.npz [--seeds 3] [--device cuda]

Learning rate, weight decay and dropout are chosen on a fifth of the training samples; the winner is trained anew on all of them.
Every client's prior is PACE's (gramfold.solve.class_prior), so that only the shared model differs. Needs PyTorch.
"""

import argparse
import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import gramfold as gf
from benchmarks.pace import CELLS
from benchmarks.timing import keep
from gramfold.federation import load_npz
from gramfold.solve.class_prior import ClassPrior

EPOCHS, BATCH, WIDTH = 30, 512, 2048
GRIDS = {
    "softmax": list(itertools.product((3e-3, 1e-3, 3e-4), (0.0, 1e-2, 1e-1), (0.0,))),
    "mlp": list(itertools.product((1e-3, 3e-4), (1e-2, 1e-1, 0.5), (0.3, 0.6))),
}


def model(kind: str, inputs: int, classes: int, dropout: float) -> nn.Module:
    if kind == "softmax":
        return nn.Linear(inputs, classes)
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.GELU(), nn.Dropout(dropout), nn.Linear(WIDTH, classes))


def trained(kind: str, X: Tensor, y: Tensor, classes: int, setting: tuple[float, float, float], seed: int) -> nn.Module:
    """AdamW with a cosine schedule."""
    lr, decay, dropout = setting
    torch.manual_seed(seed)
    net = model(kind, X.shape[1], classes, dropout).to(X.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=decay)
    steps = EPOCHS * -(-len(X) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(X), device=X.device).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
    return net.eval()


@torch.no_grad()
def accuracy(net: nn.Module, X: Tensor, y: Tensor) -> float:
    return float((net(X).argmax(1) == y).float().mean())


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
    order = torch.as_tensor(np.random.default_rng(0).permutation(len(X)), device=given.device)
    held, kept = order[: len(X) // 5], order[len(X) // 5 :]
    rows = []
    for kind, grid in GRIDS.items():
        tried = {s: accuracy(trained(kind, X[kept], y[kept], classes, s, 0), X[held], y[held]) for s in grid}
        best = max(tried, key=lambda setting: tried[setting])
        print(kind, "chose", best, f"{100 * tried[best]:.2f} on validation", flush=True)
        net = trained(kind, X, y, classes, best, 0)
        shared = accuracy(net, *ready(whole.clients[0].test()))
        pooled = np.bincount(y.cpu().numpy(), minlength=classes)
        for clients, alpha in CELLS:
            for seed in range(given.seeds):
                federation = gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", seed=seed)
                scores = []
                for client in federation:
                    test = client.test()
                    if not test.n:
                        continue
                    counts = np.bincount(np.asarray(client.train().targets), minlength=classes)
                    prior = torch.as_tensor(ClassPrior.of(counts, pooled).log_shares, device=given.device)
                    Z, t = ready(test)
                    with torch.no_grad():
                        logits = torch.log_softmax(net(Z).double(), 1) - torch.as_tensor(
                            np.log(pooled / pooled.sum()), device=given.device
                        )
                        scores.append(float(((logits + prior).argmax(1) == t).float().mean()))
                rows.append({"model": kind, "clients": clients, "alpha": alpha, "seed": seed, "accuracy": float(np.mean(scores)),
                             "shared": shared, "setting": best, "validation": tried[best]})  # fmt: skip
        cell = [
            round(100 * float(np.mean([r["accuracy"] for r in rows if (r["model"], r["clients"], r["alpha"]) == (kind, *c)])), 2)
            for c in CELLS
        ]
        print(kind, cell, f"shared {100 * shared:.2f}", flush=True)
    keep("ceiling", rows)


if __name__ == "__main__":
    main()
