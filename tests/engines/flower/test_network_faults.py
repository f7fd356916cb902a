"""One network on which nearly everything goes wrong at once: the run ends in time, names the culprits, and the rest is exact."""

import json
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the flower engine needs Flower")

from relay import Relay

import gramfold as gf
from gramfold.deploy.certificates import write_site_key
from gramfold.deploy.processes import members
from gramfold.deploy.template import write_app
from gramfold.engines.flower.engine import sites_of
from gramfold.engines.flower.network import Network, Site
from gramfold.remote.site import head_file
from gramfold.remote.tasks import task_to_json
from strategies import relative

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

GOOD = ("north", "south")
LOADERS = {"unmounted": "raises", "asleep": "sleeps", "not-finite": "sends_nan", "truncated": "sends_wrong_shape"}
DIES, STRANGER = "dies", "stranger"
DEADLINE = 50.0
"""Of each phase; honest sites need 6 to 15 s."""
METHOD = gf.AFL(features="bias+linear+fourier:512")
UPLOAD = 660_000
"""Bytes of a site's upload, R of 195 x 521 numbers: many times what else it says in that time."""


@pytest.fixture(scope="module")
def federation():
    rng = np.random.default_rng(5)
    names = (*GOOD, *LOADERS, DIES, STRANGER)
    codes = rng.integers(0, 4, (len(names), 260))
    X = rng.standard_normal((4, 8))[codes] + rng.standard_normal((*codes.shape, 8))
    return gf.Federation.from_clients(dict(zip(names, zip(X, codes, strict=True), strict=True)), random_state=1, labels=range(4))


def kill_in_mid_upload(network: Network, relay: Relay) -> None:
    if relay.cut.wait(300):
        network.nodes[DIES].send(signal.SIGKILL)


def test_the_run_ends_in_time_with_the_others_exact_result_and_names_the_culprits(federation, tmp_path):
    sites = {site.name: site for site in sites_of(federation, tmp_path)}
    for name, loader in LOADERS.items():
        path = Path(__file__).with_name("misbehaviour.py")
        sites[name] = Site(name, {**sites[name].config, "loader": f"{path}:{loader}"})
    stranger = sites.pop(STRANGER)
    write_app(tmp_path / "app", {})
    config = {
        "method": METHOD.name, "parameters": json.dumps(METHOD.parameters()), "task": task_to_json(federation.task),
        "minimum-sites": 2, "release-sites": 2, "deadline-seconds": DEADLINE, "out": str(tmp_path / "out"),
        "sites": ",".join(client.name for client in federation),
    }  # fmt: skip
    network = Network(tmp_path)
    with network, Relay(network.port, limit=UPLOAD // 2) as relay:
        sites[DIES] = Site(DIES, sites[DIES].config, server=relay.address)
        for site in sites.values():
            network.register(site)
            network.start_node(site)
        write_site_key(network.site_folder(STRANGER) / "key")  # never registered
        network.start_node(stranger)
        network.wait_online(sites)
        threading.Thread(target=kill_in_mid_upload, args=(network, relay), daemon=True).start()
        begun = time.monotonic()
        log = network.run(tmp_path / "app", config, seconds=600)
        took = time.monotonic() - begun
        assert relay.cut.is_set()
        assert not network.nodes[DIES].running
        with pytest.raises(gf.GramfoldError, match=r"'stranger' did not connect: .* register its public key"):
            network.wait_online([STRANGER])
    assert members(tmp_path) == [], "a process was left behind"
    account = json.loads((tmp_path / "out" / "result.json").read_text())["sites"]
    assert account["answered"] == sorted(GOOD)
    reasons = account["excluded"]
    assert set(reasons) == {*LOADERS, DIES, STRANGER}
    assert reasons["unmounted"].endswith("failed: OSError"), "what a loader says of its data stays at the site"
    assert "no answer within" in reasons["asleep"]
    assert "no answer within" in reasons[DIES]
    assert "NaN" in reasons["not-finite"]
    assert "not a message of moments: a 'factor' of" in reasons["truncated"]
    assert "expected but never connected" in reasons[STRANGER]
    assert all("\n" not in reason for reason in reasons.values())
    assert all(name in log for name in (*LOADERS, DIES)), "the log names them too"
    # half a minute for the stranger to connect, one deadline for who does not answer; the rest is the others' own time
    assert took < 30 + DEADLINE + 120
    good = gf.Federation([client for client in federation if client.name in GOOD], federation.task)
    here = gf.run(METHOD, good)
    for name in GOOD:
        head = gf.load_head(head_file(network.state(name), METHOD.name))
        assert relative(head.streams[0].weights, here.heads[name].streams[0].weights) < 1e-9
    assert not any(head_file(network.state(name), METHOD.name).exists() for name in (*LOADERS, DIES))
