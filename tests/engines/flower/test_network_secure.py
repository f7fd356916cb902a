"""Secure sums on real nodes: three of them, and four of which one is killed after the keys were exchanged; both exact."""

import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the flower engine needs Flower")

import gramfold as gf
from gramfold.deploy.processes import members
from gramfold.deploy.template import write_app
from gramfold.engines.events import Event
from gramfold.engines.flower.engine import sites_of
from gramfold.engines.flower.network import Network
from gramfold.remote.secure_site import UNDER_WAY
from gramfold.remote.site import head_file
from gramfold.remote.tasks import task_to_json
from gramfold.results.folder import EVENTS
from strategies import relative

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

THREE, KILLED = ("north", "south", "west"), "east"
METHOD = gf.PACE(features="bias+linear+fourier:64", refinement="relu:64")


@pytest.fixture(scope="module")
def federation():
    rng = np.random.default_rng(5)
    names = (*THREE, KILLED)
    codes = rng.integers(0, 4, (len(names), 120))
    X = rng.standard_normal((4, 8))[codes] + rng.standard_normal((*codes.shape, 8))
    return gf.Federation.from_clients(dict(zip(names, zip(X, codes, strict=True), strict=True)), random_state=1, labels=range(4))


def has_shared(events: Path) -> bool:
    """Whether the site that is to be killed has sent its keys and its shares."""
    lines = events.read_text().splitlines() if events.exists() else []
    return sum((event := Event.from_json(line)).client == KILLED and event.phase == "secure" for line in lines) >= 2


def check_exact(network: Network, federation: gf.Federation) -> None:
    here = gf.run(METHOD, gf.Federation([client for client in federation if client.name in THREE], federation.task))
    for client in federation:
        if client.name in THREE:
            head, X = gf.load_head(head_file(network.state(client.name), METHOD.name)), client.test().inputs
            assert relative(head.scores(X), here.heads[client.name].scores(X)) < 1e-9


def test_three_nodes_and_four_of_which_one_is_killed_after_the_key_exchange(federation, tmp_path):
    sites = {site.name: site for site in sites_of(federation, tmp_path)}
    write_app(tmp_path / "app", {})
    common = {
        "method": METHOD.name, "parameters": json.dumps(METHOD.parameters()), "task": task_to_json(federation.task),
        "secure": True, "minimum-sites": 3, "deadline-seconds": 60.0,  # the one that is killed is waited for so long
    }  # fmt: skip
    with Network(tmp_path, [sites[name] for name in THREE]) as network:
        network.run(tmp_path / "app", {**common, "out": str(tmp_path / "three")}, seconds=600)
        check_exact(network, federation)
        for name in THREE:
            head_file(network.state(name), METHOD.name).unlink()
        network.register(sites[KILLED])
        network.start_node(sites[KILLED])
        network.wait_online()
        out = tmp_path / "four"

        def kill() -> None:
            if network.nodes[KILLED].running and has_shared(out / EVENTS):
                network.nodes[KILLED].send(signal.SIGKILL)

        begun = time.monotonic()
        network.run(tmp_path / "app", {**common, "out": str(out)}, seconds=600, watch=kill)
        assert not network.nodes[KILLED].running
        assert time.monotonic() - begun < 400
        check_exact(network, federation)
        assert [path for name in THREE for path in (network.state(name) / UNDER_WAY).iterdir()] == []
    assert members(tmp_path) == [], "a process was left behind"
    accounts = [json.loads((tmp_path / run / "result.json").read_text())["sites"] for run in ("three", "four")]
    assert [account["folded"] for account in accounts] == [sorted(THREE)] * 2
    assert list(accounts[1]["excluded"]) == [KILLED]
