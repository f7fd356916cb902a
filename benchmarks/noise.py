"""Wrong labels: a part of the training labels is flipped at a third of the clients; test labels are as they are.

    python -m benchmarks noise [--data FOLDER]

The digits among 20 clients (dirichlet:0.3), and, where there are CIFAR-100 features, 10,000 of them among 30; three
seeds. A flipped label
is any other class, each as likely. Means over the clients with wrong labels and over the others. The rival that minimises
cross-entropy is FedAvg with a linear head, its rate chosen on a held-out fifth of the training samples (wrong labels among them).
It, and AFL and GH-OFL, have the class prior, a temperature and a weight of the prior fitted there, too, as in `benchmarks.fair`.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import gramfold as gf
from benchmarks.bench import Bench, Cell, Given, Row, seeds
from benchmarks.evidence import PLAIN, Evidence
from gramfold.federation import load_npz

PARTS, EVERY, TEST = (0.0, 0.1, 0.3), 3, 0.25
"""Of labels that are flipped; every which client has flipped ones; and of samples that are for testing."""
RATES = (0.03, 0.1, 0.3, 1.0)
CLOSED: dict[str, Callable[[], Any]] = {
    "Local": gf.Local, "AFL": gf.AFL, "FedHiP": gf.FedHiP, "APFL": gf.APFL, "GH-OFL": gf.GHOFL, "PACE": gf.PACE,
}  # fmt: skip
HELPED = ("AFL", "GH-OFL", "FedAvg")
"""Those that get the prior."""


CLIENTS, ROUNDS = {"digits": 20, "CIFAR-100": 30}, 60
CIFAR = "cifar100-dinov2s.npz"


@lru_cache(1)
def data_set(given: Given, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        X, codes = load_digits(return_X_y=True)
        return X, codes
    data = load_npz(given.file(CIFAR))
    rows = np.random.default_rng(5).permutation(len(data.codes))[:10_000]
    return np.asarray(data.inputs[rows], np.float32), np.asarray(data.codes[rows])


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


def method(name: str, parts: gf.Federation, rounds: int) -> Any:
    return fedavg(parts, rounds) if name == "FedAvg" else CLOSED[name]()


def fitted(name: str, made: Any, parts: gf.Federation) -> np.ndarray:
    """A temperature and a weight of the prior from held-out samples, for those that get them."""
    if name not in HELPED:
        return PLAIN
    held = parts.validation()
    return Evidence(gf.run(made, held).heads, held).fitted()


def cells(given: Given) -> Iterator[Cell]:
    for seed in seeds(given, 3):
        for name in CLIENTS if given.file(CIFAR) else ("digits",):
            for part in PARTS:
                yield from (Cell((name, part, called, seed), (called.lower(),), 20) for called in (*CLOSED, "FedAvg"))


def measure(given: Given, name: str, part: float, called: str, seed: int) -> list[Row]:
    parts, _ = noisy(*data_set(given, name), CLIENTS[name], part, seed)
    parts = gf.Federation([client for client in parts if client.test().n], parts.task)
    wrong = [int(client.name) % EVERY == 0 for client in parts]
    made = method(called, parts, given.rounds or ROUNDS)
    weights = fitted(called, made, parts)
    evidence = Evidence(gf.run(made, parts).heads, parts)
    return [{"data": name, "seed": seed, "flipped": part, "method": called, **of_clients(evidence, weights, wrong)}]


BENCH = Bench("noise", cells, measure)
