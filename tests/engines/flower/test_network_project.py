"""`gramfold flower new`, as its README says, behind a real nginx; and `gramfold flower up`, as it says itself."""

import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the flower engine needs Flower")

import gramfold as gf
from gramfold.deploy.processes import Process, end_members, environment, members
from gramfold.deploy.template import LINK_PORT
from gramfold.engines.flower.network import free_port
from gramfold.remote.site import head_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SITES = ("north", "south")
LOADER = """
import numpy as np

def load(site):
    with np.load("own.npz") as file:
        X, y = file["X"], file["y"]
    return X[:110], y[:110], X[110:], y[110:]
"""
NGINX = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {configuration};
}}
"""
"""What a distribution has around our configuration, but in a folder of our own."""


def gramfold(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "gramfold", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


class Project:
    """A project made by `gramfold flower new`, and bash on its machines."""

    def __init__(self, folder, port):
        self.mark = folder
        self.port, self.link_port = port, free_port()
        done = gramfold("flower", "new", "ours", "--sites", ",".join(SITES), "--server", f"127.0.0.1:{port}", folder=folder)
        assert done.returncode == 0, done.stderr
        self.folder = folder / "ours"
        self.server = self.folder / "server"
        for path in ("README.md", "server/nginx.conf", "server/flwr/config.toml"):  # the usual port may be taken here
            text = (self.folder / path).read_text()
            assert str(LINK_PORT) in text
            (self.folder / path).write_text(text.replace(str(LINK_PORT), str(self.link_port)))
        blocks = re.findall(r"```sh\n(.*?)```", (self.folder / "README.md").read_text(), re.DOTALL)
        names = ("install", "server", "nginx", "key", "register", "site", "run")
        self.commands = dict(zip(names, blocks, strict=True))

    def start(self, what, place, more=""):
        """A command of the README that stays."""
        return Process(["bash", "-c", self.commands[what].rstrip() + more], place / f"{what}.log", self._environment(), place)

    def do(self, command, place):
        """A command of the README that ends."""
        done = subprocess.run(
            ["bash", "-ec", command], cwd=place, env=self._environment(), capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _environment(self):
        kept = environment(self.mark, self.mark)
        return {name: value for name, value in kept.items() if not name.startswith("FLWR")}

    def status(self, path):
        """What the world gets for a path, as it is: nothing here tidies it up."""
        context = ssl.create_default_context(cafile=str(self.server / "keys" / "ca.crt"))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=20, context=context)
        try:
            connection.request("POST", path, body=b"", headers={"Content-Type": "application/protobuf"})
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture(scope="module")
def project(tmp_path_factory, blobs):
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed; sites are not tried through it")
    folder = tmp_path_factory.mktemp("project")
    project = Project(folder, free_port())
    X, y = blobs
    with ExitStack() as ending:
        ending.callback(end_members, folder)
        server = project.start("server", project.server)
        ending.callback(server.stop)
        (folder / "nginx").mkdir()
        (folder / "nginx.conf").write_text(
            NGINX.format(
                user="user root;" if os.getuid() == 0 else "",
                folder=folder / "nginx",
                configuration=project.server / "nginx.conf",
            )
        )
        front = [nginx, "-e", str(folder / "nginx" / "error.log"), "-c", str(folder / "nginx.conf")]
        subprocess.run([*front, "-t"], check=True, capture_output=True, timeout=60)
        proxy = Process(front, folder / "nginx.log", environment(folder, folder), folder)
        ending.callback(proxy.stop)
        _until(lambda: project.status("/v1/fleet/") != 502, server, proxy)
        for k, name in enumerate(SITES):
            place = project.folder / "sites" / name
            (place / "loader.py").write_text(LOADER)
            np.savez(place / "own.npz", X=X[k::2], y=y[k::2])
            project.do(project.commands["key"].replace(SITES[0], name), place)
            shutil.copy(place / "key.pub", project.server / f"{name}.pub")
        project.do(project.commands["register"], project.server)
        sites = [project.start("site", project.folder / "sites" / name, f" --port {free_port()}") for name in SITES]
        for site in sites:
            ending.callback(site.stop)
        run = project.commands["run"].replace("--stream", "--stream -c 'release-sites=2'")  # two sites, who have agreed
        assert "2 sites have their heads" in project.do(run, project.server)
        yield project
    assert members(folder) == [], "a process was left behind"


def _until(true, *processes, seconds=180.0):
    deadline = time.monotonic() + seconds
    while True:
        assert all(process.running for process in processes), [process.output()[-2000:] for process in processes]
        try:
            if true():
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def test_following_the_readme_gives_every_site_its_head(project, blobs):
    result = json.loads((project.server / "result" / "result.json").read_text())
    assert [result["sites"][key] for key in ("answered", "excluded", "late")] == [list(SITES), {}, []]
    assert "pace" in (project.server / "result" / "report.html").read_text()
    X, y = blobs
    cut = {name: (X[k::2], y[k::2]) for k, name in enumerate(SITES)}  # a site that gave no test samples would draw its own
    parts = {name: (own[:110], of[:110], own[110:], of[110:]) for name, (own, of) in cut.items()}
    here = gf.run(gf.PACE(), gf.Federation.from_clients(parts))
    for name in SITES:
        head = gf.load_head(head_file(project.folder / "sites" / name / "state", "pace"))
        np.testing.assert_allclose(head.scores(X), here.heads[name].scores(X), rtol=1e-9, atol=1e-9)
    sent = [
        client["accuracy"] for client in result["methods"][0]["clients"]
    ]  # rounded to the standard error of some forty samples
    assert sent == pytest.approx([here.clients[name].accuracy for name in SITES], abs=0.1)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/control/start-run", "/v1/control/list-runs", "/v1/runtime/pull-task-input", "/health", "/", "/docs",
        "/v1/fleet/../control/list-runs", "/v1/fleet/%2e%2e/control/list-runs", "/v1/fleet/..%2fcontrol/list-runs",
        "/v1//control/list-runs", "/v1/FLEET/../control/list-runs", "/v1/control/../control/list-runs",
    ],
)  # fmt: skip
def test_from_outside_only_the_sites_own_path_is_open(project, path):
    assert project.status(path) == 403


def test_a_site_that_does_not_sign_gets_nothing(project):
    assert project.status("/v1/fleet/pull-messages") in (400, 401, 403)


def test_the_keys_that_are_handed_out_are_the_public_ones(project):
    for name in SITES:
        handed = {path.name for path in (project.folder / "sites" / name).iterdir()}
        assert {"ca.crt", "site.toml", "loader.py", "flower.env"} <= handed
        assert not {"server.key", "server.crt"} & handed
    assert (project.server / "keys" / "server.key").stat().st_mode & 0o777 == 0o600


def test_up_runs_an_app_as_it_says_and_leaves_nothing(tmp_path):
    """Its own words are copied into another shell, as anybody would; Ctrl-C ends everything."""
    command = [sys.executable, "-m", "gramfold", "flower", "up", "--clients", "2", "--out", "net"]
    up = Process(command, tmp_path / "up.log", {**os.environ, "PYTHONUNBUFFERED": "1"}, tmp_path)
    try:
        _until(lambda: "The result will be in" in up.output(), up)
        assert len(members(tmp_path / "net")) >= 6
        commands = up.output().partition("In another terminal:\n")[2].partition("The result")[0]
        commands = commands.replace("--stream", "--stream -c 'method=\"afl\"'")  # one round: the README's test has all of PACE's
        assert "afl" in commands
        done = subprocess.run(["bash", "-ec", commands], cwd="/", capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "2 sites have their heads" in done.stdout + done.stderr
        result = json.loads((tmp_path / "net" / "result" / "result.json").read_text())
        assert result["sites"]["answered"] == ["0", "1"]
        assert result["methods"][0]["mean_accuracy"] > 0.9
        # a test run in the background ignores Ctrl-C, and so does what it starts
        os.kill(up.pid, signal.SIGTERM if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else signal.SIGINT)
        _until(lambda: not up.running)
        assert up.returncode == 130
        assert members(tmp_path / "net") == []
    finally:
        up.stop()
        end_members(tmp_path / "net")
