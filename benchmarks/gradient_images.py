"""The gradient methods with a small CNN, and HEART-PFL whole and with each part left out, on images.

    python -m benchmarks.gradient_images FILE.npz --device cuda --jobs 8 --rounds 50

A thousand training images, taken out beforehand, are the server's proxy data for AKT; no method trains on them otherwise. Writes
OUT/table.md and OUT/table.json; a cell that is done is not run again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.cells import markdown, run_cell, run_cells
from benchmarks.gradient_table import RIVALS, arguments
from gramfold import networks
from gramfold.federation import Dataset, load_npz
from gramfold.methods import Method, make_method
from gramfold.numerics import seeds

PROXY = 1000
PRETRAINING = 40
"""Epochs."""
HEART: dict[str, dict[str, Any]] = {
    "heart-pfl": {},
    "heart-pfl without HDA": {"hda": 0.0},
    "heart-pfl without AKT": {"proxy": None},
    "heart-pfl without HDA and AKT": {"hda": 0.0, "proxy": None},
    "heart-pfl without adapters": {"adapters": False},
    "heart-pfl alone": {"prox": 0.0, "hda": 0.0, "proxy": None},
    "heart-pfl from scratch": {"pretrained": None, "freeze": False, "prox": 1.0, "akt_steps": 8},
}
"""Whole, with parts left out, as clients that train the same pretrained network each for itself, and not pretrained."""


def split_off_proxy(path: str, out: Path) -> tuple[Dataset, str]:
    """The data without the server's images, and the file that those are in."""
    data = load_npz(path)
    train = data.train if data.train is not None else np.ones(len(data.inputs), dtype=bool)
    mine = np.sort(seeds.generator(0, "proxy").choice(np.flatnonzero(train), PROXY, replace=False))
    file = out / "proxy.npz"
    if not file.exists():
        part = out / f"proxy-{np.random.default_rng().integers(2**32)}.npz"
        np.savez(part, images=data.inputs[mine], labels=data.targets[mine], classes=np.array(data.labels))
        part.replace(file)
    rest = np.setdiff1d(np.arange(len(data.inputs)), mine)
    return Dataset(data.name, data.inputs[rest], data.targets[rest], data.labels, train[rest]), str(file)


def pretrain(spec: str, data: Dataset, proxy: str, out: Path, device: str) -> str:
    """The file of a residual network trained on the server's own images, on the half that AKT does not validate with.

    The paper starts from ImageNet; this is what a server can do with what it has here.
    """
    import torch

    file = out / f"{spec.replace(':', '-')}.pt"
    if file.exists():
        return str(file)
    with np.load(proxy) as given:
        images, codes = (torch.as_tensor(given[key][::2], device=device) for key in ("images", "labels"))
    network = networks.describe(spec, data.inputs.shape[1:], data.outputs, 0, adapters=False, freeze=False, pretrained=None)
    net, rng = networks.build(network, device), torch.Generator().manual_seed(0)
    state = net.full_state({})
    trained = {name: state[name].clone().requires_grad_() for name in net.initial}
    optimizer = torch.optim.SGD(trained.values(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, PRETRAINING)
    for _ in range(PRETRAINING):
        for rows in torch.randperm(len(images), generator=rng).split(32):
            mirrored = torch.rand(len(rows), generator=rng) < 0.5
            x = torch.where(mirrored.to(device)[:, None, None, None], images[rows].flip(2), images[rows])
            share = torch.full((len(x),), 1 / len(x), device=device)
            logits, statistics = net.normalizing({**state, **trained}, x, "logits", share)
            loss = torch.nn.functional.cross_entropy(logits, codes[rows])
            state |= {name: tensor.detach() for name, tensor in statistics.items()}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    base = {name.removeprefix("base."): tensor.detach().cpu() for name, tensor in {**state, **trained}.items() if "base." in name}
    part = file.with_suffix(f".{np.random.default_rng().integers(2**32)}")
    torch.save(base, part)
    part.replace(file)
    return str(file)


def make(name: str, given: argparse.Namespace, data: Dataset, proxy: str) -> Method:
    shared: dict[str, Any] = {"rounds": given.rounds, "sweep_rounds": given.sweep_rounds, "epochs": given.epochs}
    if name in HEART:
        own = {
            "model": given.resnet,
            "pretrained": pretrain(given.resnet, data, proxy, Path(given.out), given.device),
            "batch_size": 32,
            "batched": given.device != "cpu",
            "lr": given.heart_lr,
            "prox": given.heart_prox,
            "proxy": proxy,
            "akt_steps": 16,
            "akt_batch": 64,
            **HEART[name],
        }
        return gf.HeartPFL(**{**shared, **own})
    batched = True if given.device != "cpu" else None
    if name == "local-sgd":
        return gf.LocalSGD(model=given.cnn, epochs=given.rounds, batched=batched)
    return make_method(name, model=given.cnn, batched=batched, **shared)


def main(given: argparse.Namespace) -> None:
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    data, proxy = split_off_proxy(given.path, out)
    if given.cell:
        partition, _, name = given.cell.partition("/")
        federation = gf.Federation.from_dataset(data, clients=given.clients, partition=partition, random_state=given.seed)
        run_cell(given.cell, make(name, given, data, proxy), federation, out, given.device)
        return
    pretrain(given.resnet, data, proxy, out, given.device)
    names = given.methods.split(",") if given.methods else [*HEART, *RIVALS, "local-sgd"]
    passed = [given.path]
    for key in (
        "device",
        "rounds",
        "sweep_rounds",
        "clients",
        "seed",
        "out",
        "epochs",
        "cnn",
        "resnet",
        "heart_lr",
        "heart_prox",
    ):
        passed += [f"--{key.replace('_', '-')}", str(getattr(given, key))]
    results = run_cells("benchmarks.gradient_images", [f"dirichlet:0.1/{name}" for name in names], passed, out, given.jobs)
    results.sort(key=lambda result: -(result["mean_accuracy"] or 0))
    text = f"### dirichlet:0.1, {given.clients} clients, {given.rounds} rounds\n\n{markdown(results)}\n"
    (out / "table.md").write_text(text)
    (out / "table.json").write_text(json.dumps([{k: v for k, v in r.items() if k != "clients"} for r in results], indent=1))
    print(text)


if __name__ == "__main__":
    parser = arguments(__doc__.splitlines()[0], "build/gradient-images")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--cnn", default="cnn:32")
    parser.add_argument("--resnet", default="resnet:16x1")
    # of 0.02 0.05 0.1 0.2 and 0.1 1, by validation accuracy after 12 rounds; the ablations then differ in nothing else
    parser.add_argument("--heart-lr", type=float, default=0.05)
    parser.add_argument("--heart-prox", type=float, default=0.1)
    main(parser.parse_args())
