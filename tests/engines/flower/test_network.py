"""Three sites, a server, TLS and keys, as real processes: what comes out is what the in-process engine gives."""

import json
import math
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the flower engine needs Flower")
pytest.importorskip("torch", reason="FedAvg needs PyTorch")

from relay import Relay

import gramfold as gf
import stranger
from gramfold.deploy.certificates import write_site_key
from gramfold.deploy.processes import members
from gramfold.engines.flower.engine import on_flower
from gramfold.engines.flower.network import Network, Site
from gramfold.errors import GramfoldError
from gramfold.privacy import Privacy
from gramfold.remote.site import head_file
from gramfold.remote.tasks import task_to_json
from stranger import ClassMeans
from strategies import relative

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

METHODS = {
    "afl": gf.AFL(),
    "fedhip": gf.FedHiP(),
    "apfl": gf.APFL(refinement="relu:64"),
    "pace": gf.PACE(features="bias+linear+fourier:64", refinement="relu:64"),  # learned ones: test_network_project
    "fedavg": gf.FedAvg(rounds=2, lr=0.1, epochs=1),
    "class-means": ClassMeans(own=2.0),  # not gramfold's: in a module of the tests
}
TOLERANCE = {"fedavg": 1e-5}
"""FedAvg trains in float32, here client by client and in process all at once; the rest is float64 sums in another order."""


@pytest.fixture(scope="module")
def three(blobs):
    return gf.Federation.split(*blobs, clients=3, partition="dirichlet:0.5", random_state=3)


@pytest.fixture(scope="module")
def runs(three):
    with pytest.MonkeyPatch.context() as patch, on_flower(three, Privacy()) as runs:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(stranger.__file__).parent), os.environ.get("PYTHONPATH", "")]))
        yield runs
    assert not runs.folder.exists()
    assert members(runs.folder) == [], "a process was left behind"


@pytest.fixture(scope="module")
def network(runs) -> Network:
    return runs.start()


@pytest.fixture(scope="module")
def results(runs, network):
    """All methods at the same time, once the first has installed the app: a server runs as many as it is asked to."""
    with ThreadPoolExecutor(len(METHODS)) as pool:
        begun = {}
        for name, method in METHODS.items():
            begun[name] = pool.submit(runs, method)
            until(lambda: any(network.folder.glob("link/home/apps/*/pyproject.toml")))
        return {name: future.result() for name, future in begun.items()}


@pytest.mark.parametrize("name", METHODS)
def test_heads_and_figures_are_those_of_the_inprocess_engine(name, results, three):
    here, there = gf.run(METHODS[name], three), results[name]
    for client in three:
        mine, theirs = (result.heads[client.name].pack() for result in (here, there))
        assert set(mine.arrays) == set(theirs.arrays)
        for part in mine.arrays:
            assert relative(theirs[part], mine[part]) < TOLERANCE.get(name, 1e-9), part
    ours, theirs = here.to_dict(), there.to_dict()
    for figure in ("name", "parameters", "rounds", "mean_accuracy", "global_accuracy", "uplink_bytes", "downlink_bytes"):
        assert theirs[figure] == ours[figure], figure
    assert [client["name"] for client in theirs["clients"]] == [client["name"] for client in ours["clients"]]
    assert len(theirs["history"]) == len(ours["history"])


def test_a_late_client_joins_from_the_last_broadcast(results, three):
    X, y = three.clients[0].test()
    here = gf.run(METHODS["pace"], three).join(X, y)
    np.testing.assert_allclose(results["pace"].join(X, y).scores(X), here.scores(X), rtol=1e-9, atol=1e-9)


def test_heads_stay_at_the_sites(network, results):
    for name in network.nodes:
        head = gf.load_head(head_file(network.state(name), "pace"))
        np.testing.assert_array_equal(head.streams[0].weights, results["pace"].heads[name].streams[0].weights)
    at_the_server = [path for part in ("out", "link") for path in (network.folder / part).rglob("head*")]
    assert at_the_server == []


def test_private_keys_are_private_and_nothing_listens_to_the_world(network):
    secrets = [network.keys / "server.key", *(network.site_folder(name) / "key" for name in network.nodes)]
    assert [path.stat().st_mode & 0o777 for path in secrets] == [0o600] * 4
    assert _listening(members(network.folder)) == {"127.0.0.1"}


def _listening(pids):
    """The addresses that these processes listen on, as Linux tells."""
    held, found = set(), set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                held.add(str(descriptor.readlink()))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *more = line.split()
            if state == "0A" and f"socket:[{more[5]}]" in held:
                found.add(socket.inet_ntoa(bytes.fromhex(local[:8])[::-1]) if table == "tcp" else local)
    return found


def test_who_cannot_come_in_is_told_why_in_one_line(network, tmp_path):
    strangers = {"unknown": "register its public key", "misled": "does not trust the server's certificate"}
    with Relay(network.port, math.inf, host="127.0.0.2") as detour:  # a name that is not in the certificate
        for name, server in {"unknown": None, "misled": detour.address}.items():
            write_site_key(network.site_folder(name) / "key")
            network.start_node(Site(name, server=server))
        try:
            for name, reason in strangers.items():
                with pytest.raises(GramfoldError, match=reason) as caught:
                    network.wait_online([name])
                assert repr(name) in str(caught.value)
                assert "\n" not in str(caught.value)
        finally:
            for name in strangers:
                network.nodes.pop(name).stop()
    with pytest.raises(GramfoldError, match="its port is taken; choose another"), Network(tmp_path / "second", port=network.port):
        pass


def test_a_server_that_restarts_between_phases_counts_nobody_twice(network, three):
    """Their uploads are on disk when the server crashes; the run fails cleanly, and the next one takes them up from there."""
    out = network.folder / "out" / "restarted"
    config = {
        "method": "afl", "task": task_to_json(three.task), "minimum-sites": 3, "deadline-seconds": 300.0, "out": str(out),
    }  # fmt: skip
    broken, log = network.start_run(network.folder / "app", config)
    until(lambda: (out / "fold.safetensors").exists())
    network.link.send(signal.SIGKILL)
    network.stop_link()
    log.stop()
    until(lambda: not _kill_server_apps(network))  # the machine went down, not only one of its processes
    assert not (out / "result.json").exists()
    network.start_link()
    network.run(network.folder / "app", config, seconds=400)
    result = json.loads((out / "result.json").read_text())
    assert [result["sites"][key] for key in ("answered", "excluded", "late")] == [["0", "1", "2"], {}, []]
    assert result["methods"][0]["uplink_bytes"] == 0, "nothing was sent again"
    here = gf.run(gf.AFL(), three)
    for name, head in here.heads.items():
        there = gf.load_head(head_file(network.state(name), "afl"))
        assert relative(there.streams[0].weights, head.streams[0].weights) < 1e-9
    until(lambda: network.status(broken)["status"].startswith("finished"))
    assert network.status(broken)["status"] == "finished:failed"


def _kill_server_apps(network) -> list[int]:
    """Kill what runs at the server's side; who was still there."""
    there = [pid for pid in members(network.folder) if "serverapp" in Path(f"/proc/{pid}/cmdline").read_text()]
    for pid in there:
        os.kill(pid, signal.SIGKILL)
    return there


def until(true, seconds=180.0):
    deadline = time.monotonic() + seconds
    while True:
        with suppress(OSError):  # of a process that has just ended
            if true():
                return
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
