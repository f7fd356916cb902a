"""Folding is addition, so a run can be taken up again: whoever comes later is added, whoever changes is replaced, exactly."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message
from hypothesis import given, settings
from hypothesis import strategies as st

import gramfold as gf
from flower_cases import PACE, Sites, all_answered, held_back, write_site
from gradient_cases import quick
from gramfold import wire
from gramfold.engines.flower import records
from gramfold.engines.flower.local_grid import LocalGrid, run_locally
from gramfold.errors import GramfoldError
from gramfold.federation import Client, Samples
from gramfold.remote.ledger import Ledger, SentUpload
from strategies import distance, problems

LATE = "2"
EXACT = [gf.AFL(), PACE, gf.FedHiP(at="server")]


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def uplink(result: dict) -> dict[str, int]:
    return {client["name"]: client["uplink_bytes"] for client in result["methods"][0]["clients"]}


@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_a_site_that_comes_later_is_added_and_all_heads_follow(method, sites, federation):
    first = sites.run(method, {name: sites.node(name) for name in sites.names if name != LATE})
    assert LATE not in first["sites"]["answered"]
    assert sites.distance(method, gf.run(method, sites.without(LATE))) < 1e-9
    second = sites.run(method)
    assert all_answered(second, sites)
    assert {name for name, sent in uplink(second).items() if sent} == {LATE}  # the others are in the sum already
    assert (first["sites"]["folded"], second["sites"]["folded"]) == ([n for n in sites.names if n != LATE], sites.names)
    assert sites.distance(method, gf.run(method, federation)) < 1e-9


def test_an_upload_after_the_deadline_is_folded_and_counts_in_the_next_run(sites, federation):
    evaluating, folded = threading.Event(), threading.Event()

    def late(message: Message) -> Message | None:
        if not evaluating.is_set():
            return None
        reply = sites.node(LATE)(message)
        folded.set()
        return reply

    def waits(message: Message) -> Message | None:
        """Makes its head only once the late upload is there."""
        if message.metadata.message_type == "query":
            return sites.node("0")(message)
        evaluating.set()
        return last(message)

    last = held_back(sites.node("0"), folded)

    nodes = {name: sites.node(name) for name in sites.names} | {LATE: late, "0": waits}
    first = sites.run(PACE, nodes, **{"deadline-seconds": 5.0})
    assert first["sites"]["late"] == [LATE]
    assert "counts in the next run" in first["sites"]["excluded"][LATE]
    assert sites.distance(PACE, gf.run(PACE, sites.without(LATE))) < 1e-9
    second = sites.run(PACE)
    assert not any(uplink(second).values())
    assert sites.distance(PACE, gf.run(PACE, federation)) < 1e-9


@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_new_data_at_a_site_replaces_the_old(method, sites, federation):
    sites.run(method)
    rng = np.random.default_rng(1)
    old = next(client for client in federation if client.name == LATE)
    X, y = rng.standard_normal((40, 8)), rng.integers(0, 4, 40)
    grown = Client(LATE, lambda: Samples(*map(np.concatenate, zip(old.train(), (X, y), strict=True))), old.test)
    write_site(sites.data(LATE), grown)
    second = sites.run(method)
    assert {name for name, sent in uplink(second).items() if sent} == {LATE}
    now = gf.Federation([grown if client.name == LATE else client for client in federation], federation.task)
    assert sites.distance(method, gf.run(method, now)) < 1e-9
    # and back again: what was replaced once can be replaced twice
    write_site(sites.data(LATE), old)
    sites.run(method)
    assert sites.distance(method, gf.run(method, federation)) < 1e-8


def test_a_site_whose_disk_is_gone_is_not_counted_twice(sites, federation):
    sites.run(PACE)
    shutil.rmtree(sites.config[LATE]["state-dir"])
    second = sites.run(PACE)
    assert not any(uplink(second).values())
    assert sites.distance(PACE, gf.run(PACE, federation)) < 1e-9


def test_new_data_without_the_old_upload_cannot_be_folded_and_says_so(sites, federation):
    sites.run(gf.AFL())
    shutil.rmtree(sites.config[LATE]["state-dir"])
    other = next(client for client in federation if client.name == "1")
    write_site(sites.data(LATE), other)
    result = sites.run(gf.AFL())
    assert "start over in another folder" in result["sites"]["excluded"][LATE]
    for name in sites.names:
        if name != LATE:  # the rest still have what was folded
            assert name in result["sites"]["answered"]


def test_a_run_that_breaks_off_between_phases_counts_nothing_twice(sites, federation):
    class Broken(LocalGrid):
        def push_messages(self, messages):
            messages = list(messages)
            if messages[0].metadata.message_type == "evaluate":
                raise ConnectionError("the SuperLink is gone")
            return super().push_messages(messages)

    with pytest.raises(ConnectionError):
        run_locally(Broken([sites.node(name) for name in sites.names], sites.names), sites.run_config(PACE))
    second = sites.run(PACE)
    assert not any(uplink(second).values())
    assert sites.distance(PACE, gf.run(PACE, federation)) < 1e-9


def test_a_site_is_told_of_its_own_upload_only(sites):
    sites.run(gf.AFL())
    grid = sites.grid()
    run_locally(grid, sites.run_config(gf.AFL()))
    listed = [
        records.read(message.content).header["counted"] for message in grid.sent if message.metadata.message_type == "query"
    ]
    assert [len(ids) for ids in listed] == [1] * 7
    assert len({ids[0] for ids in listed}) == 7


def test_nodes_without_a_registered_name_count_once_as_well(sites, federation):
    for _ in range(2):
        run_locally(LocalGrid([sites.node(name) for name in sites.names]), sites.run_config(gf.AFL()))
    assert not any(uplink(sites.result()).values())
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), federation)) < 1e-9


def test_a_node_that_connects_between_rounds_takes_part_in_the_next(sites):
    grid = sites.grid({name: sites.node(name) for name in sites.names if name != LATE})
    first = grid._nodes[101]

    def answer(message: Message) -> Message | None:
        grid._nodes[999], grid._names[999] = sites.node(LATE), LATE
        return first(message)

    grid._nodes[101] = answer
    run_locally(grid, sites.run_config(gf.DeepAFL(depth=1)))
    assert all_answered(sites.result(), sites)
    assert sum(message.metadata.dst_node_id == 999 for message in grid.sent) == 3


def test_a_site_that_is_away_stays_in_the_sum(sites, federation):
    sites.run(gf.AFL())
    away = sites.run(gf.AFL(), {name: sites.node(name) for name in sites.names if name != LATE})
    assert away["sites"]["folded"] == sites.names
    assert LATE not in away["sites"]["answered"]
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), federation)) < 1e-9


def test_folded_uploads_of_another_run_are_refused(sites):
    sites.run(gf.AFL())
    for method in (gf.AFL(penalty=2.0), PACE):
        with pytest.raises(GramfoldError, match="another method, parameters or task; choose another folder"):
            sites.run(method)
    assert sites.run(gf.AFL(penalty=2.0), out="other")["sites"]["answered"] == sites.names


def test_the_task_is_that_of_what_is_folded_already(sites):
    """Otherwise a site more would mean another width, and nothing would fit."""
    sites.run(PACE, {name: sites.node(name) for name in sites.names[:5]}, task="")
    second = sites.run(PACE, task="")
    assert second["sites"]["answered"] == sites.names
    assert second["data"]["samples"] == sum(client["train"] for client in second["methods"][0]["clients"][:5])


@pytest.mark.parametrize("kind", [gf.Ditto, gf.FedPCL])
def test_many_rounds_begin_anew_in_every_run(kind, sites, federation):
    """What a site remembers of an earlier run is not mistaken for this one's."""
    method = quick(kind, rounds=2)
    sites.run(method)
    first = {name: sites.head(name, method).state for name in sites.names}
    sites.run(method)
    for name in sites.names:
        for part, tensor in sites.head(name, method).state.items():
            np.testing.assert_array_equal(np.asarray(tensor), np.asarray(first[name][part]))


# --- the sum itself ---


def sent(site: str, upload_id: str, upload: gf.Moments, replaced: gf.Moments | None = None) -> SentUpload:
    before = None if replaced is None else replaced.copy()
    return SentUpload(upload.copy(), {site: 0}, site=site, upload_id=upload_id, replaced=before)


@settings(max_examples=25)
@given(problem=problems(samples=(6, 40), clients=(2, 5)), data=st.data())
def test_any_history_of_additions_and_replacements_is_the_sum_of_the_last(problem, data, tmp_path_factory):
    folder = Path(tmp_path_factory.mktemp("fold"))
    path, session = folder / "fold.safetensors", "s"
    uploads = problem.moments()
    steps = data.draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, len(uploads) - 1)), min_size=1, max_size=6))
    last: dict[str, int] = {}
    for site, k in steps:
        fold = Ledger.load(path, session, None)
        fold.add(sent(site, f"{k}", uploads[k], uploads[last[site]] if site in last else None))
        last[site] = k
        fold.save(path, session, "{}")
    fold = Ledger.load(path, session, None)
    assert fold.counted == {site: str(k) for site, k in last.items()}
    expected = gf.Moments(problem.X.shape[1], problem.classes, labels=tuple(range(problem.classes)))
    for k in last.values():
        expected += uploads[k]
    # what was added and taken out again leaves its rounding behind
    assert distance(fold.total, expected) < 1e-9


def test_a_site_has_one_upload_in_the_sum(federation):
    upload = gf.Moments.from_features(np.eye(2), np.array([0, 1]), classes=2)
    fold = Ledger()
    fold.add(sent("north", "1", upload))
    with pytest.raises(GramfoldError, match="start over"):
        fold.add(sent("north", "2", upload))
    assert fold.total.n == 2


@pytest.mark.parametrize("method", [gf.FedHiP(at="server")], ids=repr)
def test_a_folder_of_somebody_elses_is_left_alone(method, sites):
    theirs = sites.folder / "out" / "uploads" / "thesis.safetensors"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"three years")
    for _ in range(2):
        sites.run(method)
        kept = [path.name for path in theirs.parent.iterdir() if path != theirs]
        assert len(kept) == 7
    assert theirs.read_bytes() == b"three years"


# --- two at once ---


def test_a_second_run_in_the_same_folder_is_refused_and_leaves_the_first_alone(sites):
    out = sites.folder / "out"
    out.mkdir()
    with wire.locked(out, "the first run"):
        (out / "events.jsonl").write_text("of the first\n")
        with pytest.raises(GramfoldError, match=r"another run is writing to .*choose another `out`"):
            sites.run(gf.AFL())
        assert [path.name for path in out.iterdir()] == ["events.jsonl"]
        assert (out / "events.jsonl").read_text() == "of the first\n"
    assert all_answered(sites.run(gf.AFL()), sites)


def test_two_sites_with_one_state_folder_do_not_take_each_others_memory(sites):
    sites.config["1"]["state-dir"] = sites.config["0"]["state-dir"]
    nodes = {"0": sites.node("0"), "1": sites.node("1"), "2": sites.node("2")}
    first = sites.run(PACE, {"0": nodes["0"], "2": nodes["2"]})
    second = sites.run(PACE, nodes)
    assert first["sites"]["answered"] == second["sites"]["answered"] == ["0", "2"]
    assert "belongs to site '0'; give every site its own `state-dir`" in second["sites"]["excluded"]["1"]


def test_a_message_while_another_is_answered_waits_and_then_is_refused(sites, monkeypatch):
    monkeypatch.setattr("gramfold.remote.state.PATIENCE", 0.1)
    state = Path(sites.config["0"]["state-dir"])
    state.mkdir(parents=True)
    with wire.locked(state, "another message"):
        result = sites.run(gf.AFL())
    assert "is in use by another message or another site" in result["sites"]["excluded"]["0"]
    assert not list(state.rglob("*.safetensors"))
