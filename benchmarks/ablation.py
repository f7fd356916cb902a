"""What each part of PACE brings: its candidates and priors, its learned features, and the digits that its numbers travel in.

    python -m benchmarks.ablation parts [--cifar FILE.npz] [--shift FILE.npz] [--tables FOLDER] [--seeds 3]
    python -m benchmarks.ablation features|precision --cifar FILE.npz [--size 4096] [--device cuda]

One part is taken away, or one prior changed, at a time: a value, `replace(method, parts=..., priors=...)`. `parts` runs on cells
of `benchmarks.frozen`, where every change has the same shared solution; `features` and `precision` on 100 clients, Dirichlet 0.1,
0.5 and 1.0, one seed. Writes benchmarks/results/ablation_PART.json; `python -m benchmarks.tables` makes docs/ablation.md of all.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.frozen import Cell, bundled, embedded, federated, sited
from benchmarks.pace import personalised
from benchmarks.timing import RESULTS, keep
from gramfold.federation import load_npz
from gramfold.methods import ClientData
from gramfold.methods.pace.candidates import PARTS, Own, Part
from gramfold.methods.pace.priors import PRIORS

MAP = "bias+linear+fourier:{}@learned"
CUTS = [(100, 0.1), (100, 0.5), (100, 1.0)]
TOLD = (
    ("digits", "10 dirichlet:0.1"), ("digits", "50 quantity:0.5"), ("ten writers", "1 each"), ("ten writers", "4 each"),
    ("breast cancer", "20 dirichlet:1"), ("heart", "hospitals"), ("Parkinson", "patients"), ("Friedman 1", "sites"),
    ("eight domains", "1 each"), ("eight domains", "8 each"), ("CIFAR-100", "100 dirichlet:0.1"),
)  # fmt: skip
"""Small clients and large, skew and shift, tables and embeddings."""


def without(name: str) -> tuple[Part, ...]:
    return tuple(part for part in PARTS if part.name != name)


CHANGES: dict[str, Callable[[gf.PACE], gf.PACE]] = {
    "PACE": lambda method: method,
    "without blends": lambda method: replace(method, parts=without("blend")),
    "without residuals": lambda method: replace(method, parts=without("residual")),
    "without models of one's own": lambda method: replace(method, parts=without("own")),
    "stay alone": lambda method: replace(method, parts=()),
    "all as likely before": lambda method: replace(method, parts=tuple(replace(part, before=1.0) for part in PARTS)),
    "models of one's own on the residuals' map": lambda method: replace(method, parts=(*without("own"), Own("on_refinement"))),
    "residuals of ReLU features everywhere": lambda method: replace(method, refinement="relu:1024"),
    "few = 25": lambda method: replace(method, priors=replace(PRIORS, few=25.0)),
    "few = 100": lambda method: replace(method, priors=replace(PRIORS, few=100.0)),
    "a step worth 3": lambda method: replace(method, priors=replace(PRIORS, step=3.0)),
    "a step worth 12": lambda method: replace(method, priors=replace(PRIORS, step=12.0)),
    "half the cosine": lambda method: replace(method, priors=replace(PRIORS, cosine=0.75)),
    "twice the cosine": lambda method: replace(method, priors=replace(PRIORS, cosine=3.0)),
    "a prior of 5 samples": lambda method: replace(method, priors=replace(PRIORS, evidence_samples=5.0)),
    "a prior of 80 samples": lambda method: replace(method, priors=replace(PRIORS, evidence_samples=80.0)),
}
FEATURES = {
    "without Fourier features": "bias+linear",
    "without a metric, frequencies of scale 1": "bias+linear+fourier:{}",
    "without a metric, frequencies of scale 0.5": "bias+linear+fourier:{}:0.5",
    "metric of the linear head (PACE)": MAP,
    "one pass of gradients": MAP + ":1",
    "two passes of gradients": MAP + ":2",
}
PRECISIONS = ("float64", "float32", "float16", "int8")


def of_parts(cells: Iterator[Cell], seeds: int) -> Iterator[dict[str, Any]]:
    for cell in cells:
        for seed in range(min(seeds, cell.seeds)) if (cell.data, cell.cut) in TOLD else ():
            federation, clients = federated(cell, seed)
            run = gf.run(cell.method, federation, keep_heads=False).run
            assert isinstance(run.method, gf.PACE)
            for name, change in CHANGES.items():
                method = change(run.method)
                broadcast = run.broadcast
                if method.refinement != run.method.refinement:
                    broadcast = replace(broadcast, refinement=method.start(broadcast.space, run.task).refinement)
                found = []
                for client in federation:
                    head = method.personalize(ClientData(client.name, client.train(), contributed=True), broadcast)
                    X, y = clients[client.name][2:]
                    if cell.regression:
                        found.append((float(np.sqrt(np.mean((head.predict(X) - y) ** 2))), 0.0))
                    else:
                        likely = head.predict_proba(X)
                        lost = float(-np.log(likely[np.arange(len(y)), y].clip(1e-12)).mean())
                        found.append((100 * float((likely.argmax(1) == y).mean()), lost))
                figure, lost = np.mean(found, axis=0)
                yield {"data": cell.data, "cut": cell.cut, "seed": seed, "name": name, "figure": figure, "log_loss": lost}


def of_runs(methods: dict[str, gf.PACE], path: str, size: int, device: str) -> Iterator[dict[str, Any]]:
    data = load_npz(path)
    federations = [gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", random_state=0) for clients, alpha in CUTS]
    for name, method in methods.items():
        result = gf.run(method, federations[-1], device=device, keep_heads=False)
        bytes_ = (result.uplink_bytes + result.downlink_bytes) / len(result.clients)
        for (clients, alpha), federation in zip(CUTS, federations, strict=True):
            accuracy, estimate, error = personalised(method, federation, result.run.broadcast, device)
            yield {"name": name, "size": size, "clients": clients, "alpha": alpha, "pace": accuracy, "estimate": estimate,
                   "calibration_error": error, "shared": result.global_accuracy, "rounds": result.rounds, "bytes": bytes_,
                   "rounding": result.chosen.get("rounding", 0.0)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=("parts", "features", "precision"))
    parser.add_argument("--cifar")
    parser.add_argument("--shift")
    parser.add_argument("--tables")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", type=int, default=4096, help="Fourier features")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.group == "parts":
        rows = of_parts(iter([*bundled(1), *sited(given.tables, 1), *embedded(given.cifar, given.shift, 1)]), given.seeds)
    else:
        learned = MAP.format(given.size)
        methods = {name: gf.PACE(features=spec.format(given.size), regime="sketch") for name, spec in FEATURES.items()}
        if given.group == "precision":
            methods = {name: gf.PACE(features=learned, regime="sketch", precision=name) for name in PRECISIONS}
        rows = of_runs(methods, given.cifar, given.size, given.device)
    kept = []
    for row in rows:
        kept.append(row)
        print(json.dumps(row), flush=True)
    RESULTS.mkdir(exist_ok=True)
    keep(f"ablation_{given.group}", kept)


if __name__ == "__main__":
    main()
