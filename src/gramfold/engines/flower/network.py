"""A complete Flower network on this machine: a SuperLink, a SuperNode per site, TLS, and a key for every site.

    with Network(folder, [Site("north", {"data": "/data/north.npz"}), Site("south", {"data": "/data/south.npz"})]) as network:
        network.run(app, {"method": "pace"})

Everything listens on the loopback only, writes into the folder, and is stopped at the end, whatever happens in between.
"""

import http.client
import itertools
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from gramfold.deploy.certificates import write_certificates, write_site_key
from gramfold.deploy.processes import Process, command_path, end_members, environment, error_line
from gramfold.deploy.toml import Value, to_toml
from gramfold.engines.events import Event, Progress
from gramfold.engines.flower.diagnosis import diagnosis
from gramfold.engines.flower.pinned import write_pins
from gramfold.errors import GramfoldError, NetworkError
from gramfold.wire import file_name

HOST = "127.0.0.1"
Handlers = dict[signal.Signals, Any]
CONNECTION = "gramfold"
"""The network's name in Flower's configuration."""
PORTS = range(20000, 32000)
"""Below the ephemeral ports of outgoing connections, so that a free port stays free."""
START_SECONDS = 180.0
COMMAND_SECONDS = 120.0


@dataclass(frozen=True)
class Site:
    """A site to start: its name, its node configuration (`data` or `loader`), and the server address that it uses."""

    name: str
    config: Mapping[str, Value] = field(default_factory=dict)
    server: str | None = None
    """host:port; None is the network's own."""


class Network:
    """A network that lives as long as the `with` block."""

    def __init__(
        self, folder: str | Path, sites: Sequence[Site] = (), port: int | None = None, progress: Progress | None = None
    ) -> None:
        self.folder = Path(folder).absolute()
        self.progress = progress
        self.port = port or free_port()
        self.sites = list(sites)
        self.link: Process | None = None
        self.nodes: dict[str, Process] = {}
        self._ids: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._handlers: Handlers = {}

    # --- paths ---

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    @property
    def home(self) -> Path:
        """FLWR_HOME for `flwr` commands on this network."""
        return self.folder / "home"

    def site_folder(self, name: str) -> Path:
        return self.folder / "sites" / file_name(name)

    def state(self, name: str) -> Path:
        """Where a site keeps its state."""
        return self.site_folder(name) / "state"

    # --- start and stop ---

    def __enter__(self) -> Self:
        self._handlers = _on_signals(_interrupt, signal.SIGTERM, signal.SIGHUP)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)  # sites' data and keys are in it
            write_certificates(self.keys, HOST)
            self.home.mkdir(parents=True, exist_ok=True)
            connection = {"address": self.address, "root-certificates": str(self.keys / "ca.crt")}
            tables = {"superlink": {"default": CONNECTION}, f"superlink.{CONNECTION}": connection}
            (self.home / "config.toml").write_text(to_toml(tables))
            self.start_link()
            for site in self.sites:
                self.register(site)
                self.start_node(site)
            self.wait_online()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End everything: the sites, then the server, then whatever they left. Nobody gets impatient in between."""
        patient = _on_signals(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        try:
            for node in self.nodes.values():
                node.terminate()
            for node in self.nodes.values():
                node.stop()
            self.stop_link()
            end_members(self.folder)
        finally:
            for number, handler in {**patient, **self._handlers}.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def start_link(self) -> None:
        """Start the server. Its state is in a file, so it can be stopped and restarted."""
        keys = self.keys
        self.link = self._start(
            "link", "flower-superlink", "--host", HOST, "--port", str(self.port), "--database", str(self.folder / "link.db"),
            "--ssl-ca-certfile", str(keys / "ca.crt"), "--ssl-certfile", str(keys / "server.crt"),
            "--ssl-keyfile", str(keys / "server.key"), "--enable-supernode-auth", "--disable-runtime-dependency-installation",
        )  # fmt: skip
        self._until(self._healthy, self.link, f"the server at {self.address}")

    def stop_link(self) -> None:
        if self.link is not None:
            self.link.stop()

    def register(self, site: Site) -> None:
        """Create a site's key and register it at the server."""
        public = write_site_key(self.site_folder(site.name) / "key")
        answer = self.flwr("supernode", "register", str(public), CONNECTION, "--name", site.name, "--format", "json")
        self._ids[site.name] = str(answer["node-id"])

    def start_node(self, site: Site) -> None:
        folder = self.site_folder(site.name)
        config = {"name": site.name, "state-dir": str(self.state(site.name)), **site.config}
        (folder / "site.toml").write_text(to_toml(config))
        self.nodes[site.name] = self._start(
            f"sites/{folder.name}", "flower-supernode", "--superlink", site.server or self.address,
            "--root-certificates", str(self.keys / "ca.crt"), "--auth-supernode-private-key", str(folder / "key"),
            "--node-config", str(folder / "site.toml"), "--host", HOST, "--port", str(free_port()),
            first=write_pins(folder / "pinned"),
        )  # fmt: skip

    def wait_online(self, names: Iterable[str] | None = None) -> None:
        """Wait until these sites (default: all) are online; raise if one of them fails."""
        wanted = set(self.nodes if names is None else names)
        deadline = time.monotonic() + START_SECONDS
        while missing := sorted(wanted - self.online()):
            if self.progress:
                self.progress(Event("starting sites", len(wanted) - len(missing), len(wanted)))
            late = time.monotonic() > deadline
            for name in missing:
                if late or not self.nodes[name].running:
                    raise NetworkError(f"site {name!r} did not connect: {diagnosis(self.nodes[name].output())}")
            time.sleep(1.5)  # each query starts a process, and the sites need the processors to start

    def online(self) -> set[str]:
        """The sites that are online."""
        listed = self._query("supernode", "list", CONNECTION)["nodes"]
        there = {str(node["node-id"]) for node in listed if node["status"] == "online"}
        return {name for name, number in self._ids.items() if number in there}

    def check(self) -> None:
        """Raise if the server or a site has stopped."""
        parts = {"the server": self.link, **{f"site {name!r}": node for name, node in self.nodes.items()}}
        for what, process in parts.items():
            if process is not None and not process.running:
                raise NetworkError(f"{what} has stopped: {diagnosis(process.output())}")

    # --- using it ---

    def run(
        self, app: Path, config: Mapping[str, Value], *, seconds: float = 3600.0, watch: Callable[[], None] = lambda: None
    ) -> str:
        """Run an app to its end, calling `watch` regularly; returns its log."""
        run_id, log = self.start_run(app, config)
        return self.finish_run(run_id, log, seconds=seconds, watch=watch)

    def start_run(self, app: Path, config: Mapping[str, Value]) -> tuple[str, Process]:
        """Start an app; its number, and a process that follows its log."""
        name = f"runs/{next(self._numbers)}"
        settings = self.folder / f"{name}.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(to_toml(config))
        run_id = str(self.flwr("run", str(app), CONNECTION, "--format", "json", "--run-config", str(settings))["run-id"])
        return run_id, self._start(name, "flwr", "log", run_id, CONNECTION, "--stream", home=self.home)

    def finish_run(self, run_id: str, log: Process, *, seconds: float = 3600.0, watch: Callable[[], None] = lambda: None) -> str:
        """Wait for a run to end. Flower's exit codes do not show whether it succeeded; its list of runs does."""
        deadline = time.monotonic() + seconds
        while log.running and time.monotonic() < deadline:
            time.sleep(0.1)
            watch()
        if self.link is None or not self.link.running:
            raise NetworkError(f"the server stopped during the run; see {self.folder / 'link.log'}")
        status = self.status(run_id)
        while not status["status"].startswith("finished") and time.monotonic() < deadline:
            time.sleep(1)
            status = self.status(run_id)
        watch()
        log.stop()
        text = log.output()
        if status["status"] == "finished:completed":
            return text
        if not status["status"].startswith("finished"):
            self.flwr("stop", run_id, CONNECTION, "--format", "json")
            raise NetworkError(f"the run did not finish within {seconds:.0f} s and was stopped; see {log.log}")
        raise NetworkError(f"the run failed: {error_line(text)}")

    def status(self, run_id: str) -> Mapping[str, Any]:
        listed: Mapping[str, Any] = self._query("list", CONNECTION, "--run-id", run_id)["runs"][0]
        return listed

    def flwr(self, *arguments: str) -> dict[str, Any]:
        """Run one of Flower's own commands and return its answer."""
        try:
            done = subprocess.run(
                [command_path("flwr"), *arguments], capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
                stdin=subprocess.DEVNULL, env=environment(self.folder, self.home), cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NetworkError(f"flwr {arguments[0]} did not answer within {COMMAND_SECONDS:.0f} s") from None
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise NetworkError(f"flwr {arguments[0]} failed: {error_line(done.stdout + done.stderr)}") from None
        if not answer.get("success"):
            raise NetworkError(f"flwr {arguments[0]} failed: {error_line(answer.get('error-message') or done.stdout)}")
        return answer

    # --- helpers ---

    def _query(self, *arguments: str) -> dict[str, Any]:
        """Query a server that may be too busy to answer: up to three attempts."""
        for _ in range(2):
            with suppress(GramfoldError):
                return self.flwr(*arguments, "--format", "json")
            time.sleep(1)
        return self.flwr(*arguments, "--format", "json")

    def _start(self, name: str, command: str, *arguments: str, home: Path | None = None, first: Path | None = None) -> Process:
        """A command of Flower's; `first`: a folder to look for the commands in that it starts itself."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        settings = environment(self.folder, home or folder / "home")
        if first is not None:
            settings = {**settings, "PATH": os.pathsep.join([str(first), settings.get("PATH", "")])}
        return Process([command_path(command), *arguments], self.folder / f"{name}.log", settings, folder)

    def _healthy(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.keys / "ca.crt"))
        connection = http.client.HTTPSConnection(HOST, self.port, timeout=5, context=context)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _until(self, ready: Callable[[], bool], process: Process, what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            if not process.running:
                raise NetworkError(f"{what} did not start: {diagnosis(process.output())}")
            if time.monotonic() > deadline:
                raise NetworkError(f"{what} did not start within {START_SECONDS:.0f} s: {diagnosis(process.output())}")
            time.sleep(0.1)


def free_port() -> int:
    """A free port on the loopback."""
    for port in random.sample(PORTS, 200):
        with socket.socket() as trial:
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
            return port
    raise NetworkError("no free port on the loopback")


def _interrupt(number: int, _: object) -> None:
    """SIGTERM and SIGHUP act like Ctrl-C: everything that was started is stopped first."""
    raise KeyboardInterrupt


def _on_signals(handler: Any, *numbers: signal.Signals) -> Handlers:
    """Set a handler, where Python allows it; returns the previous ones. Signals ignored at start (nohup) stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
