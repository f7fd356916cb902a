"""What each part of PACE brings: its candidates and priors, its learned features, and the digits that its numbers travel in.

    python -m benchmarks.ablation parts [--cifar FILE.npz] [--shift FILE.npz] [--tables FOLDER] [--seeds 3] [--only NAME,...]
    python -m benchmarks.ablation features|precision --cifar FILE.npz [--size 4096] [--device cuda]

One part is taken away, or one prior changed, at a time: a value, `replace(method, parts=..., priors=...)`, or another one of
`Sizes` or of learning's `Rules`. `parts` runs on cells of `benchmarks.frozen`: what concerns clients alone is changed after the
shared solution is there, the same for all; what concerns it is run anew. `features` and `precision` are of 100 clients, Dirichlet
0.1, 0.5 and 1.0, one seed. Writes benchmarks/results/ablation_PART.json; `python -m benchmarks.tables` makes docs/ablation.md.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

import gramfold as gf
from benchmarks.frozen import Cell, bundled, embedded, federated, sited
from benchmarks.pace import personalised
from benchmarks.timing import RESULTS, keep
from gramfold.federation import load_npz
from gramfold.methods import ClientData
from gramfold.methods.learning.rules import RULES
from gramfold.methods.pace.priors import PRIORS
from gramfold.methods.pace.sizes import SIZES

MAP = "bias+linear+fourier:{}@learned"
CUTS = [(100, 0.1), (100, 0.5), (100, 1.0)]
TOLD = (
    ("digits", "10 dirichlet:0.1"), ("digits", "50 quantity:0.5"), ("ten writers", "1 each"), ("ten writers", "4 each"),
    ("breast cancer", "20 dirichlet:1"), ("heart", "hospitals"), ("Parkinson", "patients"), ("Friedman 1", "sites"),
    ("a straight line", "4 iid"),
    ("eight domains", "1 each"), ("eight domains", "8 each"), ("eight domains, default", "4 each"),
    ("CIFAR-100", "100 dirichlet:0.1"),
)  # fmt: skip
"""Small clients and large, skew and shift, tables and embeddings."""
Change = Callable[[gf.PACE], gf.PACE]


def without(name: str) -> Change:
    return lambda method: replace(method, parts=tuple(part for part in method.parts if part.name != name))


def prior(**changed: float) -> Change:
    return lambda method: replace(method, priors=replace(PRIORS, **changed))


def with_one_trial(part: Any) -> Any:
    one = ((1.0, 0.3),)
    return replace(part, of_classes=one, of_two_classes=one) if part.name == "residual" else part


CHANGES: dict[str, Change] = {
    "PACE": lambda method: method,
    "without blends": without("blend"),
    "without residuals": without("residual"),
    "without models of one's own": without("own"),
    "without kernels in the personal metric": without("personal"),
    "stay alone": lambda method: replace(method, parts=()),
    "one residual of classes": lambda method: replace(method, parts=tuple(map(with_one_trial, method.parts))),
    "all as likely before": lambda method: replace(method, parts=tuple(replace(part, before=1.0) for part in method.parts)),
    "residuals of ReLU features everywhere": lambda method: replace(method, refinement="relu:1024"),
    "few = 25": prior(few=25.0),
    "few = 100": prior(few=100.0),
    "a step worth 3": prior(step=3.0),
    "a step worth 12": prior(step=12.0),
    "half the cosine": prior(cosine=0.75),
    "twice the cosine": prior(cosine=3.0),
    "a cosine that is not bent": prior(typical_cosine=0.0),
    "a prior of 5 samples": prior(evidence_samples=5.0),
    "a prior of 80 samples": prior(evidence_samples=80.0),
}
"""What concerns clients alone."""
RUNS: dict[str, tuple[Change, str, Any]] = {
    "without own parts": (lambda method: replace(method, own_parts=False), "", None),
    "without groups": (lambda method: replace(method, groups=False), "", None),
    "without a personal metric": (lambda method: replace(method, personal=False), "", None),
    "without a learned metric": (lambda method: replace(method, learn=False), "", None),
    "curves no dearer than lines": (CHANGES["PACE"], "pace.server.SIZES", replace(SIZES, bent=0)),
    "without features of two columns": (CHANGES["PACE"], "learning.server.RULES", replace(RULES, pairs=0.0)),
    "gradients of any length": (CHANGES["PACE"], "learning.server.RULES", replace(RULES, longest=1e9)),
}
"""What concerns the shared solution, on cells where PACE chooses: a change of the method, or another value in one's place."""
FEATURES = {
    "without Fourier features": "bias+linear",
    "without a metric, frequencies of scale 1": "bias+linear+fourier:{}",
    "without a metric, frequencies of scale 0.5": "bias+linear+fourier:{}:0.5",
    "metric of the linear head (PACE)": MAP,
    "one pass of gradients": MAP + ":1",
    "two passes of gradients": MAP + ":2",
}
PRECISIONS = ("float64", "float32", "float16", "int8")


def off(head: gf.Head, test: tuple[Any, Any], regression: bool) -> tuple[float, float]:
    """A root mean square error; or accuracy, and log loss."""
    X, y = test
    if regression:
        return float(np.sqrt(np.mean((head.predict(X) - y) ** 2))), 0.0
    likely = head.predict_proba(X)
    lost = float(-np.log(likely[np.arange(len(y)), y].clip(1e-12)).mean())
    return 100 * float((likely.argmax(1) == y).mean()), lost


def changed(cell: Cell, seed: int) -> Iterator[tuple[str, dict[str, gf.Head]]]:
    """Every change's heads on one cut."""
    federation, _ = federated(cell, seed)
    run = gf.run(cell.method, federation, keep_heads=False).run
    assert isinstance(run.method, gf.PACE)
    clients = [ClientData(client.name, client.train(), contributed=True) for client in federation]
    names = [client.name for client in clients]
    for name, change in CHANGES.items():
        method, broadcast = change(run.method), run.broadcast
        if method.refinement != run.method.refinement:
            broadcast = replace(broadcast, refinement=method.start(broadcast.space, run.task).refinement)
        yield name, dict(zip(names, method.personalize_many(clients, broadcast), strict=True))
    for name, (change, place, value) in RUNS.items() if cell.method == gf.PACE() else ():
        with patch(f"gramfold.methods.{place}", value) if place else nullcontext():
            yield name, gf.run(change(gf.PACE()), federation).heads


def of_parts(cells: Iterator[Cell], seeds: int, only: str | None) -> Iterator[dict[str, Any]]:
    for cell in cells:
        if (cell.data, cell.cut) not in TOLD or (only is not None and cell.data not in only.split(",")):
            continue
        for seed in range(seeds):
            _, clients = federated(cell, seed)
            for name, heads in changed(cell, seed):
                found = [off(heads[client], data[2:], cell.regression) for client, data in clients.items()]
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
    parser.add_argument("--only")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", type=int, default=4096, help="Fourier features")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.group == "parts":
        rows = of_parts(
            iter([*bundled(1), *sited(given.tables, 1), *embedded(given.cifar, given.shift, 1)]), given.seeds, given.only
        )
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
