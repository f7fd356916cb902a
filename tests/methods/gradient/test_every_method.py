"""What holds for every gradient method: it learns, it is reproducible, and clients side by side train as they would alone."""

import numpy as np
import pytest

import gramfold as gf
from gradient_cases import ON_FEATURES, client_data, distance, quick, weights
from gramfold.errors import NotFiniteError
from gramfold.wire import Packet
from gramfold.wire.record import Record

FLOAT32 = 2e-5
"""Weights of size one after some twenty steps in float32, summed in another order."""


@pytest.mark.parametrize("kind", ON_FEATURES)
class TestOnFeatures:
    def test_it_learns(self, kind, federation):
        result = gf.run(quick(kind), federation)
        assert result.mean_accuracy > 0.5, "four classes: chance is 0.25"

    @pytest.mark.parametrize("model", [None, "mlp:8"])
    def test_clients_side_by_side_train_as_they_would_alone(self, kind, model, federation):
        together, alone = (gf.run(quick(kind, batched=batched, model=model), federation) for batched in (True, False))
        for name in together.heads:
            assert distance(together.heads[name], alone.heads[name]) < FLOAT32

    def test_the_same_seed_gives_the_same_bits(self, kind, federation):
        first, second = (gf.run(quick(kind), federation) for _ in range(2))
        for name in first.heads:
            assert distance(first.heads[name], second.heads[name]) == 0

    def test_clients_never_sampled_get_a_model_too(self, kind, federation):
        result = gf.run(quick(kind, participation=0.2, rounds=0 if kind is gf.LocalSGD else 3), federation)
        silent = [client for client in result.clients.values() if client.uplink_bytes == 0]
        assert silent
        assert all(client.accuracy is not None for client in silent)

    def test_a_client_with_one_class_and_one_smaller_than_a_batch_are_fine(self, kind):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 5))
        y = np.arange(60) % 3
        parts = {"one sample": [0], "one class": np.flatnonzero(y == 1)[:9], "small": [3, 4, 5, 7], "rest": np.arange(20, 60)}
        federation = gf.Federation.from_clients(
            {name: (X[rows], y[rows], X[rows], y[rows]) for name, rows in parts.items()}, labels=range(3)
        )
        result = gf.run(quick(kind), federation)
        assert all(np.isfinite(result.heads[name].scores(X)).all() for name in parts)


@pytest.mark.parametrize("kind", ON_FEATURES)
def test_tensors_on_a_device_give_what_arrays_give(kind, federation):
    """As with a GPU, only that the device is the processor."""
    arrays, tensors = (gf.run(quick(kind), federation, device=device) for device in ("cpu", "cpu:0"))
    for name in arrays.heads:
        assert distance(arrays.heads[name], tensors.heads[name]) < FLOAT32


def test_a_diverged_network_is_scored_and_not_chosen(federation):
    result = gf.run(quick(gf.FedAvg, lr=1e30), federation)
    assert np.isfinite(result.heads["0"].scores(federation.clients[0].test().inputs)).all()
    assert result.calibration_error is not None


def test_a_candidate_that_diverges_ends_no_sweep(federation):
    method = quick(gf.FedDBE, lr=None, sweep_rounds=2)
    tried: list[float] = []

    def score(candidate, trial):
        tried.append(candidate.lr)
        if candidate.lr > 0.1:
            raise NotFiniteError("an upload must be finite")
        return candidate.lr

    assert method.tune(federation, score)[1]["lr"] == 0.1
    assert set(tried) == set(method.grids["lr"])


@pytest.mark.parametrize("kind", ON_FEATURES)
def test_it_runs_on_images_with_a_small_cnn(kind, pictures):
    alone = gf.run(quick(kind, model="cnn:4", rounds=0 if kind is gf.LocalSGD else 2), pictures)
    assert set(alone.heads) == {client.name for client in pictures}
    assert alone.mean_accuracy is not None


def test_cnn_clients_side_by_side_train_as_they_would_alone(pictures):
    together, alone = (gf.run(quick(gf.FedAvg, model="cnn:4", batched=batched), pictures) for batched in (True, False))
    assert distance(together.global_head, alone.global_head) < FLOAT32


def test_more_rounds_on_images_learn(pictures):
    assert gf.run(quick(gf.FedAvg, model="cnn:8", rounds=12), pictures).mean_accuracy > 0.6, "three classes: chance is 0.33"


def test_heads_give_probabilities_and_survive_a_file(federation, tmp_path):
    head = gf.run(quick(gf.FedAvg), federation).heads["0"]
    X = np.random.default_rng(0).standard_normal((7, 8))
    np.testing.assert_allclose(head.predict_proba(X).sum(1), 1, rtol=1e-6)
    head.save(tmp_path / "head.safetensors")
    again = gf.load_head(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(again.scores(X), head.scores(X))
    assert (again.method, again.labels, again.probabilistic) == ("fedavg", head.labels, True)
    assert again.predict(X[0]).shape == (1,)


@pytest.mark.parametrize("kind", ON_FEATURES)
def test_bytes_are_those_of_the_serialised_uploads(kind, federation):
    method = quick(kind, standardize=False)
    client = client_data(federation)[0]
    broadcast = method.begin(federation.task)
    if kind is gf.LocalSGD:
        return
    upload = method.local(client, broadcast)
    assert upload.wire_bytes == len(upload.pack().to_bytes())
    again = type(upload).unpack(upload.pack())
    assert again.wire_bytes == upload.wire_bytes


@pytest.mark.parametrize("settings", [{"optimizer": "adam", "lr": 0.01}, {"momentum": 0.9, "lr": 0.01}, {"weight_decay": 1e-3},
                                      {"schedule": "cosine"}, {"schedule": "decay:0.9"}])  # fmt: skip
def test_optimisers_and_schedules_learn_and_batch_alike(settings, federation):
    together, alone = (gf.run(quick(gf.FedAvg, batched=batched, **settings), federation) for batched in (True, False))
    assert together.mean_accuracy > 0.5
    assert distance(together.global_head, alone.global_head) < FLOAT32


REFUSALS = [
    ({"optimizer": "lion"}, "use sgd or adam"),
    ({"schedule": "decay:fast"}, "constant, cosine or decay"),
    ({"participation": 0.0}, "in \\(0, 1\\]"),
    ({"model": "transformer"}, "linear, mlp:WIDTH"),
    ({"model": "mlp:none"}, "cannot read model"),
    ({"model": "cnn:8"}, "for images, but this data holds features"),
    ({"model": "resnet18"}, "for images, but this data holds features"),
    ({"pretrained": "weights.safetensors"}, "for residual networks"),
    ({"rounds": 1}, "more than one"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSALS)
def test_what_cannot_be_done_is_refused_in_one_line(settings, message, federation):
    with pytest.raises(gf.GramfoldError, match=message):
        gf.run(gf.FedAvg(**{"lr": 0.1, **settings}), federation)


def test_regression_is_refused():
    X = np.random.default_rng(0).standard_normal((30, 3))
    federation = gf.Federation.split(X, X[:, 0], clients=2, partition="iid", regression=True)
    with pytest.raises(gf.GramfoldError, match="classifies"):
        gf.run(gf.FedAvg(lr=0.1), federation)


@pytest.mark.parametrize("kind", [kind for kind in ON_FEATURES if kind is not gf.LocalSGD])
def test_everything_that_passes_between_clients_and_server_survives_the_wire(kind, federation):
    """As any engine may carry it: uploads and broadcasts as bytes, clients one at a time."""
    method = quick(kind, batched=False)
    clients, broadcast = client_data(federation), method.begin(federation.task)
    for _ in range(method.rounds):
        total = None
        for client in clients:
            upload = method.local(client, broadcast)
            sent = type(upload).unpack(Packet.from_bytes(upload.pack().to_bytes()))
            total = sent if total is None else total.__iadd__(sent)
        broadcast = Record.unpack(Packet.from_bytes(method.aggregate(total, broadcast).pack().to_bytes()))
    expected = gf.run(method, federation)
    for client in clients:
        assert distance(method.personalize(client, broadcast), expected.heads[client.name]) < FLOAT32


RESIDUAL = [kind for kind in ON_FEATURES if kind.normalizes]


@pytest.mark.parametrize("kind", RESIDUAL)
def test_rivals_train_the_residual_network_that_heart_pfl_trains(kind, pictures):
    # few epochs: a network that normalises batches of two or three soon makes much of float32's rounding
    more = {"model": "resnet:4x1", "freeze": True, "adapters": True, "epochs": 1, "lr": 0.01}
    more["rounds"] = 0 if kind is gf.LocalSGD else 2
    if hasattr(kind, "finetune_epochs"):
        more["finetune_epochs"] = 1
    together, alone = (gf.run(quick(kind, batched=batched, **more), pictures) for batched in (True, False))
    for name in together.heads:
        assert distance(together.heads[name], alone.heads[name]) < 1e-3
        weights(together.heads[name], "base.layer1.0.adapter1.mix.weight")
        with pytest.raises(KeyError):  # frozen weights do not travel
            weights(together.heads[name], "base.conv1.weight")


@pytest.mark.parametrize("kind", [kind for kind in ON_FEATURES if not kind.normalizes])
def test_methods_that_cannot_train_running_statistics_refuse_a_residual_network(kind, pictures):
    with pytest.raises(gf.GramfoldError, match="normalises by batch; use cnn"):
        gf.run(quick(kind, model="resnet:4x1"), pictures)
