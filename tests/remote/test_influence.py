"""Nobody is most of a federation unless the server lets it: shares are bounded, claims are held against what was described, and
what each site moves is shown where a sum is released."""

import dataclasses
import json
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.errors import GramfoldError
from gramfold.privacy import masks
from gramfold.privacy.protocol import Keys
from gramfold.remote.influence import Influence, oversized
from gramfold.remote.messages import Message
from gramfold.remote.secure_site import identity
from memory_sites import MemorySites, hospitals

AFL = gf.AFL()
LARGE = 39_000_000


@pytest.fixture
def sites(tmp_path):
    return MemorySites(tmp_path, hospitals(5, 52, 4))


def account(sites, out="out"):
    return json.loads((sites.folder / out / "result.json").read_text())["sites"]


def scaled(message: Message, times: float) -> Message:
    """An upload of as many times the samples, consistent in itself."""
    upload = gf.Moments.unpack(message.packets["upload"])
    vector = upload.vector() * times
    return Message(message.header, {"upload": gf.Moments.from_vector(vector, upload.public()).pack()})


def lying(site: str, times: float, describes: bool):
    def answering(name, message):
        if name != site or "error" in message.header:
            return message
        if "upload" in message.packets:
            return scaled(message, times)
        if describes and "samples" in message.header:
            return Message({**message.header, "samples": int(message.header["samples"] * times)}, message.packets)
        return message

    return answering


def test_39_samples_that_claim_to_be_39_million_are_refused_for_what_they_described(sites):
    sites.answering = lying("site00", 1e6, describes=False)
    sites.run(AFL)
    assert account(sites)["excluded"] == {
        "site00": f"it described its data as 39 training samples, and its upload claims {LARGE}"
    }


def test_39_samples_that_claim_it_from_the_start_are_bounded_by_the_servers_policy(sites):
    honest = sites.run(AFL, "honest").mean_accuracy
    flipped = dict(hospitals(5, 52, 4))
    X, y = flipped["site00"]
    np.savez(sites.folder / "site00.npz", features=X, labels=(y + 1) % 3)
    sites.answering = lying("site00", 1e6, describes=True)
    believed = sites.run(AFL, "believed")
    others = [believed.clients[name].accuracy for name in sites.names[1:]]
    assert np.mean(others) < honest - 0.3, "the attack works where the server lets one site be everything"
    assert account(sites, "believed")["influence"]["site00"] > 0.9
    bounded = sites.run(AFL, "bounded", **{"max-share": 0.5})
    assert "it says that it has 100% of all samples, and `max-share` is 0.5" in account(sites, "bounded")["excluded"]["site00"]
    assert np.mean([bounded.clients[name].accuracy for name in sites.names[1:]]) > honest - 0.1


def test_where_the_task_is_given_a_sum_that_is_one_sites_is_not_released(sites):
    sites.run(AFL)
    fields = {"inputs": 4, "labels": [0, 1, 2], "outputs": 3, "seed": 0}
    sites.answering = lying("site00", 1e6, describes=False)
    with pytest.raises(GramfoldError, match="the sum is not released: of 'site00', it says that it has 100% of all samples"):
        sites.run(AFL, "given", task=json.dumps(fields), **{"max-share": 0.5})


def test_a_site_that_grows_beyond_its_share_in_a_later_run_is_excluded_and_what_it_sent_stays(sites):
    sites.run(AFL, **{"max-share": 0.5, "release-sites": 1})
    X, y = hospitals(5, 52, 4, seed=1)["site00"]
    np.savez(sites.folder / "site00.npz", features=X, labels=y)
    sites.answering = lying("site00", 1e6, describes=False)
    sites.run(AFL, **{"max-share": 0.5, "release-sites": 1})
    found = account(sites)
    assert "it says that it has 100% of all samples" in found["excluded"]["site00"]
    assert found["samples"]["site00"] == 39


def test_under_masks_samples_are_signed_and_the_sum_has_no_more(sites):
    pytest.importorskip("cryptography", reason="a secure sum needs the package cryptography")
    sites.run(AFL, "fine", secure=True, **{"max-share": 0.3})

    def claims(signed: bool):
        def answering(name, message):
            if name != "site00" or "step" not in message.packets or message.packets["step"].meta["record"] != Keys.kind:
                return message
            keys = dataclasses.replace(Keys.unpack(message.packets["step"]), samples=LARGE)
            if signed:
                state = Path(sites.config[name]["state-dir"])
                session = max((state / "secure").iterdir(), key=lambda path: path.stat().st_mtime_ns).stem
                keys = dataclasses.replace(keys, signature=masks.sign(identity(state), keys.text(session)).hex())
            return Message(message.header, {"step": keys.pack()})

        return answering

    for signed, why in (
        (False, "the keys of 'site00' are not signed by it"),
        (True, f"it described its data as 39 training samples, and its upload claims {LARGE}"),
    ):
        sites.answering = claims(signed)
        sites.run(AFL, str(signed), secure=True)
        assert account(sites, str(signed))["excluded"] == {"site00": why}
    task = json.dumps({"inputs": 4, "labels": [0, 1, 2], "outputs": 3, "seed": 0})
    sites.run(AFL, "given", secure=True, task=task, **{"max-share": 0.3})
    assert "it says that it has 100% of all samples" in account(sites, "given")["excluded"]["site00"]


def test_influence_is_that_on_the_last_round_of_several(sites):
    sites.run(gf.PACE(features="bias+linear+fourier:16@learned"))
    moved = account(sites)["influence"]
    assert moved.keys() == set(sites.names)
    assert all(0 < far < 1 for far in moved.values())


def test_influence_is_what_leaving_the_site_out_does(sites, caplog):
    with caplog.at_level(logging.INFO, "gramfold.remote"):
        result = sites.run(AFL)
    shown = account(sites)
    assert shown["influence"].keys() == set(sites.names)
    assert shown["samples"] == dict.fromkeys(sites.names, 39)
    assert "has 20.0 % of the samples; without it the shared scores move by" in caplog.text
    rng = np.random.default_rng(0)
    parts = [gf.Moments.from_features(rng.standard_normal((30, 4)), rng.integers(0, 3, 30), 3) for _ in range(3)]
    total, found = parts[0] + parts[1] + parts[2], Influence(1.0)
    for name, part in zip("abc", parts, strict=True):
        found.keep(name, part)
    found.show(total, dict.fromkeys("abc", 30))
    penalty = 1e-3 * np.diag(total.gram).mean() * np.eye(4)
    whole = np.linalg.solve(total.gram + penalty, total.cross)
    rest = parts[1] + parts[2]
    apart = whole - np.linalg.solve(rest.gram + penalty, rest.cross)
    expected = np.sqrt(np.trace(apart.T @ total.gram @ apart) / np.trace(whole.T @ total.gram @ whole))
    assert found.moved["a"] == pytest.approx(expected, rel=1e-9)
    assert len(result.clients) == 5


@given(st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.integers(0, 10**9), max_size=9), st.floats(0.05, 1))
def test_nobody_is_left_with_more_than_the_share_unless_they_are_too_few(samples, most):
    odd = oversized(samples, most)
    left = {name: n for name, n in samples.items() if name not in odd}
    assert all(n <= most * sum(left.values()) * (1 + 1e-9) for n in left.values()) or most * len(left) <= 1
    assert not odd or min(samples[name] for name in odd) >= max(left.values(), default=0)
    assert not oversized(samples, 1.0)
