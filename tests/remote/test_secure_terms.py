"""What a site asks of a secure sum, against a server that asks sites different things, has few samples in a sum, or asks again
and again: the site's own code, without a network."""

import dataclasses
import json

import numpy as np
import pytest

import gramfold as gf
from gramfold.errors import GramfoldError
from gramfold.privacy.protocol import Keys, Roster
from gramfold.remote.messages import BROADCAST, Message
from gramfold.wire import Packet
from memory_sites import MemorySites, hospitals

pytest.importorskip("cryptography", reason="a secure sum needs the package cryptography")

SECURE = {"secure": True, "release-sites": 3}
AFL = gf.AFL()


@pytest.fixture
def clients():
    return hospitals(5, 40, 4)


@pytest.fixture
def sites(tmp_path, clients):
    return MemorySites(tmp_path, clients, trusted=True)


def test_a_run_over_sites_that_know_each_other_is_the_plain_one_and_all_note_one_question(sites, clients):
    summed, plain = sites.run(AFL, **SECURE), sites.run(AFL, "plain")
    X = np.eye(4)
    np.testing.assert_allclose(summed.global_head.scores(X), plain.global_head.scores(X), rtol=1e-9, atol=1e-9)
    lines = [next(line for line in sites.diary(name) if line.get("secure")) for name in sites.names]
    assert len({line["asked"] for line in lines}) == 1
    assert {line["features"] for line in lines} == {5}


# --- one question for all ---


def of_header(**changed):
    return lambda message: Message({**message.header, **changed}, message.packets)


def other_classes(message):
    task = json.loads(message.header["task"])
    return Message({**message.header, "task": json.dumps({**task, "labels": task["labels"][::-1]})}, message.packets)


def other_map(message):
    """A map of the same size that is not the others': drawn from another seed."""
    if BROADCAST not in message.packets:
        return message
    packet = message.packets[BROADCAST]
    text = json.dumps(packet.meta).replace('"seed": 0', '"seed": 1')
    assert text != json.dumps(packet.meta)
    return Message(message.header, {**message.packets, BROADCAST: Packet(packet.arrays, json.loads(text), packet.triangular)})


LIES = {
    "another map": other_map,
    "another class list": other_classes,
    "other parameters": of_header(parameters={"features": "bias+linear", "penalty": 7.0}),
    "another promise": of_header(**{"release-sites": 5}),
    "another round": of_header(round=3),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_one_site_alone_is_asked_is_in_no_sum(lie, sites):
    """The server changes every message to one site, and passes its answers on as if they were to the common question."""
    victim = sites.names[2]
    sites.asking = lambda name, message: LIES[lie](message) if name == victim and "session" in message.header else message
    public = {}

    def answering(name, message):
        if "public" in message.header:
            public.setdefault("of", message.header["public"])
            return Message({**message.header, "public": public["of"]}, message.packets)
        return message

    sites.answering = answering
    with pytest.raises(
        GramfoldError, match=f"{victim}: it has signed something else than what it was asked|nobody can tell which"
    ):
        sites.run(AFL, **SECURE)
    assert not (sites.folder / "out" / "shared.safetensors").exists()


def test_a_threshold_below_what_a_site_asks_for_is_not_taken(sites, tmp_path):
    with pytest.raises(GramfoldError, match=r"a threshold of at least 0.667, and this one has 0.51; the server must set"):
        sites.run(AFL, **SECURE, **{"secure-threshold": 0.51})
    assert all("bytes" not in line for name in sites.names for line in sites.diary(name))
    for name in sites.names:
        sites.config[name]["release-threshold"] = 0.51
    sites.run(AFL, "lower", **SECURE, **{"secure-threshold": 0.51})
    sites.config[sites.names[0]]["release-threshold"] = 1.0
    with pytest.raises(GramfoldError, match=f"only 4 of at least 5|{sites.names[0]}: this site takes part in secure sums with a"):
        sites.run(AFL, "higher", **SECURE, **{"secure-threshold": 0.9, "minimum-sites": 5})


def test_the_threshold_of_the_list_of_sites_is_the_one_that_was_announced(sites):
    def asking(name, message):
        if message.header.get("step") != "share":
            return message
        roster = Roster.unpack(message.packets["step"])
        return Message(message.header, {"step": dataclasses.replace(roster, threshold=0.51).pack()})

    sites.asking = asking
    with pytest.raises(GramfoldError, match="another threshold than the run"):
        sites.run(AFL, **SECURE)


# --- features and samples ---


def test_a_sum_of_fewer_samples_than_features_is_not_made(tmp_path, clients):
    """225 patients and 521 features: PACE's map of before, and what it chooses now."""
    few = hospitals(5, 60, 8)
    sites = MemorySites(tmp_path, few, trusted=True)
    with pytest.raises(GramfoldError, match="a sum of 225 samples with 521 features can be taken apart into them, and this site"):
        sites.run(gf.PACE(features="bias+linear+fourier:512:0.5"), **SECURE)
    result = sites.run(gf.PACE(), "fitting", **SECURE)
    features = {line["features"] for name in sites.names for line in sites.diary(name) if line.get("secure")}
    assert max(features) <= 225 / 2
    assert len(result.clients) == 5
    for name in sites.names:
        sites.config[name]["release-features"] = 0.1
    with pytest.raises(GramfoldError, match=r"this site allows 0.1 features for each sample"):
        sites.run(gf.PACE(), "asked for more", **SECURE)


def test_a_sum_whose_sites_dropped_out_until_samples_were_too_few_is_not_unmasked(tmp_path):
    """Five sites of 30 training samples have 150, four of them 120; 130 are asked for."""
    sites = MemorySites(tmp_path, hospitals(5, 40, 25), trusted=True, **{"release-features": 26 / 130})

    def answering(name, message):
        lost = name == sites.names[0] and "public" in message.header
        return Message({**message.header, "error": "it is gone"}) if lost else message

    sites.answering = answering
    with pytest.raises(GramfoldError, match="the clients that are left have 120 of at least 130 samples"):
        sites.run(AFL, **SECURE)


def test_a_server_that_says_others_have_more_samples_breaks_their_signatures(tmp_path):
    sites = MemorySites(tmp_path, hospitals(5, 8, 12), trusted=True)

    def asking(name, message):
        if message.header.get("step") != "share":
            return message
        roster = Roster.unpack(message.packets["step"])
        more = [Keys(**{**vars(keys), "samples": 1000}) if keys.name != name else keys for keys in roster.clients]
        return Message(message.header, {"step": dataclasses.replace(roster, clients=more).pack()})

    sites.asking = asking
    with pytest.raises(GramfoldError, match="are not signed by it"):
        sites.run(AFL, **SECURE)


def test_sums_of_many_maps_end_where_a_site_says(tmp_path):
    """Every seed draws another map of the same samples; each tells more about them."""
    sites = MemorySites(tmp_path, hospitals(5, 40, 4), trusted=True, **{"release-features-ever": 0.5})
    method = gf.AFL(features="bias+linear+fourier:20")
    for seed in range(3):
        sites.run(method, f"out{seed}", **SECURE, **{"random-state": seed})
    with pytest.raises(GramfoldError, match=r"been in sums of 100 features, of 150 samples, and it allows 0\.5 for each"):
        sites.run(method, "one more", **SECURE, **{"random-state": 3})
    sites.run(method, "again", **SECURE, **{"random-state": 1})  # the same sum of the same samples tells nothing new
    released = {line["space"]: line["features"] for line in sites.diary("site00") if line.get("space")}
    assert sum(released.values()) == 75


# --- noise ---


def test_invented_sites_do_not_shrink_a_sites_noise(tmp_path, clients):
    """Without the others' keys a site adds all of the noise, however many sites the server shows it; with them its share."""
    noise = {}
    for trusted in (False, True):
        folder = tmp_path / str(trusted)
        folder.mkdir()
        sites = MemorySites(folder, clients, trusted=trusted)
        told = {}

        def answering(name, message, told=told):
            if "noise" in message.header:
                told[name] = message.header["noise"]
            return message

        sites.answering = answering
        result = sites.run(AFL, **SECURE, **{"dp-eps": 100.0})
        noise[trusted] = set(told.values())
        assert result.privacy["dp"]["eps"] == 100.0
    assert noise == {False: {1.0}, True: {1 / 4}}
