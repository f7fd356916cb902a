"""Every method under one protocol: as it is, and with the class prior, a temperature and a weight of the prior.

    python -m benchmarks.fair FILE.npz [--device cuda] [--jobs 12] [--rounds 200] [--seeds 2]

CIFAR-100 features, six cells, and two kinds of test split: *shares*, test images cut in exactly the class shares of each client's
training images, and *fresh*, each client's images split at random. What is fitted (a gradient method's learning rate, the
temperature of a method's log-probabilities and the weight of the class prior beside them) is fitted on a fifth of every
client's training images, held out from a run of its own, once for each cell. Every cell of the result has the two
accuracies, so that what the prior brings a rival can be read off. A cell that is done is not run again.
"""

import argparse
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import gramfold as gf
from benchmarks.cells import cell_path, run_cells
from benchmarks.pace import CELLS
from benchmarks.timing import write
from gramfold.errors import NotFiniteError
from gramfold.federation import load_npz
from gramfold.federation.partition import Partition
from gramfold.methods import make_method
from gramfold.solve.class_prior import ClassPrior

RIVALS = {"fedavg": {}, "fedavg-mlp": {"model": "mlp:256"}, "feddbe": {"kappa": 50.0}}
"""FedDBE trains an `mlp:256`, so FedAvg has one, too, beside its linear head."""
CLOSED = ("local", "afl", "localclasses", "fedhip", "apfl", "pace-linear", "pace")
SPLITS = ("shares", "fresh")
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
KAPPAS = (5.0, 500.0)
"""FedDBE's, beside 50."""
SWEEP_ROUNDS = 20
TEST = 1 / 6


def federation(path: str, split: str, clients: int, alpha: float, seed: int) -> gf.Federation:
    data = load_npz(path)
    if split == "shares":
        return gf.Federation.from_dataset(data, clients, f"dirichlet:{alpha}", seed=seed)
    rng = np.random.default_rng([seed, clients, int(10 * alpha)])
    owners = Partition.parse(f"dirichlet:{alpha}").cut(data.codes, clients, rng, min_size=20)
    parts = {}
    for k in range(clients):
        mine = rng.permutation(np.flatnonzero(owners == k))
        test, train = np.split(mine, [max(1, round(len(mine) * TEST))])
        parts[str(k)] = tuple(itertools.chain.from_iterable((data.inputs[rows], data.codes[rows]) for rows in (train, test)))
    return gf.Federation.from_clients(parts, seed=seed, labels=range(data.outputs))


def rival(name: str, rounds: int, **given: Any) -> Any:
    return make_method(name.removesuffix("-mlp"), rounds=rounds, **{**RIVALS[name], **given})


def closed(name: str) -> Any:
    return gf.PACE(features="bias+linear") if name == "pace-linear" else make_method(name)


class Evidence:
    """What a run's heads say of all clients' test samples: log-probabilities, the class priors of their clients, who is whose."""

    def __init__(self, made: Any, parts: gf.Federation, device: str) -> None:
        heads = gf.run(made, parts, device=device, keep_total=False).heads
        trains = {client.name: np.asarray(client.train().targets) for client in parts}
        pooled = np.bincount(np.concatenate(list(trains.values())), minlength=parts.task.outputs)
        logs, priors, codes, owners = [], [], [], []
        for client in parts:
            test = client.test()
            if not test.n:
                continue
            own = np.bincount(trains[client.name], minlength=parts.task.outputs)
            chances = heads[client.name].predict_proba(np.asarray(test.inputs, np.float32))
            logs.append(np.log(np.maximum(chances, 1e-30)))
            prior = ClassPrior.of(own[None], pooled).log_shares[0] - np.log(np.maximum(pooled, 0.5) / pooled.sum())
            priors.append(np.broadcast_to(prior, logs[-1].shape))
            codes.append(np.asarray(test.targets))
            owners.append(np.full(test.n, len(owners)))
        self.logs, self.priors, self.codes, self.owners = map(np.concatenate, (logs, priors, codes, owners))

    def loss(self, weights: np.ndarray) -> float:
        logits = weights[0] * self.logs + weights[1] * self.priors
        top = logits.max(1)
        normal = top + np.log(np.exp(logits - top[:, None]).sum(1))
        return float((normal - logits[np.arange(len(logits)), self.codes]).mean())

    def fitted(self) -> np.ndarray:
        """The most likely temperature (as a factor) and weight of the prior."""
        found = minimize(self.loss, np.array([1.0, 0.5]), method="Nelder-Mead", options={"maxiter": 120, "xatol": 1e-3})
        return np.asarray(found.x)

    def accuracy(self, weights: np.ndarray) -> float:
        """The mean over clients."""
        right = (weights[0] * self.logs + weights[1] * self.priors).argmax(1) == self.codes
        return float((np.bincount(self.owners, right) / np.bincount(self.owners)).mean())


PLAIN = np.array([1.0, 0.0])


def run_one(given: argparse.Namespace) -> None:
    split, clients, alpha, name = given.cell.split("/")
    cut = partial(federation, given.path, split, int(clients), float(alpha))
    held_out, swept = cut(0).validation(), {}

    def tried(**given_values: float) -> float:
        try:
            evidence = Evidence(rival(name, SWEEP_ROUNDS, **given_values), held_out, given.device)
            found = evidence.accuracy(evidence.fitted())
        except NotFiniteError:  # it diverged
            found = 0.0
        swept[json.dumps(given_values)] = found
        return found

    if name in RIVALS:
        best = {"lr": max(RATES, key=lambda rate: tried(lr=rate))}
        if name == "feddbe":
            asked = swept[json.dumps(best)]
            kappas = {50.0: asked} | {kappa: tried(kappa=kappa, **best) for kappa in KAPPAS}
            best["kappa"] = max(kappas, key=lambda kappa: kappas[kappa])
        made = rival(name, given.rounds, **best)
    else:
        made = closed(name)
    weights = Evidence(made, held_out, given.device).fitted()
    seeds = [Evidence(made, cut(seed), given.device) for seed in range(given.seeds)]
    figures = {
        "cell": given.cell, "method": name, "swept": swept, "temperature": 1 / float(weights[0]), "prior": float(weights[1]),
        "plain": [one.accuracy(PLAIN) for one in seeds], "with_prior": [one.accuracy(weights) for one in seeds],
        "log_loss": [one.loss(weights) for one in seeds], "plain_log_loss": [one.loss(PLAIN) for one in seeds],
    }  # fmt: skip
    cell_path(Path(given.out), given.cell).write_text(json.dumps(figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--splits", default=",".join(SPLITS))
    parser.add_argument("--methods", default=",".join((*RIVALS, *CLOSED)))
    parser.add_argument("--out", default="build/fair")
    parser.add_argument("--cell", default="", help="run this one cell (used by the benchmark itself)")
    given = parser.parse_args()
    if given.cell:
        return run_one(given)
    cells = [
        f"{split}/{clients}/{alpha}/{name}"
        for split in given.splits.split(",") for name in given.methods.split(",") for clients, alpha in CELLS
    ]  # fmt: skip
    passed = [given.path]
    for key in ("device", "rounds", "seeds", "out"):
        passed += [f"--{key}", str(getattr(given, key))]
    rows = run_cells("benchmarks.fair", cells, passed, Path(given.out), given.jobs)
    return write("fair", {"rounds": given.rounds, "seeds": given.seeds, "rows": rows})


if __name__ == "__main__":
    main()
