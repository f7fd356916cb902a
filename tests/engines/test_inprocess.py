"""A run: its figures are those of its heads, its bytes those that would travel, and its outcome does not depend on threads."""

import json
import threading
from collections import defaultdict

import numpy as np
import pytest

import gramfold as gf
from gramfold.engines import inprocess
from gramfold.methods import ANALYTIC
from messages import really_serialised
from strategies import relative

ALL = [*(method() for method in ANALYTIC), gf.FedHiP(at="server")]
PHASES = {"features", "local", "aggregate", "personalize", "evaluate"}


def with_workers(monkeypatch, count: int):
    monkeypatch.setattr(inprocess, "cpu_count", lambda: count)


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_figures_are_those_of_the_heads_on_each_clients_test_split(method, federation):
    result = gf.run(method, federation)
    assert list(result.clients) == list(result.heads) == [client.name for client in federation]
    accuracies, sizes, shared = [], [], []
    for client in federation:
        test, figures = client.test(), result.clients[client.name]
        accuracy = (result.heads[client.name].predict(test.inputs) == test.targets).mean()
        assert figures.accuracy == pytest.approx(accuracy)
        assert (figures.train, figures.test) == (client.train().n, test.n)
        accuracies.append(accuracy)
        sizes.append(test.n)
        if result.global_head is not None:
            shared.append((result.global_head.predict(test.inputs) == test.targets).sum())
    assert result.mean_accuracy == pytest.approx(np.mean(accuracies))
    assert result.mean_rmse is result.weighted_rmse is result.worst_decile_rmse is result.global_rmse is None
    assert result.weighted_accuracy == pytest.approx(np.average(accuracies, weights=sizes))
    assert result.worst_decile_accuracy == pytest.approx(min(accuracies))
    assert result.global_accuracy == (pytest.approx(sum(shared) / sum(sizes)) if shared else None)
    most = method.settled(federation.task).rounds
    assert result.method == method.name
    assert result.rounds == most or (0 < result.rounds < most and isinstance(method, gf.PACE)), "learning may end early"
    assert result.parameters == method.parameters()


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_seconds_and_json(method, federation):
    result = gf.run(method, federation)
    assert result.seconds.keys() == PHASES
    assert all(seconds >= 0 for seconds in result.seconds.values())
    assert result.seconds["personalize"] > 0
    text = json.dumps(result.to_dict(), allow_nan=False)
    entry = json.loads(text)
    assert entry["mean_accuracy"] == result.mean_accuracy
    assert [client["name"] for client in entry["clients"]] == list(result.clients)
    assert entry["uplink_bytes"] == sum(client["uplink_bytes"] for client in entry["clients"]) == result.uplink_bytes
    assert entry["downlink_bytes"] == result.downlink_bytes


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_bytes_are_those_of_the_messages_really_serialised(method, federation, monkeypatch):
    up, down = really_serialised(type(method), monkeypatch)
    result = gf.run(method, federation)
    for name, client in result.clients.items():
        assert client.uplink_bytes == up[name]
        assert client.downlink_bytes == down(name)
    assert (result.uplink_bytes > 0) == (method.rounds > 0)


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_the_outcome_does_not_depend_on_threads(method, blobs, federation, monkeypatch):
    results = []
    for workers in (1, 3, 3):
        with_workers(monkeypatch, workers)
        results.append(gf.run(method, federation))
    alone, three, again = results
    for name in alone.heads:
        scores = [result.heads[name].scores(blobs[0]) for result in results]
        finite = np.isfinite(scores[0])
        # one round: sums in another order, well-conditioned systems; a further round starts from the rounding of the one before
        assert relative(scores[1][finite], scores[0][finite]) < (1e-12 if three.rounds <= 1 else 1e-9)
        np.testing.assert_array_equal(scores[2], scores[1])
        assert three.clients[name].chosen == again.clients[name].chosen
    assert three.mean_accuracy == again.mean_accuracy == alone.mean_accuracy


def test_more_workers_than_clients_are_fine(blobs, monkeypatch):
    with_workers(monkeypatch, 16)
    federation = gf.Federation.split(*blobs, clients=2, partition="iid")
    assert len(gf.run(gf.FedHiP(), federation).heads) == 2


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_goes_one_way_and_reaches_the_end(federation, monkeypatch, workers):
    with_workers(monkeypatch, workers)
    reported = defaultdict(list)
    gf.run(gf.FedHiP(), federation, progress=lambda event: reported[event.phase].append((event.done, event.total)))
    assert list(reported) == ["local", "personalize"]
    for steps in reported.values():
        assert steps == [(i + 1, 7) for i in range(7)]


def test_heads_are_dropped_on_request(federation):
    kept, dropped = gf.run(gf.FedHiP(), federation), gf.run(gf.FedHiP(), federation, keep_heads=False)
    assert dropped.heads == {}
    assert dropped.global_head is not None
    assert dropped.mean_accuracy == kept.mean_accuracy


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_at_a_client_surfaces_and_stops_the_others(blobs, monkeypatch, workers):
    with_workers(monkeypatch, workers)
    X, y = blobs
    loaded = []

    def source(k):
        def load():
            loaded.append(k)
            if k == 3 and threading.current_thread() and len(loaded) > 1:
                raise OSError("disk of client 3 is gone")
            return X[k * 10 : k * 10 + 10], y[k * 10 : k * 10 + 10]

        return load

    federation = gf.Federation.from_clients({str(k): source(k) for k in range(30)}, labels=range(4))
    with pytest.raises(OSError, match="disk of client 3"):
        gf.run(gf.AFL(), federation)
    assert len(loaded) < 30
    assert threading.active_count() < 20  # the pool is gone


def test_what_is_wrong_with_a_clients_data_is_said_by_its_name(blobs):
    X, y = blobs
    federation = gf.Federation.from_clients({"good": (X, y), "narrow": (X[:, :5], y)})
    with pytest.raises(gf.GramfoldError, match="client 'narrow' has 5 numbers per sample, the others 8"):
        gf.run(gf.AFL(), federation)
    spoilt = np.where(np.arange(8) == 1, np.inf, X)
    federation = gf.Federation.from_clients({"good": (X, y), "spoilt": (spoilt, y)})
    with pytest.raises(gf.GramfoldError, match=r"client 'spoilt'.*NaN or inf"):
        gf.run(gf.AFL(), federation)


def test_clients_without_test_samples_have_heads_but_no_say(blobs):
    X, y = blobs
    data = {"tested": (X[:100], y[:100], X[200:], y[200:]), "untested": (X[100:200], y[100:200], X[:0], y[:0])}
    result = gf.run(gf.FedHiP(), gf.Federation.from_clients(data))
    assert result.clients["untested"].test == 0
    assert result.clients["untested"].accuracy is None
    assert result.heads["untested"].predict(X).shape == (300,)
    tested = result.clients["tested"].accuracy
    assert result.mean_accuracy == result.weighted_accuracy == result.worst_decile_accuracy == tested
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["clients"][1]["accuracy"] is None
    none = gf.run(gf.FedHiP(), gf.Federation.from_clients({"untested": data["untested"]}))
    assert none.mean_accuracy is none.weighted_accuracy is none.global_accuracy is none.worst_decile_accuracy is None


def test_a_regression_reports_errors(rng):
    X = rng.standard_normal((80, 4))
    Y = X @ rng.standard_normal((4, 2)) + 0.1 * rng.standard_normal((80, 2))
    federation = gf.Federation.split(X, Y, clients=4, partition="iid", regression=True)
    for method in ALL:
        result = gf.run(type(method)(features="raw+bias+linear"), federation)  # type: ignore[call-arg]
        entry = result.to_dict()
        assert "mean_accuracy" not in entry
        assert result.mean_accuracy is result.weighted_accuracy is result.worst_decile_accuracy is result.global_accuracy is None
        figures = [entry[f"{kind}_rmse"] for kind in ("mean", "weighted", "worst_decile", "global")]
        assert figures == [result.mean_rmse, result.weighted_rmse, result.worst_decile_rmse, result.global_rmse]
        if result.history:
            assert "mean_accuracy" not in result.history[-1]
            assert result.history[-1]["mean_rmse"] == result.mean_rmse
        assert entry["mean_rmse"] < 1.0  # without a model it is about 2.8
        assert entry["worst_decile_rmse"] == max(client["rmse"] for client in entry["clients"])
        client = federation.clients[0]
        error = result.heads["0"].predict(client.test().inputs) - client.test().targets
        assert result.clients["0"].rmse == pytest.approx(np.sqrt((error**2).sum() / len(error)))


def test_unknown_engines_are_refused(federation):
    with pytest.raises(gf.GramfoldError, match="unknown engine 'steam'"):
        gf.run(gf.AFL(), federation, engine="steam")
