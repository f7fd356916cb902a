"""A result in a user's hands: short to look at, exact to update and forget, whole after a restart."""

import builtins
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold import wire
from gramfold.errors import InstallError, ResultError
from gramfold.results import folded
from gramfold.results.saved import RUN
from gramfold.wire import Packet
from strategies import Problem, problems, relative

SUMS = [gf.AFL, gf.LocalClasses, gf.FedHiP, gf.APFL, gf.PACE]
"""Methods of one round whose uploads are moments."""
MAPS = {"features": "raw+bias+linear"}
CLOSE = 1e-8
"""Subtraction leaves the rounding of the whole sum; the penalty keeps condition numbers below 1e6."""


def fixed(kind: type) -> gf.AFL:
    """The method with the same penalty before and after, so that what is compared is the sums."""
    return kind(**MAPS, penalty=1.0)


def training(problem: Problem, k: int) -> tuple[np.ndarray, np.ndarray]:
    return list(problem.parts())[k]


def scores(result: gf.Result, X: np.ndarray) -> np.ndarray:
    return result.global_head.scores(X)


@given(problems(samples=(12, 40), clients=(2, 5)), st.sampled_from(SUMS))
def test_forgetting_is_never_having_seen(problem, kind):
    everybody = problem.federation()
    result = gf.run(fixed(kind), everybody)
    forgotten = result.forget(*training(problem, 0), "0")
    rest = replace(everybody, clients=everybody.clients[1:])
    never = gf.run(fixed(kind), rest)
    assert relative(scores(forgotten, problem.X), scores(never, problem.X)) < CLOSE
    again = result.without("0", everybody)
    assert list(again.clients) == list(again.heads) == list(never.clients)
    for name in never.heads:
        finite = np.isfinite(never.heads[name].scores(problem.X))
        if kind in (gf.AFL, gf.LocalClasses):  # others choose from a grid, where a tie may fall either way
            both = [each.heads[name].scores(problem.X)[finite] for each in (again, never)]
            assert relative(*both) < CLOSE


@given(problems(samples=(12, 40), clients=(2, 5)), st.sampled_from(SUMS))
def test_adding_and_forgetting_again_changes_nothing(problem, kind):
    result = gf.run(fixed(kind), problem.federation())
    rng = np.random.default_rng(0)
    new = rng.standard_normal((7, problem.X.shape[1])), rng.integers(0, problem.classes, 7)
    there_and_back = result.update(add={"new": new}).forget(*new, "new")
    assert relative(scores(there_and_back, problem.X), scores(result, problem.X)) < CLOSE
    assert there_and_back.run.samples == result.run.samples


@given(problems(samples=(12, 40), clients=(2, 5)))
def test_adding_is_having_been_there(problem):
    everybody = problem.federation()
    few = gf.run(fixed(gf.PACE), replace(everybody, clients=everybody.clients[1:]))
    assert relative(scores(few.update(add={"0": training(problem, 0)}), problem.X), scores(gf.run(fixed(gf.PACE), everybody), problem.X)) < CLOSE  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("kind", SUMS)
def test_saved_loaded_and_forgotten_is_forgotten(kind, federation, blobs, tmp_path):
    result = gf.run(kind(), federation)
    result.save(tmp_path / "kept")
    loaded = gf.load_result(tmp_path / "kept")
    gone = federation.clients[2].train()
    here, there = (each.forget(gone.inputs, gone.targets, "2") for each in (result, loaded))
    # the same sums, through a file bit for bit; a learned map is computed anew, from arrays that lie elsewhere in memory
    assert relative(scores(there, blobs[0]), scores(here, blobs[0])) < (1e-12 if result.rounds == 1 else 1e-9)
    assert repr(loaded) == repr(result)
    for name, head in result.heads.items():
        np.testing.assert_array_equal(loaded.heads[name].predict(blobs[0]), head.predict(blobs[0]))
    # what was forgotten is gone from the folder too
    there.save(tmp_path / "kept")
    assert not list((tmp_path / "kept" / "heads").iterdir())
    assert gf.load_result(tmp_path / "kept").run.samples == here.run.samples
    assert "2" not in here.run.samples


def test_one_hospital_forgets_one_patient_and_makes_its_head_anew(federation, blobs):
    result = gf.run(gf.PACE(), federation)
    X, y = federation.clients[0].train()
    less = result.forget(X[:1], y[:1], "0")
    assert less.run.samples["0"] == len(X) - 1
    assert less.run.total.n == result.run.total.n - 1
    head = less.personalize(X[1:], y[1:], "0")
    assert head.score(blobs[0], blobs[1]) > 0.3
    with pytest.raises(gf.GramfoldError, match=f"{len(X) - 1} samples of client '0' are in this model and {len(X)} were given"):
        less.personalize(X, y, "0")
    swapped = result.update(forget={"0": (X, y)}, add={"0": (X, y)})
    assert relative(scores(swapped, blobs[0]), scores(result, blobs[0])) < CLOSE


@pytest.mark.parametrize("method", [gf.FedHiP(at="server"), gf.PACE(regime="sketch")], ids=repr)
def test_servers_that_answer_each_client_do_so_after_an_update_too(method, federation, blobs):
    result = gf.run(method, federation)
    same = result.refresh(federation)
    for name in result.heads:
        np.testing.assert_allclose(same.heads[name].scores(blobs[0]), result.heads[name].scores(blobs[0]), rtol=1e-6)
    assert same.mean_accuracy == result.mean_accuracy
    assert len(result.without("1", federation).heads) == 6


def test_what_cannot_be_forgotten_is_refused_in_a_line(federation, blobs):
    X, y = blobs
    result = gf.run(gf.AFL(), federation)
    with pytest.raises(gf.GramfoldError, match="cannot forget 300 samples of client 'stranger': 0 are in this model"):
        result.forget(X, y, "stranger")
    with pytest.raises(gf.GramfoldError, match="no client of the federation is called 'stranger'"):
        result.without("stranger", federation)
    raw, n = gf.run(gf.AFL(features="raw+linear"), federation), result.run.samples["0"]
    with pytest.raises(gf.GramfoldError, match=r"were never added|not part of these"):
        raw.forget(100 * X[:n], y[:n], "0")
    with pytest.raises(gf.GramfoldError, match=r"label 9 \(sample 1\), which is not among the 4 classes"):
        result.update(add={"new": (X[:3], np.array([0, 9, 1]))})
    with pytest.raises(gf.GramfoldError, match="5 numbers per sample"):
        result.update(add={"new": (X[:, :5], y)})
    alone = gf.run(gf.AFL(), gf.Federation.from_clients({"only": (X, y, X, y)}))
    with pytest.raises(ResultError):
        alone.forget(X, y, "only")
    with pytest.raises(gf.GramfoldError, match=r"deepafl has \d+ rounds"):
        gf.run(gf.DeepAFL(), federation).forget(X, y, "0")
    with pytest.raises(ResultError):
        gf.run(gf.Local(), federation).forget(X, y, "0")


def test_large_sums_are_kept_on_request_only(federation, monkeypatch):
    monkeypatch.setattr(folded, "KEPT_BYTES", 100)
    X, y = federation.clients[0].train()
    with pytest.raises(gf.GramfoldError, match="keep_total=True"):
        gf.run(gf.AFL(), federation).forget(X, y, "0")
    assert gf.run(gf.AFL(), federation, keep_total=True).forget(X, y, "0").run.total is not None
    monkeypatch.undo()
    assert gf.run(gf.AFL(), federation).run.total is not None
    assert gf.run(gf.AFL(), federation, keep_total=False).run.total is None


def test_a_newer_format_is_refused_with_a_clear_word(federation, tmp_path):
    gf.run(gf.AFL(), federation).save(tmp_path)
    packet = Packet.from_bytes(wire.read(tmp_path / RUN))
    packet.meta["fields"]["format"] = {"value": 99}
    wire.write_atomically(tmp_path / RUN, Packet(packet.arrays, packet.meta, packet.triangular).to_bytes())
    with pytest.raises(gf.GramfoldError, match=r"newer gramfold \(format 99, this reads 3\); upgrade"):
        gf.load_result(tmp_path)
    with pytest.raises(gf.GramfoldError, match="cannot read"):
        gf.load_result(tmp_path / "nowhere")


# --- evaluating ---


def test_evaluate_gives_the_figures_of_a_head_on_new_samples(federation, blobs):
    result = gf.run(gf.PACE(), federation)
    X, y = federation.clients[1].test()
    assert result.evaluate(X, y, client="1").accuracy == result.clients["1"].accuracy
    shared = result.evaluate(*blobs)
    assert shared.accuracy == pytest.approx(result.global_head.score(*blobs))
    assert (shared.n, shared.rmse) == (300, None)
    assert 0 <= shared.calibration_error < 0.5
    with pytest.raises(gf.GramfoldError, match="no head of a client 'x' here; there are: '0', '1', '2', '3', '4', "):
        result.evaluate(X, y, client="x")
    with pytest.raises(gf.GramfoldError, match=r"label 7 \(sample 0\), which is not among the 4 classes"):
        result.evaluate(X[:1], [7], client="1")
    with pytest.raises(gf.GramfoldError, match="local has no shared model; name a client"):
        gf.run(gf.Local(), federation).evaluate(X, y)


def test_a_regression_is_evaluated_by_its_errors_and_scored_by_r2(rng):
    from sklearn.metrics import r2_score

    X = rng.standard_normal((80, 4))
    Y = X @ rng.standard_normal((4, 2)) + 0.1 * rng.standard_normal((80, 2))
    result = gf.run(gf.AFL(features="raw+linear"), gf.Federation.split(X, Y, clients=4, partition="iid", regression=True))
    head, found = result.global_head, result.evaluate(X, Y)
    assert found.accuracy is None
    assert found.rmse == pytest.approx(np.sqrt(((head.predict(X) - Y) ** 2).sum() / len(X)))
    assert head.score(X, Y) == pytest.approx(r2_score(Y, head.predict(X)))
    flat = np.column_stack([Y[:, 0], np.ones(80)])
    assert head.score(X, flat) == pytest.approx(r2_score(flat, head.predict(X)))
    assert "RMSE" in repr(result)
    assert "<circle" in result._repr_html_()
    assert {"rmse", "shared_rmse"} <= set(result.rows()[0])


def test_a_head_refuses_targets_of_another_length(federation, blobs):
    head = gf.run(gf.AFL(), federation).global_head
    with pytest.raises(gf.GramfoldError, match="300 samples but 3 targets"):
        head.score(blobs[0], [0, 1, 2])


# --- to look at ---


@pytest.mark.parametrize("method", [gf.AFL(), gf.PACE(), gf.Local(), gf.DeepAFL()], ids=repr)
def test_what_is_printed_is_short(method, federation):
    result = gf.run(method, federation)
    text = repr(result)
    assert len(text) < 500
    assert f"{100 * result.mean_accuracy:.1f}" in text
    assert f"{method.name} on 7 clients" in text
    for thing in (federation, federation.clients[0], result.heads["0"], result.clients["0"], result.heads["0"].streams[0].map):
        assert len(repr(thing)) < 500
    assert repr(federation).startswith("Federation(7 clients, ")
    assert "dirichlet:0.5" in repr(federation)


def test_networks_are_short_too(federation):
    pytest.importorskip("torch", reason="the gradient methods need PyTorch")
    head = gf.run(gf.FedAvg(rounds=2, lr=0.1), federation).heads["0"]
    assert repr(head).startswith("Head(fedavg: 4 classes, 8 inputs, a network")


def test_the_notebook_view_is_safe_and_has_a_dot_for_each_client(blobs):
    X, y = blobs
    federation = gf.Federation.from_clients({"<b>north</b>": (X[:150], y[:150]), "south": (X[150:], y[150:])})
    result = gf.run(gf.AFL(), federation)
    page = result._repr_html_()
    assert page.count("<circle") == 2
    assert "<b>north" not in page
    assert "src=" not in page
    assert "http" not in page
    assert "<p>" in result.forget(*federation.clients[1].train(), "south")._repr_html_()


def test_the_table_has_a_line_for_each_client_up_to_a_length(federation):
    result = gf.run(gf.AFL(), federation)
    lines = result.table().splitlines()
    assert lines[0].split()[:3] == ["client", "train", "test"]
    assert len(lines) == 8
    assert result.table(2).endswith("and 5 more")


def test_a_frame_has_a_row_for_each_client(federation):
    pytest.importorskip("pandas", reason="frames need pandas")
    result = gf.run(gf.PACE(), federation)
    frame = result.to_frame()
    assert list(frame["client"]) == list(result.clients)
    assert frame["accuracy"].mean() == pytest.approx(result.mean_accuracy)
    assert {"train", "test", "shared_accuracy", "uplink_bytes", "chosen.penalty"} <= set(frame.columns)


def test_without_pandas_a_frame_says_what_to_install(federation, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InstallError):
        gf.run(gf.AFL(), federation).to_frame()


def test_dir_shows_what_is_public():
    assert set(dir(gf)) == set(gf.__all__)


def test_saving_removes_the_heads_of_the_run_saved_there_and_nothing_else(federation, tmp_path):
    theirs = tmp_path / "heads" / "model.safetensors"
    theirs.parent.mkdir()
    theirs.write_bytes(b"not ours")
    gf.run(gf.AFL(), federation).save(tmp_path)
    fewer = gf.Federation(federation.clients[:3], federation.task)
    gf.run(gf.AFL(), fewer).save(tmp_path)
    assert theirs.read_bytes() == b"not ours"
    assert len(list(theirs.parent.glob("*.safetensors"))) == 4


def test_everywhere_is_each_head_on_the_test_samples_of_all_clients(federation):
    result = gf.run(gf.FedHiP(alpha=100.0), federation)
    found = result.everywhere(federation)
    assert list(found) == list(result.heads)
    X, y = (np.concatenate([getattr(client.test(), part) for client in federation]) for part in ("inputs", "targets"))
    for name, head in result.heads.items():
        assert found[name] == pytest.approx((head.predict(X) == np.array(federation.task.labels)[y]).mean(), abs=1e-12)
    # one shared head is the same everywhere
    shared = gf.run(gf.AFL(), federation)
    assert set(shared.everywhere(federation).values()) == {shared.global_accuracy}


def test_everywhere_is_an_rmse_for_regression(rng):
    X = rng.standard_normal((80, 3))
    federation = gf.Federation.split(X, X @ [1.0, 2.0, 3.0], clients=4, partition="iid", regression=True)
    result = gf.run(gf.AFL(), federation)
    assert list(result.everywhere(federation).values()) == pytest.approx([result.global_rmse] * 4)
