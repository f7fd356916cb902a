"""Secure sums over Flower's messages, within one process: exact heads, whoever drops out; and what stops a liar."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the flower engine needs Flower")

import gramfold as gf
from flower_cases import Sites, all_answered
from gramfold.engines.flower import records
from gramfold.engines.flower.engine import _private
from gramfold.errors import GramfoldError
from gramfold.privacy import Privacy
from gramfold.privacy.protocol import Keys, Masked, Shares
from gramfold.remote.messages import Message
from gramfold.remote.secure_site import IDENTITY, KNOWN, PUBLIC, UNDER_WAY
from gramfold.remote.settings import Settings
from gramfold.remote.site import Site

METHODS = {
    "afl": gf.AFL(),
    "fedhip": gf.FedHiP(),
    "pace": gf.PACE(refinement="relu:32"),
    "deepafl": gf.DeepAFL(depth=1, features="bias+linear+gelu:16", refinement="relu:32"),
    "fedavg": gf.FedAvg(rounds=2, lr=0.1, epochs=1),
}


@pytest.fixture
def sites(federation, tmp_path):
    return Sites(tmp_path, federation)


def step_of(message) -> str:
    return json.loads(message.content["header"]["json"]).get("step", "")


def failing_at(node, step: str):
    """A node that dies when it is asked for a step, and answers nothing from then on."""
    dead = []

    def answer(message):
        if dead or step_of(message) == step:
            dead.append(True)
            raise ConnectionError("the node is gone")
        return node(message)

    return answer


def lying(node, step: str, change):
    """A node that changes its answer to a step: `change` gets the header and the record, and gives others."""

    def answer(message):
        told, asked = node(message), step_of(message)
        if asked != step:
            return told
        content = records.read(told.content)
        header, record = change(dict(content.header), content.packets["step"])
        told.content = records.RecordBuilder().content(type(content)(header, {"step": record}))
        return told

    return answer


@pytest.mark.parametrize("name", METHODS)
def test_heads_are_those_of_the_plain_run(name, sites, federation):
    method = METHODS[name].settled(federation.task, masked=True)  # under masks the default has fewer features
    if name == "fedavg":
        pytest.importorskip("torch", reason="FedAvg needs PyTorch")
    result = sites.run(method, secure=True)
    assert all_answered(result, sites)
    scale = {"fedavg": 1e-4}.get(name, 1e-8)
    assert sites.distance(method, gf.run(method, federation)) < scale
    assert result["methods"][0]["privacy"] == {"secure_sum": {"threshold": 2 / 3, "minimum": 3}}
    assert not (sites.folder / "out" / "fold.safetensors").exists()


@pytest.mark.parametrize(
    ("step", "counted"), [("keys", False), ("share", False), ("mask", False), ("confirm", True), ("unmask", True)]
)
def test_a_site_that_dies_leaves_an_exact_sum(step, counted, sites, federation):
    nodes = {name: sites.node(name) for name in sites.names}
    gone = sites.names[2]
    method = gf.PACE(features="bias+linear", refinement="relu:32")  # one round
    result = sites.run(method, {**nodes, gone: failing_at(nodes[gone], step)}, secure=True)
    assert list(result["sites"]["excluded"]) == [gone]
    assert (gone in result["sites"]["folded"]) == counted
    expected = gf.run(method, federation if counted else sites.without(gone))
    left = dataclasses.replace(expected, heads={name: head for name, head in expected.heads.items() if name != gone})
    assert sites.distance(gf.PACE(), left) < 1e-8


def test_too_many_that_die_end_the_run_and_are_named(sites):
    nodes = {name: sites.node(name) for name in sites.names}
    for name in sites.names[:3]:
        nodes[name] = failing_at(nodes[name], "mask")
    with pytest.raises(GramfoldError, match=f"only 4 of at least 5 clients sent a masked vector.*{sites.names[0]}: "):
        sites.run(gf.AFL(), nodes, secure=True)


def test_two_sites_are_too_few(blobs, tmp_path):
    two = Sites(tmp_path, gf.Federation.split(*blobs, clients=2, partition="iid", random_state=0))
    with pytest.raises(GramfoldError, match="only 2 of at least 3"):
        two.run(gf.AFL(), secure=True)


def test_secrets_are_gone_when_the_sum_is_made_and_the_diary_says_what_left(sites):
    sites.run(gf.AFL(), secure=True)
    for name in sites.names:
        state = Path(sites.config[name]["state-dir"])
        assert list((state / UNDER_WAY).iterdir()) == []
        assert (state / IDENTITY).stat().st_mode & 0o777 == 0o600
        assert len((state / PUBLIC).read_text().strip()) == 64
        line, told = map(json.loads, (state / "sent.jsonl").read_text().splitlines())
        assert told["of"] == line["upload"]
        assert (line["sites"], line["method"], line["dp"]) == (7, "afl", None)
        assert line["secure"]
        assert len(line["upload"]) == 32


def test_the_server_sees_masked_numbers_and_nothing_else_of_an_upload(sites, monkeypatch):
    from gramfold.remote import secure as at_server

    seen = []
    original = at_server._Sum._add
    monkeypatch.setattr(at_server._Sum, "_add", lambda self, one, header: seen.append(one.words) or original(self, one, header))
    sites.run(gf.AFL(), secure=True)
    assert len(seen) == 7
    for words in seen:
        assert abs(np.asarray(words)[1].astype(float).mean() / 2.0**63 - 1) < 0.25  # uniform; unmasked, the high word is 0 or -1


# --- who is who ---


def test_an_identity_that_has_changed_is_refused_by_the_others(sites):
    sites.run(gf.AFL(), secure=True)
    (Path(sites.config[sites.names[0]]["state-dir"]) / IDENTITY).unlink()
    with pytest.raises(GramfoldError, match="is not the one that is known here"):
        sites.run(gf.AFL(), secure=True, out="again")


def test_only_trusted_keys_are_masked_with(sites, tmp_path):
    sites.run(gf.AFL(), secure=True)
    keys = {name: (Path(sites.config[name]["state-dir"]) / PUBLIC).read_text() for name in sites.names}
    listed = tmp_path / "keys.json"
    listed.write_text(json.dumps(keys))
    for name in sites.names:
        sites.config[name]["trusted-keys"] = str(listed)
        (Path(sites.config[name]["state-dir"]) / KNOWN).unlink()
    assert all_answered(sites.run(gf.AFL(), secure=True, out="listed"), sites)
    del keys[sites.names[3]]
    listed.write_text(json.dumps(keys))
    with pytest.raises(GramfoldError, match="is not known here"):
        sites.run(gf.AFL(), secure=True, out="unlisted")


# --- lies ---


def other_name(header, packet):
    return header, dataclasses.replace(Keys.unpack(packet), name="somebody").pack()


def low_order(header, packet):
    return header, dataclasses.replace(Keys.unpack(packet), mask="00" * 32).pack()


def for_nobody(header, packet):
    return header, Shares(Shares.unpack(packet).name, {}).pack()


def other_space(header, packet):
    return {**header, "public": {**header["public"], "fingerprint": "mine"}}, packet


def huge(header, packet):
    return {**header, "public": {**header["public"], "dim": 10**9}}, packet


def short(header, packet):
    masked = Masked.unpack(packet)
    return header, Masked(masked.name, masked.words[:, :-1]).pack()


def no_words(header, packet):
    masked = Masked.unpack(packet)
    return header, Masked(masked.name, masked.words.astype(np.float64)).pack()


LIES = [
    ("keys", other_name, "another site's name"),
    ("keys", low_order, "is no key|not signed"),
    ("share", for_nobody, "not for its neighbours"),
    ("mask", other_space, "differ in their feature map"),
    ("mask", huge, "not a vector of moments"),
    ("mask", short, "not a vector of moments|has shape"),
    ("mask", no_words, "is none"),
]


@pytest.mark.parametrize(("step", "lie", "why"), LIES)
def test_what_can_be_seen_to_be_wrong_excludes_its_sender_and_the_sum_is_that_of_the_others(step, lie, why, sites):
    nodes = {name: sites.node(name) for name in sites.names}
    liar = sites.names[0]
    result = sites.run(gf.AFL(), {**nodes, liar: lying(nodes[liar], step, lie)}, secure=True)
    assert list(result["sites"]["excluded"]) == [liar]
    assert re.search(why, result["sites"]["excluded"][liar])
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), sites.without(liar))) < 1e-8


def test_a_lie_under_the_mask_ends_the_run_and_nobody_can_be_named(sites):
    def change(header, packet):
        masked = Masked.unpack(packet)
        words = np.array(masked.words)
        words[1, 0] += np.uint64(10**6)  # the first number of the gram
        return header, Masked(masked.name, words).pack()

    nodes = {name: sites.node(name) for name in sites.names}
    with pytest.raises(GramfoldError, match="some site lied, and under a secure sum nobody can tell which"):
        sites.run(gf.AFL(), {**nodes, sites.names[0]: lying(nodes[sites.names[0]], "mask", change)}, secure=True)


# --- a site's own say ---


def test_a_site_that_requires_a_secure_sum_sends_nothing_plain_whatever_the_server_says(sites):
    for name in sites.names:
        sites.config[name]["release-require"] = "secure"
    assert all_answered(sites.run(gf.AFL(), secure=True), sites)
    with pytest.raises(GramfoldError, match="requires a secure sum"):
        sites.run(gf.AFL(), out="plain")
    site = Site(sites.config[sites.names[0]])
    lie = {"gramfold": gf.__version__, "secure": True, "method": "afl", "parameters": {}, "round": 0, "run": "", "task": "{}"}
    assert "asked for an upload without it" in site.answer("local", lambda: Message(lie, {})).header["error"]


def test_a_site_that_wants_more_noise_or_more_sites_takes_no_part(sites):
    for key, value, why in (("release-eps", 2.0, "eps of at most 2"), ("release-sites", 8, "at least 8 sites")):
        first = sites.config[sites.names[0]]
        first[key] = value
        result = sites.run(gf.AFL(), **{"secure": True, "dp-eps": 1e6, "release-sites": 3, "out": key})
        assert why in result["sites"]["excluded"][sites.names[0]]
        del first[key]


def test_a_site_with_few_samples_receives_and_is_not_in_the_sum(sites, federation):
    few = min(federation, key=lambda client: client.train().n).name
    sites.config[few]["release-samples"] = 10_000
    result = sites.run(gf.AFL(), secure=True)
    assert few not in result["sites"]["folded"]
    assert few in result["sites"]["answered"]
    assert sites.distance(gf.AFL(), gf.run(gf.AFL(), sites.without(few))) < 1e-8


def test_two_sums_that_differ_by_one_site_are_not_both_made(sites):
    nodes = {name: sites.node(name) for name in sites.names}
    del nodes[sites.names[0]]
    config = {"secure": True, "release-sites": 3}
    sites.run(gf.AFL(), nodes, **config)
    with pytest.raises(GramfoldError, match="the sum is not released again"):
        sites.run(gf.AFL(), **config)


# --- settings ---


def test_noise_over_a_network_is_shared_under_the_sum(sites):
    result = sites.run(gf.AFL(), **{"secure": True, "dp-eps": 1e6})
    assert result["methods"][0]["privacy"]["dp"]["eps"] == 1e6
    assert result["methods"][0]["mean_accuracy"] > 0.5
    line = (Path(sites.config[sites.names[0]]["state-dir"]) / "sent.jsonl").read_text().splitlines()[0]
    assert json.loads(line)["dp"] == {"eps": 1e6, "delta": 1e-5}


@pytest.mark.parametrize(
    ("config", "method", "why"),
    [
        ({"dp-eps": 1.0}, gf.AFL(), "noise goes with a secure sum"),
        ({"secure": True, "secure-threshold": 0.4}, gf.AFL(), "above a half"),
        ({"secure": True}, gf.FedHiP(at="server"), "from its own upload"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(config, method, why, sites):
    with pytest.raises(GramfoldError, match=why):
        sites.run(method, **config)
    assert not (sites.folder / "state").exists()


def test_a_folder_of_single_uploads_is_not_mixed_with_a_secure_sum(sites):
    sites.run(gf.AFL())
    with pytest.raises(GramfoldError, match="a secure run needs a folder of its own"):
        sites.run(gf.AFL(), secure=True)


def test_a_runs_privacy_is_told_to_the_server_whole():
    for privacy in (Privacy(), Privacy(gf.SecureSum(0.8)), Privacy(gf.SecureSum(), gf.DP(2.0, 1e-6))):
        assert Settings.read({"method": "afl", **_private(privacy)}).privacy == privacy
