"""Clients side by side in one stack: each gets the head that it gets alone, whoever shares the stack, on NumPy and torch."""

import importlib.util
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from gramfold.federation import Samples
from gramfold.methods import ClientData
from gramfold.methods.pace import PACE
from gramfold.methods.pace.candidates import Blend
from gramfold.numerics import buckets
from gramfold.sklearn_api.weights import weighted as with_weights

WITH_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


def clients_of(sizes: list[int], kind: str, weighted: bool, seed: int) -> tuple[dict[str, ClientData], gf.Result]:
    """Clients of these sizes, and the run that made their shared model; the last of them is in no sum."""
    rng = np.random.default_rng(seed)
    made = {}
    for k, n in enumerate(sizes):
        X = rng.standard_normal((n, 5))
        y = X @ rng.standard_normal((5, 2)) if kind == "values" else rng.integers(0, 2 if kind == "two" else 4, n)
        if kind == "turned":  # the classes lie elsewhere at each client, and a client's own places are likelier
            X = (3.0 * np.eye(5)[y] + 0.5 * X) @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
        made[str(k)] = Samples(X, y, rng.integers(0, 3, n) + 0.5 if weighted else None)
    X = rng.standard_normal((80, 5))
    targets = X[:, :2] + rng.standard_normal((80, 2)) if kind == "values" else np.arange(80) % (2 if kind == "two" else 4)
    if kind == "turned":
        X = 3.0 * np.eye(5)[targets] + 0.5 * X
    parts = {name: tuple(part) for name, part in made.items()} | {"others": (X, targets)}
    given = {name: part for name, part in parts.items() if name != str(len(sizes) - 1)}
    method = PACE(features="bias+linear+fourier:16", refinement="relu:12")
    federation = gf.Federation.from_clients(given, test_size=0.0, regression=kind == "values")
    if weighted:  # the sum has their weights, too: else a left-out sample would take more along than it has put in
        ones = {"others": np.ones(80)} | {name: made[name].weights for name in given if name != "others"}
        federation = with_weights(federation, ones)
    result = gf.run(method, federation)
    last = str(len(sizes) - 1)
    return {name: ClientData(name, part, contributed=name != last) for name, part in made.items()}, result


def same(a: gf.Head, b: gf.Head, rtol: float = 1e-9) -> None:
    probe = np.random.default_rng(5).standard_normal((20, 5))
    scores = [np.asarray(head.scores(probe)) for head in (a, b)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=rtol, atol=rtol * max(np.abs(scores[0]).max(), 1.0))
    assert a.chosen.keys() == b.chosen.keys()
    for name, value in a.chosen.items():
        assert value == b.chosen[name] or value == pytest.approx(b.chosen[name], rel=1e-6, abs=2e-4)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=6), st.sampled_from(["classes", "turned", "two", "values"]), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_a_clients_head_depends_on_nobody_who_shares_its_bucket(sizes, kind, weighted, seed):
    clients, result = clients_of(sizes, kind, weighted, seed)
    method, broadcast = result.run.method, result.run.broadcast
    usual, buckets.ON_CPU = buckets.ON_CPU, buckets.ON_CPU._replace(uneven=100.0)  # padding wherever it may be
    try:
        together = method.personalize_many(list(clients.values()), broadcast)
        backwards = method.personalize_many(list(clients.values())[::-1], broadcast)[::-1]
    finally:
        buckets.ON_CPU = usual
    for client, one, other in zip(clients.values(), together, backwards, strict=True):
        alone = method.personalize(client, broadcast)
        same(alone, one)
        same(alone, other)


@WITH_TORCH
@pytest.mark.parametrize("kind", ["classes", "turned", "two", "values"])
@pytest.mark.parametrize("weighted", [False, True])
def test_on_torch_the_same_stack_gives_the_same_heads(kind, weighted):
    import torch

    clients, result = clients_of([3, 12, 14, 14, 30, 33, 2, 9], kind, weighted, 0)
    method: Any = result.run.method
    moved = [
        ClientData(name, Samples(torch.as_tensor(one.train.inputs), torch.as_tensor(one.train.targets), one.train.weights),
                   contributed=one.contributed)
        for name, one in clients.items()
    ]  # fmt: skip
    broadcast = _on_torch(result.run.broadcast)
    heads = method.personalize_many(moved, broadcast)
    for client, head in zip(clients.values(), heads, strict=True):
        same(method.personalize(client, result.run.broadcast), head, rtol=1e-8)


def _on_torch(value: Any) -> Any:
    """A broadcast with tensors where it has float64 matrices, but for what is NumPy's on any device."""
    from dataclasses import fields, is_dataclass, replace

    import torch

    from gramfold.solve.discriminant import Discriminant

    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return torch.as_tensor(value)
    if not is_dataclass(value) or isinstance(value, Discriminant | type):
        return value
    return replace(value, **{field.name: _on_torch(getattr(value, field.name)) for field in fields(value)})


def test_a_run_makes_the_same_heads_however_its_clients_are_bucketed(monkeypatch):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 900)
    X = rng.standard_normal((900, 5)) + np.eye(3, 5)[y]
    federation = gf.Federation.split(X, y, clients=60, partition="dirichlet:0.5", test_size=0.2, random_state=0)
    runs = []
    for room in (buckets.Room(1, 1.0), buckets.Room(2**30, 2.0)):
        monkeypatch.setattr("gramfold.engines.inprocess.ON_CPU", room)
        monkeypatch.setattr(buckets, "ON_CPU", room)
        runs.append(gf.run(PACE(features="bias+linear"), federation))
    for name, head in runs[0].heads.items():
        same(head, runs[1].heads[name])


def test_clients_whose_classes_lie_elsewhere_leave_those_beside_them_alone():
    rng = np.random.default_rng(0)
    centres, parts = 1.5 * rng.standard_normal((4, 8)), {}
    for k in range(6):
        codes = rng.integers(0, 4, 100)
        turned = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        parts[str(k)] = ((centres[codes] + rng.standard_normal((100, 8))) @ turned, codes)
    method = PACE(features="bias+linear+fourier:256", refinement="relu:16", parts=(Blend(),))
    run = gf.run(method, gf.Federation.from_clients(parts, test_size=0.0, labels=range(4))).run
    clients = [ClientData(name, Samples(*part)) for name, part in parts.items()]
    alone = [run.method.personalize(client, run.broadcast) for client in clients]
    moved = ["centroids_worth" in head.chosen for head in alone]
    assert any(moved)
    assert not all(moved)
    for one, beside in zip(alone, run.method.personalize_many(clients, run.broadcast), strict=True):
        probe = parts["0"][0]
        np.testing.assert_allclose(one.scores(probe), beside.scores(probe), rtol=1e-9, atol=1e-9)
        assert one.chosen.keys() == beside.chosen.keys()
