"""Long runs: sampling, what is chosen by trial, history, and stopping and going on."""

import json
from dataclasses import replace

import numpy as np
import pytest

import gramfold as gf
from gradient_cases import ON_FEATURES, distance, quick
from gramfold.engines import checkpoint as checkpoints
from gramfold.engines.inprocess import run_inprocess
from gramfold.federation import Samples
from gramfold.report import render_page


def interrupted(monkeypatch, kind, after: int) -> None:
    """Let Ctrl-C arrive in the middle of a round, when some clients have already trained."""
    done = {"rounds": 0}
    original = kind.update

    def update(self, cohort, broadcast):
        if cohort.clients[0].name != "0" and len(cohort) == 1:
            return original(self, cohort, broadcast)
        if done["rounds"] == after:
            raise KeyboardInterrupt
        done["rounds"] += 1
        return original(self, cohort, broadcast)

    monkeypatch.setattr(kind, "update", update)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("kind", [k for k in ON_FEATURES if k is not gf.LocalSGD])
def test_a_run_stopped_by_ctrl_c_goes_on_to_the_same_bits(kind, batched, federation, tmp_path, monkeypatch):
    method = quick(kind, rounds=6, batched=batched)
    whole = gf.run(method, federation)
    with monkeypatch.context() as patch:
        interrupted(patch, kind, after=3)
        with pytest.raises(KeyboardInterrupt):
            gf.run(method, federation, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{method.name}.safetensors"]
    resumed = gf.run(method, federation, checkpoint=tmp_path)
    for name in whole.heads:
        assert distance(whole.heads[name], resumed.heads[name]) == 0
    assert [c.uplink_bytes for c in resumed.clients.values()] == [c.uplink_bytes for c in whole.clients.values()]
    assert [c.downlink_bytes for c in resumed.clients.values()] == [c.downlink_bytes for c in whole.clients.values()]
    assert [entry["round"] for entry in resumed.history] == list(range(1, 7))


def test_a_finished_checkpoint_gives_the_result_without_training_again(federation, tmp_path, monkeypatch):
    first = gf.run(quick(gf.Ditto), federation, checkpoint=tmp_path)
    monkeypatch.setattr(gf.Ditto, "update", lambda *_: pytest.fail("trained again"))
    assert gf.run(quick(gf.Ditto), federation, checkpoint=tmp_path).mean_accuracy == first.mean_accuracy


def test_checkpoints_are_written_while_a_run_goes_on(federation, tmp_path, monkeypatch):
    monkeypatch.setattr("gramfold.engines.inprocess.SAVE_EVERY_SECONDS", 0.0)
    saved = []
    original = checkpoints.Checkpoint.save
    monkeypatch.setattr(checkpoints.Checkpoint, "save", lambda self, run: (saved.append(run.state.round), original(self, run)))
    gf.run(quick(gf.FedAvg), federation, checkpoint=tmp_path)
    assert saved == [1, 2, 3, 4, 4]


def test_a_checkpoint_of_another_run_is_refused(federation, tmp_path):
    gf.run(quick(gf.FedAvg), federation, checkpoint=tmp_path)
    with pytest.raises(gf.GramfoldError, match="other data or settings"):
        gf.run(quick(gf.FedAvg, lr=0.2), federation, checkpoint=tmp_path)
    (tmp_path / "fedavg.safetensors").write_bytes(b"half a fi")
    with pytest.raises(gf.GramfoldError, match="not a gramfold message"):
        gf.run(quick(gf.FedAvg), federation, checkpoint=tmp_path)


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_checkpoint_does_not_go_on_with_other_samples(split, federation, tmp_path):
    gf.run(quick(gf.FedAvg), federation, checkpoint=tmp_path)

    def changed() -> Samples:
        inputs, targets = getattr(federation.clients[4], split)()
        return Samples(inputs + 1e-9, targets)

    clients = [replace(client, **{split: changed}) if client.name == "4" else client for client in federation]
    with pytest.raises(gf.GramfoldError, match="client '4' has other samples than when"):
        gf.run(quick(gf.FedAvg), replace(federation, clients=clients), checkpoint=tmp_path)


@pytest.mark.parametrize("method", [gf.AFL(), gf.PACE(features="linear"), gf.FedHiP()])
def test_analytic_methods_survive_a_checkpoint_folder(method, federation, tmp_path):
    plain = gf.run(method, federation)
    for _ in range(2):
        kept = gf.run(method, federation, checkpoint=tmp_path)
        assert kept.mean_accuracy == plain.mean_accuracy
        assert kept.downlink_bytes == plain.downlink_bytes


def test_a_resumed_run_keeps_what_was_chosen(federation, tmp_path, monkeypatch):
    method = gf.FedAvg(rounds=3, epochs=1, sweep_rounds=2)
    first = gf.run(method, federation, checkpoint=tmp_path)
    monkeypatch.setattr(gf.FedAvg, "tune", lambda *_: pytest.fail("swept again"))
    again = gf.run(method, federation, checkpoint=tmp_path)
    assert again.chosen == first.chosen
    assert again.mean_accuracy == first.mean_accuracy


def test_sampling_takes_the_asked_part_and_only_those_pay_for_it(federation):
    method = quick(gf.FedAvg, participation=0.3, rounds=5)
    names = [client.name for client in federation]
    drawn = [tuple(method.participants(r, names, seed=0)) for r in range(5)]
    assert {len(set(round_)) for round_ in drawn} == {2}
    assert len(set(drawn)) > 1, "each round draws anew"
    assert drawn == [tuple(method.participants(r, names, seed=0)) for r in range(5)]
    result = gf.run(method, federation)
    often = {name: sum(name in method.participants(r, names, federation.task.seed) for r in range(5)) for name in names}
    for name, client in result.clients.items():
        assert (client.uplink_bytes > 0) == (often[name] > 0)
    most, least = max(often, key=lambda name: often[name]), min(often, key=lambda name: often[name])
    assert result.clients[most].downlink_bytes > result.clients[least].downlink_bytes > 0


def test_what_is_none_is_swept_on_training_data_alone(federation):
    """Other test samples must not change the choice; what was chosen is in the result."""
    method = gf.FedProx(rounds=4, epochs=1, sweep_rounds=3)
    chosen = gf.run(method, federation).chosen
    assert set(chosen) == {"lr", "mu", "validation_accuracy"}
    assert chosen["lr"] in gf.FedProx.grids["lr"]
    assert chosen["mu"] in gf.FedProx.grids["mu"]

    def spoilt(client):
        X, y = client.train()
        return X, y, X[:1] * 0, y[:1]

    others = gf.Federation.from_clients(
        {c.name: spoilt(c) for c in federation}, labels=range(4), random_state=federation.task.seed
    )
    assert gf.run(method, others).chosen == chosen


def test_the_sweep_avoids_rates_that_diverge(federation):
    result = gf.run(gf.FedAvg(rounds=6, epochs=2, sweep_rounds=4), federation)
    assert result.mean_accuracy > 0.6
    assert result.parameters["lr"] is None


def test_validation_splits_never_hold_test_samples_and_cover_the_training_ones(federation):
    for client, trial in zip(federation, federation.validation(), strict=True):
        given, parts = client.train().inputs, [trial.train().inputs, trial.test().inputs]
        assert len(given) == sum(map(len, parts))
        np.testing.assert_array_equal(np.sort(given, axis=0), np.sort(np.concatenate(parts), axis=0))


def test_history_has_seconds_bytes_and_accuracy_and_ends_with_the_result(federation):
    result = gf.run(quick(gf.Ditto, rounds=5), federation, evaluate_every=2)
    history = result.to_dict()["history"]
    assert [entry["round"] for entry in history] == [1, 2, 3, 4, 5]
    assert [("mean_accuracy" in entry) for entry in history] == [False, True, False, True, True]
    assert history[-1]["mean_accuracy"] == result.mean_accuracy
    for key in ("seconds", "uplink_bytes", "downlink_bytes"):
        assert (np.diff([entry[key] for entry in history]) > 0).all()
    assert history[-1]["uplink_bytes"] == result.uplink_bytes
    json.dumps(result.to_dict(), allow_nan=False)
    # looking at test data on the way changes nothing
    assert gf.run(quick(gf.Ditto, rounds=5), federation).mean_accuracy == result.mean_accuracy


def test_a_run_can_end_when_its_history_is_good_enough(federation):
    ended = run_inprocess(quick(gf.FedAvg, rounds=5), federation, until=lambda history: len(history) == 2)
    assert [entry["round"] for entry in ended.history] == [1, 2]
    assert ended.mean_accuracy == gf.run(quick(gf.FedAvg, rounds=2), federation).mean_accuracy
    # what has no model before its last round goes on to it
    assert run_inprocess(gf.DeepAFL(depth=1), federation, until=lambda history: True).rounds == gf.DeepAFL(depth=1).rounds


def test_the_page_shows_curves_where_there_are_any(federation):
    results = [gf.run(method, federation, evaluate_every=1).to_dict() for method in (gf.AFL(), quick(gf.FedAvg))]
    content = {"gramfold": gf.__version__, "seed": 0, **federation.description, "methods": results}
    assert "Round by round" in render_page(content)
    assert "Round by round" not in render_page({**content, "methods": results[:1]})
