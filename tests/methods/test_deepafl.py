"""DeepAFL: layers that are exactly those of pooled data, whatever the cut."""

import itertools

import numpy as np
import pytest

import gramfold as gf
from gramfold.methods.deepafl import DeepAFL
from gramfold.wire import Packet
from messages import delivered
from strategies import relative

SMALL = {"features": "gelu:20", "depth": 2, "penalty": 0.5}


def blobs(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    centres = np.random.default_rng(5).standard_normal((4, 6)) * 1.3
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    return centres[y] + rng.standard_normal((n, 6)), y


def cut(parts: int) -> gf.Federation:
    X, y = blobs()
    owner = np.random.default_rng(parts).integers(0, parts, len(y))
    return gf.Federation.from_clients(
        {str(k): (X[owner == k], y[owner == k]) for k in range(parts)}, test_size=0.0, labels=range(4)
    )


def centralised(X: np.ndarray, y: np.ndarray, federation: gf.Federation) -> tuple[list[np.ndarray], np.ndarray]:
    """The algorithm box on pooled data with plain NumPy: the layers by solving the full normal equations of each."""
    method = DeepAFL(**SMALL, personal=False)
    deep = method.begin(federation.task).map
    Phi, Y, omegas = deep(X), np.eye(4)[y], []
    for t in range(2):
        W = np.linalg.solve(Phi.T @ Phi + 0.5 * np.eye(20), Phi.T @ Y)
        F = deep.widen(Phi, t)
        R = Y - Phi @ W
        g = method.shrinkage * (F**2).sum() / len(F)
        # vec form of F'F Omega W W' + g Omega = F'R W'
        system = np.kron(F.T @ F, W @ W.T) + g * np.eye(400)
        omegas.append(np.linalg.solve(system, (F.T @ R @ W.T).ravel()).reshape(20, 20))
        Phi = Phi + F @ omegas[-1]
    return omegas, np.linalg.solve(Phi.T @ Phi + 0.5 * np.eye(20), Phi.T @ Y)


def test_folded_equals_centralised_layer_by_layer():
    federation = cut(5)
    result = gf.run(DeepAFL(**SMALL, personal=False), federation)
    omegas, weights = centralised(*blobs(), federation)
    stream = result.global_head.streams[0]
    for t, omega in enumerate(omegas):
        inner, outer = (stream.map.arrays[f"{which}.{t}"] for which in ("inner", "outer"))
        assert relative(inner @ outer.T, omega) < 1e-8
    assert relative(stream.weights, weights) < 1e-8


def test_cutting_the_data_differently_changes_nothing():
    X = blobs(30, seed=9)[0]
    scores = [gf.run(DeepAFL(**SMALL, personal=False), cut(parts)).global_head.scores(X) for parts in (1, 3, 8)]
    assert max(relative(scores[0], other) for other in scores[1:]) < 1e-8


def test_depth_zero_is_afl_on_its_features():
    federation, X = cut(4), blobs(30, seed=9)[0]
    deep = gf.run(DeepAFL(features="gelu:20", depth=0, penalty=0.5, personal=False), federation)
    flat = gf.run(gf.AFL(features="gelu:20", penalty=0.5), federation)
    np.testing.assert_allclose(deep.global_head.scores(X), flat.global_head.scores(X), rtol=1e-10)
    assert deep.rounds == 1


def test_every_layer_lowers_the_training_error():
    X, y = blobs()

    def error(depth: int) -> float:
        result = gf.run(DeepAFL(features="gelu:20", depth=depth, penalty=0.5, personal=False), cut(3))
        return float(((result.global_head.scores(X) - np.eye(4)[y]) ** 2).sum())

    errors = [error(depth) for depth in range(4)]
    assert all(later < earlier for earlier, later in itertools.pairwise(errors))


@pytest.mark.parametrize("regime", ["sum", "sketch"])
def test_clients_personalise_the_last_representation(regime, tmp_path):
    federation = gf.Federation.split(*blobs(600), clients=5, partition="dirichlet:0.3", random_state=0)
    shared = gf.run(DeepAFL(**SMALL, personal=False), federation)
    personal = gf.run(DeepAFL(**SMALL, regime=regime), federation)
    assert personal.mean_accuracy > shared.mean_accuracy
    head, X = personal.heads["0"], blobs(20, seed=3)[0]
    head.save(tmp_path / "deep.safetensors")
    np.testing.assert_array_equal(gf.load_head(tmp_path / "deep.safetensors").predict_proba(X), head.predict_proba(X))
    newcomer = personal.join(*blobs(80, seed=4))
    assert newcomer.predict(X).shape == (20,)


def test_a_singular_system_is_solved():
    """More features than samples, duplicated samples, a class with one sample: the published code's update breaks down there."""
    X, y = blobs(6)
    X, y = np.concatenate([X, X]), np.concatenate([y, y])
    federation = gf.Federation.from_clients({"a": (X[:6], y[:6]), "b": (X[6:], y[6:])}, test_size=0.0, labels=range(4))
    result = gf.run(DeepAFL(features="gelu:40", depth=3), federation)
    assert all(np.isfinite(head.scores(X)).all() for head in result.heads.values())


def test_layers_travel_once(monkeypatch):
    """A layer is sent in its round and counted on afterwards; over a wire the receiver fills it in from what came before."""
    packets = delivered(monkeypatch)
    gf.run(DeepAFL(**SMALL), cut(3))
    broadcast = packets["0"][-1]
    assert broadcast.known == {f"space.map.{name}.{t}" for name in ("inner", "outer") for t in (0, 1)}
    received = Packet.from_bytes(broadcast.to_bytes())
    assert len(broadcast.to_bytes()) == broadcast.wire_bytes
    assert not received.known & set(received.arrays)
    whole = received.completed({name: broadcast[name] for name in broadcast.known})
    assert set(whole.arrays) == set(broadcast.arrays)
    with pytest.raises(gf.GramfoldError, match=r"inner\.0"):
        received.completed({})


def test_wrong_parameters_are_refused():
    for wrong in ({"depth": -1}, {"shrinkage": 0.0}, {"activation": "magic"}):
        with pytest.raises(gf.GramfoldError):
            DeepAFL(**wrong)
