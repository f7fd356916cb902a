"""Whatever one site does, the others end with their exact result, in time, and the culprit is named with a reason."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ArrayRecord, Message

import gramfold as gf
from flower_cases import PACE, Sites, all_answered, held_back
from gradient_cases import quick
from gramfold.engines.flower import records
from gramfold.engines.flower.local_grid import Node, app_node, run_locally
from gramfold.errors import GramfoldError
from gramfold.remote import messages
from gramfold.uploads import NamedSums

CULPRIT = "2"
DEADLINE = 5.0
"""Seconds, where one is to be missed: in-process sites answer in hundredths, on a busy machine perhaps in tenths."""


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


def tampered(node: Node, change: Callable[[dict, dict], None], kind: str = "query") -> Node:
    """A node whose answers of one kind are changed on the way."""

    def answer(message: Message) -> Message:
        reply = node(message)
        if message.metadata.message_type == kind:
            answer = records.read(reply.content)
            header, packets = dict(answer.header), dict(answer.packets)
            change(header, packets)
            return Message(records.RecordBuilder().content(messages.Message(header, packets)), reply_to=message)
        return reply

    return answer


def with_culprit(sites: Sites, node: Node) -> dict[str, Node]:
    return {name: node if name == CULPRIT else sites.node(name) for name in sites.names}


def assert_exact_without_culprit(sites: Sites, method: gf.AFL, result: dict, reason: str) -> None:
    assert list(result["sites"]["excluded"]) == [CULPRIT]
    assert reason in result["sites"]["excluded"][CULPRIT]
    assert "\n" not in result["sites"]["excluded"][CULPRIT]
    assert result["sites"]["answered"] == [name for name in sites.names if name != CULPRIT]
    # the same task: the sum must be that of the others alone, to the rounding of its order
    assert sites.distance(method, gf.run(method, sites.without(CULPRIT))) < 1e-9


# --- wrong data at a site ---


def broken_data(sites: Sites, change: Callable[[dict], dict]) -> None:
    with np.load(sites.data(CULPRIT)) as file:
        content = {key: file[key] for key in file.files}
    np.savez(sites.data(CULPRIT), **{**content, **change(content)})


DATA = {
    "NaN": (lambda c: {"features": np.where(np.arange(8) == 3, np.nan, c["features"])}, "NaN or infinite"),
    "infinity": (lambda c: {"features": np.where(np.arange(8) == 3, np.inf, c["features"])}, "NaN or infinite"),
    "wrong width": (lambda c: {"features": c["features"][:, :5]}, "5 numbers per sample, the others 8"),
    "other labels": (lambda c: {"labels": c["labels"] + 7}, "not among the 4 classes"),
    "names for labels": (lambda c: {"labels": c["labels"].astype(str)}, "not among the 4 classes"),
    "no training samples": (lambda c: {"train": np.zeros(len(c["train"]), bool)}, "no samples"),
    "labels missing": (lambda c: {"labels": c["labels"][:-1]}, "`labels` has shape"),
}


@pytest.mark.parametrize("what", DATA)
def test_wrong_data_leaves_one_site_out(what, sites):
    change, reason = DATA[what]
    broken_data(sites, change)
    assert_exact_without_culprit(sites, PACE, sites.run(PACE), reason)


def test_a_file_that_is_none(sites):
    sites.data(CULPRIT).write_bytes(b"nothing of the kind")
    assert_exact_without_culprit(sites, gf.AFL(), sites.run(gf.AFL()), "not a readable .npz file")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"data": ""}, "either `data` (an .npz file) or `loader`"),
        ({"loader": "json:loads"}, "either `data` (an .npz file) or `loader`"),
        ({"data": "", "loader": "json"}, "must be written as module:function"),
        ({"data": "", "loader": "nowhere:load"}, "loader nowhere:load failed: ModuleNotFoundError"),
        ({"data": "", "loader": "json:loads"}, "loader json:loads failed: TypeError"),
        ({"data": "", "loader": "builtins:dict"}, "it must return (X, y)"),
        ({"data": "/no/such/file.npz"}, "no such data file"),
        ({"state-dir": ""}, "gives no `state-dir`"),
        ({"state-dir": "/dev/null/state"}, "cannot make its state folder: Not a directory"),
    ],
)
def test_a_wrong_configuration_leaves_one_site_out(config, reason, sites):
    sites.config[CULPRIT] |= config
    nodes = with_culprit(sites, app_node(sites.config[CULPRIT]))
    result = sites.run(gf.AFL(), nodes)
    assert list(result["sites"]["excluded"]) == [CULPRIT]
    assert reason in result["sites"]["excluded"][CULPRIT]


# --- what no honest site sends ---


def change_upload(**arrays: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict, dict], None]:
    def change(header: dict, packets: dict) -> None:
        packet = packets["upload"]
        parts = {name: arrays[name](part.copy()) if name in arrays else part for name, part in packet.arrays.items()}
        packets["upload"] = replace(packet, arrays=parts)

    return change


def change_meta(**meta: object) -> Callable[[dict, dict], None]:
    def change(header: dict, packets: dict) -> None:
        packets["upload"] = replace(packets["upload"], meta={**packets["upload"].meta, **meta})

    return change


def empty(header: dict, packets: dict) -> None:
    packets.clear()


TAMPERED = {
    "NaN": (change_upload(gram=lambda gram: gram * np.nan), "NaN or infinity"),
    "wrong shape": (change_upload(gram=lambda gram: gram[:-1]), "triang"),
    "wrong cross-moment": (change_upload(cross=lambda cross: cross[:-1]), "not a message of moments"),
    "another map": (change_meta(fingerprint="0123456789abcdef"), "differ in their feature map"),
    "other classes": (change_meta(labels=["a", "b", "c", "d"]), "differ in their class list"),
    "negative n": (change_meta(n=-1), "cannot be the moments of -1 samples"),
    "more samples than counted": (change_meta(n=10**6), "class counts sum to"),
    "no upload": (empty, "cannot be read"),
    "sums": (lambda header, packets: packets.update(upload=NamedSums({"w": np.ones(3)}).pack()), "got named-sums"),
    "no id": (lambda header, packets: header.update(upload="../../etc/passwd"), "no valid id"),
    "a false count": (lambda header, packets: header.update(counted=True), "but it is not"),
    "another version": (lambda header, packets: header.update(gramfold="0.0.1"), "it runs gramfold 0.0.1"),
    "another's name": (lambda header, packets: header.update(site="north"), "calls itself 'north'"),
    "no name": (lambda header, packets: header.update(site=""), "no valid name"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_an_upload_that_cannot_be_leaves_one_site_out(what, sites):
    change, reason = TAMPERED[what]
    nodes = with_culprit(sites, tampered(sites.node(CULPRIT), change))
    # it answers first of all, so that nothing can be measured by the others
    nodes = {CULPRIT: nodes.pop(CULPRIT), **nodes}
    assert_exact_without_culprit(sites, gf.AFL(), sites.run(gf.AFL(), nodes), reason)


def change_answer(**more: object) -> Callable[[dict, dict], None]:
    return lambda header, packets: header.update(more)


SCORED = {"n": 10, "right": 5, "squared_error": 0.0, "calibration": None, "surprise": None, "variation": 0.0, "auc": None,
          "balanced_accuracy": None, "average_precision": None, "quadratic": None, "positives": None, "reliability": None,
          "intervals": {}}  # fmt: skip
ANSWERS = {
    "nothing": (lambda header, packets: header.clear(), "no valid name"),
    "no figures": (lambda header, packets: header.pop("scored"), "cannot be read"),
    "more right than there are": (change_answer(scored={**SCORED, "right": 11}), "11 right of 10"),
    "infinite": (change_answer(scored={**SCORED, "squared_error": float("inf")}), "Infinity"),
    "NaN": (change_answer(chosen={"alpha": float("nan")}), "NaN"),
    "odd bins": (change_answer(scored={**SCORED, "calibration": {"count": [1.0]}}), "15 bins"),
    "more of a class than there are": (change_answer(scored={**SCORED, "positives": 11}), "not within 0 and 10"),
    "an interval of nothing known": (change_answer(scored={**SCORED, "intervals": {"luck": [0.0, 1.0]}}), "its intervals"),
    "an interval upside down": (change_answer(scored={**SCORED, "intervals": {"auc": [1.0, 0.0]}}), "is impossible"),
    "strange bins": (change_answer(scored={**SCORED, "calibration": {"bins": [1.0]}}), "cannot be read"),
    "an estimate in words": (change_answer(chosen={"leave_one_out_accuracy": "good"}), "is not a number"),
    "choices that are none": (change_answer(chosen=3), "cannot be read"),
    "figures that are none": (change_answer(scored=[1, 2]), "cannot be read"),
    "too many": (change_answer(train=10**400), "401 digits"),
    "too many to test on": (change_answer(scored={**SCORED, "n": 10**400}), "401 digits"),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_figures_that_cannot_be_leave_one_site_out(what, sites):
    change, reason = ANSWERS[what]
    result = sites.run(PACE, with_culprit(sites, tampered(sites.node(CULPRIT), change, "evaluate")))
    assert list(result["sites"]["excluded"]) == [CULPRIT]
    assert reason in result["sites"]["excluded"][CULPRIT]


def test_records_that_are_no_message(sites):
    def answer(message: Message) -> Message:
        reply = sites.node(CULPRIT)(message)
        del reply.content["header"]
        return reply

    assert_exact_without_culprit(sites, gf.AFL(), sites.run(gf.AFL(), with_culprit(sites, answer)), "not a gramfold message")


def test_a_gradient_upload_with_a_wrong_shape(sites):
    def change(header: dict, packets: dict) -> None:
        if "model/head.weight" in packets["upload"].arrays:
            change_upload(**{"model/head.weight": lambda part: part[:, :-1]})(header, packets)

    method = quick(gf.FedAvg, rounds=2)
    result = sites.run(method, with_culprit(sites, tampered(sites.node(CULPRIT), change, "train")))
    assert "shape (4, 7), the model's (4, 8)" in result["sites"]["excluded"][CULPRIT]
    assert len(result["sites"]["answered"]) == 6


def test_a_parcel_under_anothers_name(sites):
    def change(header: dict, packets: dict) -> None:
        change_meta(clients=["0"])(header, packets)

    method = quick(gf.FedPCL, rounds=2, standardize=False)
    result = sites.run(method, with_culprit(sites, tampered(sites.node(CULPRIT), change, "train")))
    assert result["sites"]["excluded"] == {CULPRIT: "its upload carries another site's name"}


def test_a_site_of_another_version_says_so(sites, monkeypatch):
    def answer(message: Message) -> Message:
        asked = records.read(message.content)
        newer = messages.Message({**asked.header, "gramfold": "9.9.9"}, asked.packets)
        message.content = records.RecordBuilder().content(newer)
        return sites.node(CULPRIT)(message)

    result = sites.run(gf.AFL(), with_culprit(sites, answer))
    assert_exact_without_culprit(sites, gf.AFL(), result, "the server runs gramfold 9.9.9, this site")


# --- nodes that fail ---


def test_an_app_that_raises(sites):
    def answer(message: Message) -> Message:
        message.content["broadcast/arrays"] = ArrayRecord()
        del message.content["broadcast/meta"]
        return sites.node(CULPRIT)(message)

    assert_exact_without_culprit(sites, gf.AFL(), sites.run(gf.AFL(), with_culprit(sites, answer)), "not a gramfold message")


def test_an_error_of_flowers_own(sites):
    def fail(message: Message) -> Message:
        raise OSError("no space left\non this device")

    def answer(message: Message) -> Message:
        return app_node({}, fail_app)(message)

    class fail_app:  # noqa: N801
        def __new__(cls, message, context):
            return fail(message)

    result = sites.run(gf.AFL(), with_culprit(sites, answer))
    assert_exact_without_culprit(sites, gf.AFL(), result, "its app failed: <class 'OSError'>:<'no space left on this device'>")


def test_a_node_that_never_answers_costs_the_deadline_once(sites):
    begun = time.monotonic()
    result = sites.run(gf.AFL(), with_culprit(sites, lambda message: None), **{"deadline-seconds": DEADLINE})
    assert time.monotonic() - begun < 10 * DEADLINE
    assert_exact_without_culprit(sites, gf.AFL(), result, "no answer within 5 s")


def test_nodes_that_die_in_mid_upload_hold_nobody_up(sites):
    """A pull of half an upload blocks; after a tenth of the deadline the next one goes ahead all the same."""
    over = threading.Event()

    def block(message: Message) -> None:
        over.wait(60)

    blocked = sites.names[:3]
    nodes = {name: block if name in blocked else sites.node(name) for name in sites.names}
    try:
        result = sites.run(gf.AFL(), nodes, **{"deadline-seconds": DEADLINE})
    finally:
        over.set()
    assert list(result["sites"]["excluded"]) == blocked
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), sites.without(*blocked))) < 1e-9


def test_in_many_rounds_a_site_that_fails_is_asked_no_more(sites):
    asked = []

    def answer(message: Message) -> Message | None:
        asked.append(message.metadata.message_type)
        return None

    method = gf.DeepAFL(depth=1)
    result = sites.run(method, with_culprit(sites, answer), **{"deadline-seconds": DEADLINE})
    assert set(asked) == {"train"}
    assert_exact_without_culprit(sites, method, result, "no answer within 5 s")


def test_a_site_that_missed_a_round_joins_the_next_and_is_told_all_it_missed(sites):
    """DeepAFL's layers do not travel twice, except to who was not there when they did."""
    next_round, answered, seen = threading.Event(), threading.Event(), []

    def late(message: Message) -> Message | None:
        """Answers its first message once the round after it has begun."""
        if not next_round.is_set():
            return None
        reply = sites.node(CULPRIT)(message)
        seen.append(message.metadata.message_id)
        answered.set()
        return reply

    def waits(message: Message) -> Message | None:
        """Does not end the second round before the late one is back."""
        first.append(message.metadata.message_id)
        if first[0] == message.metadata.message_id:
            return sites.node("0")(message)
        next_round.set()
        return second(message)

    first: list[str] = []
    second = held_back(sites.node("0"), answered)
    nodes = {**with_culprit(sites, late), "0": waits}
    result = sites.run(gf.DeepAFL(depth=3), nodes, **{"deadline-seconds": DEADLINE})
    assert all_answered(result, sites)
    assert len(seen) > 2


def test_a_site_that_is_back_too_late_for_its_head_is_named(sites):
    evaluating, answered = threading.Event(), threading.Event()

    def late(message: Message) -> Message | None:
        if not evaluating.is_set():
            return None
        answered.set()
        return sites.node(CULPRIT)(message)

    def waits(message: Message) -> Message | None:
        if message.metadata.message_type == "train":
            return sites.node("0")(message)
        evaluating.set()
        return last(message)

    last = held_back(sites.node("0"), answered)
    nodes = {**with_culprit(sites, late), "0": waits}
    result = sites.run(gf.DeepAFL(depth=1), nodes, **{"deadline-seconds": DEADLINE})
    assert result["sites"]["excluded"] == {CULPRIT: "it answered too late to compute its head"}


# --- whose answer it is ---


def test_an_answer_that_is_delivered_twice_counts_once(sites, federation):
    def twice(node: Node) -> Node:
        return lambda message: [node(message), node(message)]

    result = sites.run(gf.AFL(), {name: twice(sites.node(name)) for name in sites.names})
    assert all_answered(result, sites)
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), federation)) < 1e-9


def test_two_nodes_of_one_name_count_once(sites, federation):
    grid = sites.grid()
    grid._nodes[999] = sites.node(CULPRIT)
    run_locally(grid, sites.run_config(gf.AFL()))
    excluded = sites.result()["sites"]["excluded"]
    assert list(excluded.values()) == [f"another node is already called '{CULPRIT}'; every site needs its own name"]
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), federation)) < 1e-9


def test_expected_sites_that_never_came_are_named(sites, monkeypatch):
    monkeypatch.setattr("gramfold.engines.flower.exchange.CONNECT_SECONDS", 0.1)
    result = sites.run(gf.AFL(), sites="north, " + ",".join(sites.names))
    assert result["sites"]["excluded"] == {"north": "it was expected but never connected"}


def test_too_few_sites_end_the_run_with_all_reasons(sites):
    sites.config[CULPRIT]["data"] = "/no/such/file.npz"
    nodes = {**with_culprit(sites, app_node(sites.config[CULPRIT])), "0": lambda message: None}
    config = {"minimum-sites": 6, "deadline-seconds": DEADLINE}
    with pytest.raises(GramfoldError, match="only 5 of at least 6 sites sent an upload") as caught:
        sites.run(gf.AFL(), nodes, **config)
    assert "2: no such data file" in str(caught.value)
    assert "0: no answer within 5 s" in str(caught.value)
    assert not (sites.folder / "out" / "result.json").exists()
