"""Wrong labels: a part of the training labels is flipped at a third of the clients; test labels are as they are.

    python -m benchmarks.noise [FILE.npz] [--seeds 3] [--rounds 60]

The digits among 20 clients (dirichlet:0.3), and, where a file of features is given, 10,000 of its rows among 30. A flipped label
is any other class, each as likely. Means over the clients with wrong labels and over the others. The rival that minimises
cross-entropy is FedAvg with a linear head, its rate chosen on a held-out fifth of the training samples (wrong labels among them).
It, and AFL and GH-OFL, have the class prior, a temperature and a weight of the prior fitted there, too, as in `benchmarks.fair`.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import gramfold as gf
from benchmarks.carried import load
from benchmarks.evidence import PLAIN, Evidence
from benchmarks.provenance import RESULTS, stamp

PARTS, EVERY, TEST = (0.0, 0.1, 0.3), 3, 0.25
"""Of labels that are flipped; every which client has flipped ones; and of samples that are for testing."""
RATES = (0.03, 0.1, 0.3, 1.0)
CLOSED: dict[str, Callable[[], Any]] = {
    "Local": gf.Local, "AFL": gf.AFL, "FedHiP": gf.FedHiP, "APFL": gf.APFL, "GH-OFL": gf.GHOFL, "PACE": gf.PACE,
}  # fmt: skip
HELPED = ("AFL", "GH-OFL", "FedAvg")
"""Those that get the prior."""


def data_sets(file: str | None) -> Iterator[tuple[str, np.ndarray, np.ndarray, int]]:
    yield "digits", *load_digits(return_X_y=True), 20
    if file is not None:
        data = load(file)
        rows = np.random.default_rng(5).permutation(len(data.codes))[:10_000]
        yield "CIFAR-100", np.asarray(data.inputs[rows], np.float32), np.asarray(data.codes[rows]), 30


def noisy(X: np.ndarray, codes: np.ndarray, clients: int, part: float, seed: int) -> tuple[gf.Federation, list[bool]]:
    """The federation, and which clients have wrong labels."""
    clean = gf.Federation.split(X, codes, clients=clients, partition="dirichlet:0.3", test_size=TEST, random_state=seed)
    rng, parts, classes = np.random.default_rng([seed, 3]), {}, int(codes.max()) + 1
    wrong = [k % EVERY == 0 for k in range(len(clean))]
    for flips, client in zip(wrong, clean, strict=True):
        train, test = client.train(), client.test()
        labels = np.array(train.targets)
        if flips:
            chosen = rng.random(len(labels)) < part
            labels[chosen] = (labels[chosen] + rng.integers(1, classes, int(chosen.sum()))) % classes
        parts[client.name] = (train.inputs, labels, test.inputs, np.asarray(test.targets))
    return gf.Federation.from_clients(parts, labels=range(classes), random_state=seed), wrong


def fedavg(parts: gf.Federation, rounds: int) -> Any:
    """FedAvg with the rate that is best on held-out samples."""
    held, scores = parts.validation(), {}
    for rate in RATES:
        evidence = Evidence(gf.run(gf.FedAvg(rounds=max(rounds // 3, 2), lr=rate), held).heads, held)
        scores[rate] = evidence.accuracy(evidence.fitted())
    return gf.FedAvg(rounds=rounds, lr=max(scores, key=lambda rate: scores[rate]))


def of_clients(evidence: Evidence, weights: np.ndarray, wrong: list[bool]) -> dict[str, float]:
    right = (weights[0] * evidence.logs + weights[1] * evidence.priors).argmax(1) == evidence.codes
    each = np.bincount(evidence.owners, right) / np.bincount(evidence.owners)
    marked = np.array(wrong)
    return {"wrong": float(each[marked].mean()), "others": float(each[~marked].mean()), "log_loss": evidence.loss(weights)}


def measured(name: str, X: np.ndarray, codes: np.ndarray, clients: int, seed: int, rounds: int) -> Iterator[dict[str, Any]]:
    for part in PARTS:
        parts, wrong = noisy(X, codes, clients, part, seed)
        parts = gf.Federation([client for client in parts if client.test().n], parts.task)
        wrong = [int(client.name) % EVERY == 0 for client in parts]
        methods: dict[str, Any] = {**{key: made() for key, made in CLOSED.items()}, "FedAvg": fedavg(parts, rounds)}
        for called, method in methods.items():
            weights = PLAIN
            if called in HELPED:
                held = parts.validation()
                weights = Evidence(gf.run(method, held).heads, held).fitted()
            evidence = Evidence(gf.run(method, parts).heads, parts)
            row = {"data": name, "seed": seed, "flipped": part, "method": called, **of_clients(evidence, weights, wrong)}
            print(json.dumps(row), flush=True)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, X, codes, clients in data_sets(given.file):
        for seed in range(given.seeds):
            rows += measured(name, X, codes, clients, seed, given.rounds)
            (RESULTS / "noise.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    stamp("noise")


if __name__ == "__main__":
    main()
