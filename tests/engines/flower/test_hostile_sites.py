"""A site that lies: what cannot be true is refused, the others end with their exact result, and the liar is named."""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message

import gramfold as gf
from flower_cases import Sites, all_answered, write_site
from gradient_cases import quick
from gramfold.engines.flower import records
from gramfold.engines.flower.local_grid import Node
from gramfold.errors import GramfoldError
from gramfold.federation import Client, Samples
from gramfold.remote import messages, samples
from gramfold.uploads import NamedSums, PerClient
from gramfold.wire import Packet, read

LIAR = "2"
Change = Callable[[dict, dict], None]


@pytest.fixture
def sites(tmp_path, federation) -> Sites:
    return Sites(tmp_path, federation)


@pytest.fixture
def regression(tmp_path) -> Sites:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((140, 5))
    y = X @ rng.standard_normal((5, 2)) + 0.1 * rng.standard_normal((140, 2))
    sites = Sites(tmp_path, gf.Federation.split(X, y, clients=7, random_state=1, regression=True))
    for client in sites.federation:
        path = tmp_path / f"{client.name}-samples.npz"
        samples.save(path, client, sites.federation.task)
        sites.config[client.name] |= {"data": "", "loader": samples.LOADER, "samples": str(path)}
    return sites


class Raw(str):
    """JSON that is written as it is: what no honest writer would."""


def lying(node: Node, change: Change, kind: str = "query") -> Node:
    """A node whose answers of one kind are changed on the way."""

    def answer(message: Message) -> Message:
        reply = node(message)
        if message.metadata.message_type != kind:
            return reply
        answer = records.read(reply.content)
        header, packets = dict(answer.header), dict(answer.packets)
        change(header, packets)
        content = records.RecordBuilder().content(messages.Message(header, packets))
        text = content["header"]["json"]
        for value in [value for value in header.values() if isinstance(value, Raw)]:
            text = text.replace(json.dumps(value), str(value))
        content["header"] = ConfigRecord({"json": text})
        return Message(content, reply_to=message)

    return answer


def first(sites: Sites, node: Node) -> dict[str, Node]:
    """The liar answers before everybody else, so that it could decide what counts as usual."""
    return {LIAR: node, **{name: sites.node(name) for name in sites.names if name != LIAR}}


def assert_exact_without_liar(sites: Sites, method: object, result: dict, reason: str) -> None:
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert reason in result["sites"]["excluded"][LIAR]
    assert result["sites"]["answered"] == [name for name in sites.names if name != LIAR]
    assert sites.distance(method, gf.run(method, sites.without(LIAR))) < 1e-9


def upload(**arrays: Callable[[np.ndarray], np.ndarray]) -> Change:
    """A change of the upload's arrays."""

    def change(header: dict, packets: dict) -> None:
        packet = packets["upload"]
        parts = {name: arrays[name](np.array(part)) if name in arrays else part for name, part in packet.arrays.items()}
        packets["upload"] = replace(packet, arrays=parts)

    return change


# --- 1: what is subtracted ---


@pytest.mark.parametrize("method", [gf.AFL(), gf.FedHiP(at="server")], ids=repr)
def test_a_site_cannot_have_anything_subtracted_but_what_it_sent(method, sites, federation):
    sites.run(method)
    old = next(client for client in federation if client.name == LIAR)
    rng = np.random.default_rng(1)
    more = rng.standard_normal((40, 8)), rng.integers(0, 4, 40)
    write_site(
        sites.data(LIAR), Client(LIAR, lambda: Samples(*map(np.concatenate, zip(old.train(), more, strict=True))), old.test)
    )

    def change(header: dict, packets: dict) -> None:
        packet = packets["replaced"]
        packets["replaced"] = replace(packet, arrays={**packet.arrays, "cross": packet["cross"] * 0.5})

    result = sites.run(method, first(sites, lying(sites.node(LIAR), change)))
    assert "is not what it sent before" in result["sites"]["excluded"][LIAR]
    # what it sent in truth stays in the sum
    assert result["sites"]["folded"] == sites.names
    expected = gf.run(method, federation)
    for client in federation:
        if client.name != LIAR:
            mine, theirs = (
                head.scores(client.test().inputs) for head in (sites.head(client.name, method), expected.heads[client.name])
            )
            assert np.abs(np.asarray(mine) - np.asarray(theirs)).max() < 1e-9
    # and honestly replaced it can be: the hash is on disk
    assert all_answered(sites.run(method), sites)


# --- 4: figures ---


SCORED = {"n": 10, "right": 5, "squared_error": 0.0, "calibration": None, "surprise": None, "variation": 0.0, "auc": None,
          "balanced_accuracy": None, "average_precision": None, "quadratic": None, "positives": None, "reliability": None,
          "intervals": {}}  # fmt: skip
BINS = {name: [0.0] * 15 for name in ("count", "confidence", "right")}


def header(**more: object) -> Change:
    return lambda header, packets: header.update(more)


FIGURES = {
    "seconds beyond floats": (header(seconds=Raw("1e999")), "1e999"),
    "seconds without end": (header(seconds=Raw("9" * 400)), "400 digits"),
    "a year and more": (header(seconds=1e8), "time is impossible"),
    "seconds below zero": (header(seconds=-1.0), "time is impossible"),
    "seconds in words": (header(seconds="soon"), "time is not a number"),
    "NaN": (header(chosen=Raw('{"alpha": NaN}')), "NaN"),
    "a choice beyond floats": (header(chosen=Raw('{"alpha": 1e999}')), "1e999"),
    "a choice too large": (header(chosen={"alpha": 1e200}), "alpha is impossible"),
    "a choice of many digits": (header(chosen=Raw('{"alpha": 1' + "0" * 400 + "}")), "401 digits"),
    "a novel": (header(chosen={"alpha": "x" * 10**6}), "no text of at most 200"),
    "a control character": (header(chosen={"alpha": "\x1b[31m"}), "printable"),
    "a long name": (header(chosen={"x" * 201: 1}), "no text of at most 200"),
    "many choices": (header(chosen={str(i): i for i in range(51)}), "at most 50"),
    "a choice within a choice": (header(chosen={"alpha": {"beta": 1}}), "alpha is not a number"),
    "depth": (header(chosen=Raw("[" * 10**5 + "]" * 10**5)), "without end"),
    "an estimate above one": (header(chosen={"leave_one_out_accuracy": 7.0}), "leave-one-out accuracy is impossible"),
    "half a sample": (header(train=10.5), "not a whole number"),
    "samples in words": (header(train="10"), "not a whole number"),
    "an error beyond floats": (header(scored=Raw('{"n": 1, "right": 0, "squared_error": 1e999, "calibration": null}')), "1e999"),
    "an area above one": (header(scored={**SCORED, "auc": 1.5}), "auc is impossible"),
    "a balance in words": (header(scored={**SCORED, "balanced_accuracy": "even"}), "balanced accuracy is not a number"),
    "a surprise beyond belief": (header(scored={**SCORED, "surprise": 1e9}), "log loss is impossible"),
    "a negative variation": (header(scored={**SCORED, "variation": -1.0}), "variation is impossible"),
    "an error whose square is none": (header(scored={**SCORED, "squared_error": 1e300}), "squared error is impossible"),
    "a count of many digits": (header(scored=Raw('{"n": 1' + "0" * 400 + "}")), "401 digits"),
    "more figures": (header(scored={**SCORED, "more": 1}), "figures cannot be read"),
    "no figures": (header(scored=None), "figures cannot be read"),
    "bins of more samples than there are": (
        header(scored={**SCORED, "calibration": {**BINS, "count": [11.0] + [0.0] * 14}}),
        "calibration is impossible",
    ),
    "two test sets": (header(scored=SCORED, shared={**SCORED, "n": 11}), "the same samples"),
}


@pytest.mark.parametrize("what", FIGURES)
def test_figures_that_cannot_be_computed_with_leave_one_site_out(what, sites):
    change, reason = FIGURES[what]
    result = sites.run(gf.PACE(learn=False), first(sites, lying(sites.node(LIAR), change, "evaluate")))
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert reason in result["sites"]["excluded"][LIAR]
    assert result["sites"]["answered"] == [name for name in sites.names if name != LIAR]


def test_a_time_beyond_floats_in_an_upload_leaves_one_site_out(sites):
    result = sites.run(gf.AFL(), first(sites, lying(sites.node(LIAR), header(seconds=Raw("1e999")))))
    assert_exact_without_liar(sites, gf.AFL(), result, "1e999")


# --- 5: who is first does not say what is usual ---


def test_the_first_upload_does_not_say_how_many_targets_there_are(regression):
    change = upload(cross=lambda cross: cross[:, :1], squares=lambda squares: squares[:1])
    result = regression.run(gf.AFL(), first(regression, lying(regression.node(LIAR), change)))
    assert_exact_without_liar(regression, gf.AFL(), result, "number of targets: 2 and 1")


def test_the_first_upload_does_not_say_how_many_residuals_a_layer_has(sites):
    def change(header: dict, packets: dict) -> None:
        if packets["upload"].meta["labels"] is None:
            upload(cross=lambda cross: cross[:, :1], squares=lambda squares: squares[:1])(header, packets)

    method = gf.DeepAFL(depth=1)
    result = sites.run(method, first(sites, lying(sites.node(LIAR), change, "train")))
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert "number of targets: 4 and 1" in result["sites"]["excluded"][LIAR]


def names(**changed: object) -> Change:
    """Sums of which some have gone, and some have come."""

    def change(header: dict, packets: dict) -> None:
        parts = {**packets["upload"].arrays, **{name.replace("__", "/"): part for name, part in changed.items()}}
        packets["upload"] = Packet({name: part for name, part in parts.items() if part is not None}, packets["upload"].meta)

    return change


SUMS = {
    "none of a name": (names(n=None), "lacks n"),
    "one more": (names(extra=np.ones(3)), "holds something else: extra"),
    "no samples at all": (names(n=np.array([-1.0])), "-1 samples"),
    "moments": (
        lambda header, packets: packets.update(
            upload=gf.Moments.from_features(np.eye(2), np.array([0, 1]), classes=2).pack()
        ),
        "got moments",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SUMS)
def test_the_first_upload_does_not_say_what_a_model_is(what, sites):
    change, reason = SUMS[what]
    method = quick(gf.FedAvg, rounds=2)
    result = sites.run(method, first(sites, lying(sites.node(LIAR), change, "train")))
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert reason in result["sites"]["excluded"][LIAR]
    assert len(result["sites"]["answered"]) == 6


PARCELS: dict[str, tuple[Any, str]] = {
    "sums": (NamedSums({"w": np.ones(3)}), "got named-sums"),
    "nothing in it": (PerClient({LIAR: {}}), "not among the 4"),
    "one class twice": (
        PerClient({LIAR: {"classes": np.array([1, 1]), "prototypes": np.ones((2, 16)), "counts": np.ones(2)}}),
        "two prototypes of one class",
    ),
    "fewer than none": (
        PerClient({LIAR: {"classes": np.array([1]), "prototypes": np.ones((1, 16)), "counts": -np.ones(1)}}),
        "less than no samples",
    ),
}


@pytest.mark.parametrize("what", PARCELS)
def test_the_first_parcel_does_not_say_what_parcels_are(what, sites):
    sent, reason = PARCELS[what]
    method = quick(gf.FedPCL, rounds=2, standardize=False, projector=16)
    node = lying(sites.node(LIAR), lambda header, packets: packets.update(upload=sent.pack()), "train")
    result = sites.run(method, first(sites, node))
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert reason in result["sites"]["excluded"][LIAR]
    assert len(result["sites"]["answered"]) == 6


@pytest.mark.parametrize("kind", [gf.FedAvg, gf.FedDBE, gf.FedSelect, gf.FedAS, gf.FedPCL])
def test_what_honest_sites_send_is_what_was_asked_for(kind, sites):
    assert all_answered(sites.run(quick(kind, rounds=3)), sites)


# --- 7: moments that no samples have ---


def indefinite(gram: np.ndarray) -> np.ndarray:
    """Two features that vary together more than each for itself."""
    gram[wire_place(3, 2)] = 1.5 * np.sqrt(gram[wire_place(3, 3)] * gram[wire_place(2, 2)])
    return gram


def wire_place(i: int, j: int) -> int:
    return i * (i + 1) // 2 + j


def many(header: dict, packets: dict) -> None:
    """2^40 samples, of all classes alike, and nothing in them."""
    packet = packets["upload"]
    squares = np.full(4, 2**38)
    cross = np.zeros((9, 4))
    parts = {"gram": np.zeros_like(packet["gram"]), "cross": cross, "squares": squares}
    packets["upload"] = replace(packet, arrays=parts, meta={**packet.meta, "n": 2**40, "form": "triangle"})


LONG = np.r_[1.0, np.full(8, 1e3)]
"""The features a thousand times as long as normalised ones; the bias is left alone."""


IMPOSSIBLE = {
    "a gram a million times too large": (upload(gram=lambda gram: gram * 1e6), "feature 0 is always one"),
    "features a thousand times too long": (
        upload(
            gram=lambda gram: gram * np.concatenate([LONG[i] * LONG[: i + 1] for i in range(9)]),
            cross=lambda cross: cross * LONG[:, None],
        ),
        "more than",
    ),
    "a cross-moment of minus a hundred": (upload(cross=lambda cross: -100 * cross), "cross-moment is larger than"),
    "a cross-moment turned round": (upload(cross=lambda cross: -cross), "is the class counts"),
    "an indefinite gram": (upload(gram=indefinite), "not positive semi-definite"),
    "samples beyond belief": (many, "not believed"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_moments_that_no_samples_have_leave_one_site_out(what, sites):
    change, reason = IMPOSSIBLE[what]
    method = gf.AFL(features="bias+linear")  # rows of one length: of columns as they are none is known
    result = sites.run(method, first(sites, lying(sites.node(LIAR), change)))
    assert_exact_without_liar(sites, method, result, reason)


ROWS = {
    "a cross-moment of minus a hundred": (upload(cross=lambda cross: -100 * cross), "cross-moment is larger than"),
    "rows a thousand times too long": (upload(gram=lambda gram: gram * 1e3), "always one"),
}


@pytest.mark.parametrize("what", ROWS)
def test_rows_that_no_samples_have_leave_one_site_out(what, sites):
    """Fewer samples than features travel as rows."""
    change, reason = ROWS[what]
    method = gf.AFL(features="bias+linear+fourier:512")
    result = sites.run(method, first(sites, lying(sites.node(LIAR), change)))
    assert_exact_without_liar(sites, method, result, reason)


def test_a_map_without_a_bias_bounds_what_it_can(sites):
    method = gf.AFL(features="fourier:16")
    result = sites.run(method, first(sites, lying(sites.node(LIAR), upload(gram=lambda gram: gram * 1e6))))
    assert_exact_without_liar(sites, method, result, "more than")


# --- 15: the task ---


def described(**more: object) -> Change:
    return header(**more)


DESCRIPTIONS = {
    "inputs": (described(inputs=9), "its numbers per sample (9) is not that of 6 other sites (8)"),
    "shape": (described(shape=[2, 2, 2]), "sample shape"),
    "targets": (described(labels=None, outputs=1), "its kind of targets (continuous)"),
    "names": (described(labels=["a", "b"]), "kind of labels"),
    "2,000 labels": (described(labels=list(range(2000)), outputs=2000), "max-classes"),
    "labels of its own": (described(labels=list(range(10, 1009)), outputs=999), "999 of them its own"),
    "a label without end": (described(labels=["x" * 201]), "no text of at most 200"),
    "samples": (described(samples=2**53), "number of samples is impossible"),
    "nonsense": (described(labels={"a": 1}), "no list"),
    "nothing": (lambda header, packets: header.pop("inputs"), "is refused"),
}


@pytest.mark.parametrize("what", DESCRIPTIONS)
def test_one_odd_description_leaves_one_site_out_of_the_task(what, sites):
    change, reason = DESCRIPTIONS[what]
    result = sites.run(gf.AFL(), first(sites, lying(sites.node(LIAR), change, "query.task")), task="")
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert reason in result["sites"]["excluded"][LIAR]
    assert result["sites"]["answered"] == [name for name in sites.names if name != LIAR]
    assert result["data"]["outputs"] == 4


def test_two_sites_that_differ_agree_on_nothing(sites):
    nodes = {LIAR: lying(sites.node(LIAR), described(inputs=9), "query.task"), "0": sites.node("0")}
    with pytest.raises(GramfoldError, match="'0' and '2' differ in their numbers per sample: 8 and 9"):
        sites.run(gf.AFL(), nodes, task="")


def test_the_bound_on_classes_can_be_set(sites):
    change = described(labels=list(range(10)), outputs=10)
    result = sites.run(
        gf.AFL(), first(sites, lying(sites.node(LIAR), change, "query.task")), task="", **{"max-classes": 4}
    )  # fmt: skip
    assert "10 classes or targets, more than 4" in result["sites"]["excluded"][LIAR]


# --- 16: nothing is made of a size that was not asked for ---


def test_a_small_upload_cannot_become_a_large_one(sites):
    """A megabyte of squares that are nearly all zero, times 300 rows, would be a cross-moment of 2.4 GB."""

    def change(header: dict, packets: dict) -> None:
        n, dim, squares = 300, 301, np.zeros(10**6, np.bool_)
        squares[0] = True
        gram = np.zeros(n * dim - n * (n - 1) // 2, np.uint8)
        claimed = {"dim": dim, "n": n, "form": "factor", "labels": None}
        arrays = {"gram": gram, "cross": np.zeros((n, 1)), "squares": squares}
        packets["upload"] = Packet(arrays, {**packets["upload"].meta, **claimed})

    tracemalloc.start()
    try:
        result = sites.run(gf.AFL(), first(sites, lying(sites.node(LIAR), change)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_exact_without_liar(sites, gf.AFL(), result, "feature dimension: 9 and 301")
    assert peak < 1e8


def test_the_number_of_targets_is_looked_at_before_anything_is_made_of_it(regression, monkeypatch):
    def change(header: dict, packets: dict) -> None:
        packets["upload"] = replace(packets["upload"], arrays={**packets["upload"].arrays, "squares": np.ones(10**5)})

    unpacked: list[int] = []
    honest: Any = gf.Moments.unpack

    def watched(packet: Packet, **how: Any) -> gf.Moments:
        unpacked.append(packet["squares"].size)
        return honest(packet, **how)

    monkeypatch.setattr(gf.Moments, "unpack", watched)
    result = regression.run(gf.AFL(), first(regression, lying(regression.node(LIAR), change)))
    assert_exact_without_liar(regression, gf.AFL(), result, "number of targets: 2 and 100000")
    assert set(unpacked) == {2}


# --- 17: test samples ---


def test_no_site_claims_more_test_samples_than_it_can_have(sites, federation):
    perfect = {**SCORED, "n": 2**52, "right": 2**52}
    result = sites.run(gf.AFL(), first(sites, lying(sites.node(LIAR), header(scored=perfect, shared=perfect), "evaluate")))
    assert "number of test samples is impossible" in result["sites"]["excluded"][LIAR]
    assert result["methods"][0]["global_accuracy"] < 1.0


def test_no_site_claims_more_training_samples_than_it_sent(sites):
    """Of these it could then claim ten test samples each."""
    result = sites.run(gf.AFL(), first(sites, lying(sites.node(LIAR), header(train=10**9), "evaluate")))
    assert "it reports 1000000000 training samples, its upload has" in result["sites"]["excluded"][LIAR]


# --- 18: what a terminal would obey ---


def test_a_sites_words_do_not_reach_the_terminal_as_commands(sites, caplog):
    words = "\x1b]0;owned\x07\x1b[2Jall is well\r\u202e\u2028"
    result = sites.run(gf.AFL(), first(sites, lying(sites.node(LIAR), header(error=words))))
    reason = result["sites"]["excluded"][LIAR]
    assert reason == "]0;owned [2Jall is well"
    assert_exact_without_liar(sites, gf.AFL(), result, "all is well")
    events = (sites.folder / "out" / "events.jsonl").read_text()
    assert "\\u001b" not in events


# --- what operators read ---


def test_a_run_that_fails_names_who_is_missing(sites, monkeypatch):
    monkeypatch.setattr("gramfold.engines.flower.exchange.CONNECT_SECONDS", 0.1)
    config = {"minimum-sites": 8, "deadline-seconds": 0.1, "sites": "north,south," + ",".join(sites.names)}
    with pytest.raises(GramfoldError, match="only 7 of at least 8 sites connected"):
        sites.run(gf.AFL(), **config)
    assert "not connected: north, south" in (sites.folder / "out" / "error.txt").read_text()


def test_a_run_that_fails_later_names_both_who_failed_and_who_never_came(sites, monkeypatch):
    monkeypatch.setattr("gramfold.engines.flower.exchange.CONNECT_SECONDS", 0.1)
    nodes = {name: lying(sites.node(name), header(error="x" * 280)) for name in sites.names}
    with pytest.raises(GramfoldError, match="only 0 of at least 1 sites sent an upload"):
        sites.run(gf.AFL(), nodes, sites="north," + ",".join(sites.names))
    words = (sites.folder / "out" / "error.txt").read_text()
    assert all(f"{name}: xxx" in words for name in sites.names[:5])
    assert "and 2 more: 5, 6" in words
    assert "not connected: north" in words


def test_a_site_keeps_a_diary_of_what_it_sent(sites):
    sites.run(gf.AFL())
    sites.run(gf.AFL())
    sites.data(LIAR).write_bytes(b"nothing of the kind")
    sites.run(gf.AFL())
    path = sites.folder / "state" / LIAR / "sent.jsonl"
    sent, told, again, told_again, refused = [json.loads(line) for line in path.read_text().splitlines()]
    client = next(client for client in sites.federation if client.name == LIAR)
    assert (sent["method"], sent["samples"], sent["round"], len(sent["sha256"])) == ("afl", client.train().n, 0, 64)
    assert sent["bytes"] > 0
    assert (again["upload"], again["bytes"]) == (sent["upload"], 0)
    assert told["of"] == told_again["of"] == sent["upload"]
    assert told["figures"] == told_again["figures"]
    assert told["told"]["scored"]["n"] == client.test().n
    assert "not a readable .npz file" in refused["refused"]
    assert all(entry["time"].endswith("+00:00") for entry in (sent, again, refused))
    ledger = Packet.from_bytes(read(sites.folder / "out" / "fold.safetensors"))
    assert ledger.meta["digests"][LIAR] == sent["sha256"]


# --- learned features: every round has its bounds ---


LEARNED = gf.AFL(features="columns+bias+linear+fourier:16@learned:1")
COUNTED = {
    "votes that are none": (lambda counts: -counts, "not counts"),
    "more votes in one column": (lambda counts: counts + np.eye(len(counts), 1), "all must hold the same"),
    "votes for everybody": (lambda counts: counts * 1e12, "not counts"),
    "other bins": (lambda counts: counts[:, 1:], "shape"),
}


@pytest.mark.parametrize("what", COUNTED)
def test_columns_are_measured_by_counts_that_can_be(what, sites):
    change, reason = COUNTED[what]
    node = lying(sites.node(LIAR), upload(counts=change), "train")
    assert_exact_without_liar(sites, LEARNED, sites.run(LEARNED, first(sites, node)), reason)


def test_gradients_are_no_longer_than_they_can_be(sites):
    def change(header: dict, packets: dict) -> None:
        packet = packets["upload"]
        if "counts" in packet.arrays or packet.meta["labels"] is not None:
            return
        found = gf.Moments.unpack(packet)
        rows = 1e6 * np.ones((int(found.n), found.dim))
        forged = gf.Moments.from_features(rows, np.zeros((len(rows), 1)), None, found.fingerprint)
        packets["upload"] = forged.settle().pack()

    result = sites.run(LEARNED, first(sites, lying(sites.node(LIAR), change, "train")))
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert "more than" in result["sites"]["excluded"][LIAR]
    assert len(result["sites"]["answered"]) == 6


def test_columns_go_no_farther_than_their_reach(sites):
    def change(header: dict, packets: dict) -> None:
        packet = packets["upload"]
        if "counts" in packet.arrays or packet.meta["labels"] is None:
            return
        found = gf.Moments.unpack(packet)
        codes = np.repeat(np.arange(4), 3)
        rows = np.concatenate([np.ones((12, 1)), 1e6 * np.ones((12, found.dim - 1))], axis=1)
        packets["upload"] = gf.Moments.from_features(rows, codes, found.labels, found.fingerprint).settle().pack()

    result = sites.run(LEARNED, first(sites, lying(sites.node(LIAR), change, "train")))
    assert list(result["sites"]["excluded"]) == [LIAR]
    assert "more than" in result["sites"]["excluded"][LIAR]
