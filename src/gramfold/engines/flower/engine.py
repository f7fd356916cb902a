"""Methods on a federation of this process, over a real network on this machine: a site per client, started and ended here."""

import itertools
import json
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.deploy.template import write_app
from gramfold.deploy.toml import Value
from gramfold.engines.flower.network import Network, Site
from gramfold.engines.result import ClientResult, Result, Run
from gramfold.engines.workers import Progress
from gramfold.errors import GramfoldError
from gramfold.evaluation import score_head
from gramfold.federation import Federation
from gramfold.heads import Head, load_head
from gramfold.methods import Method
from gramfold.remote import samples
from gramfold.remote.settings import Settings
from gramfold.remote.site import head_file
from gramfold.remote.tasks import task_to_json
from gramfold.wire import Packet

MAX_SITES = 16
"""A site is two processes, and a third while it works; more of them belong on more machines."""
DEADLINE_SECONDS = 900.0
PHASES = {"query": "local", "train": "round", "evaluate": "personalize"}
_ANSWERED = re.compile(r"gramfold: (?P<phase>query|train|evaluate): .* answered, .* \((?P<done>\d+) of (?P<all>\d+)\)")


class FlowerRuns:
    """Runs methods one after another on a network that starts with the first of them."""

    def __init__(self, federation: Federation, folder: Path, ending: ExitStack) -> None:
        self.federation, self.folder = federation, folder
        self._ending, self._numbers, self._starting = ending, itertools.count(1), threading.Lock()
        self._network: Network | None = None

    def __call__(self, method: Method, *, progress: Progress | None = None, keep_heads: bool = True) -> Result:
        out = self.folder / "out" / str(next(self._numbers))
        config: dict[str, Value] = {
            "method": method.name,
            "parameters": json.dumps(dict(method.parameters())),
            "task": task_to_json(self.federation.task),
            "seed": self.federation.task.seed,
            "minimum-sites": len(self.federation),
            "deadline-seconds": DEADLINE_SECONDS,
            "out": str(out),
        }
        Settings.read(config)  # what the server would refuse is refused before anything starts
        network = self.start(progress)
        try:
            network.run(self.folder / "app", config, show=partial(_report, progress))
        except GramfoldError:
            told = out / "error.txt"
            if told.exists():
                raise GramfoldError(told.read_text().strip()) from None
            raise
        return self._result(method, network, out, keep_heads)

    def start(self, progress: Progress | None = None) -> Network:
        """The network, which is up after this."""
        with self._starting:
            if self._network is None:
                write_app(self.folder / "app", {})
                network = Network(self.folder, sites_of(self.federation, self.folder), progress=progress)
                self._network = self._ending.enter_context(network)
            return self._network

    def _result(self, method: Method, network: Network, out: Path, keep_heads: bool) -> Result:
        """The sites' heads from where they keep them, tested here; the rest as the server wrote it down."""
        entry: dict[str, Any] = json.loads(wire.read(out / "result.json"))["methods"][0]
        told = {client["name"]: client for client in entry["clients"]}
        shared = load_head(out / "shared.safetensors") if (out / "shared.safetensors").exists() else None
        clients: dict[str, ClientResult] = {}
        heads: dict[str, Head] = {}
        for client in self.federation:
            mine, test = told[client.name], client.test()
            head = load_head(head_file(network.state(client.name), method.name))
            clients[client.name] = ClientResult(
                client.name, mine["train"], score_head(head, test), None if shared is None else score_head(shared, test),
                mine["uplink_bytes"], mine["downlink_bytes"], mine["chosen"],
            )  # fmt: skip
            if keep_heads:
                heads[client.name] = head
        broadcast = Packet.from_bytes(wire.read(out / "broadcast.safetensors"))
        return Result(
            method=method.name,
            parameters=method.parameters(),
            rounds=method.rounds,
            clients=clients,
            heads=heads,
            global_head=shared,
            seconds=entry["seconds"],
            run=Run(method, self.federation.task, broadcast),
            chosen=entry["chosen"],
            history=entry["history"],
        )


def _report(progress: Progress | None, line: str) -> None:
    """Progress, from a line of the server's log."""
    if progress and (told := _ANSWERED.search(line)):
        progress(PHASES[told["phase"]], int(told["done"]), int(told["all"]))


@contextmanager
def on_flower(federation: Federation) -> Iterator[FlowerRuns]:
    """A network with a site for each client, as long as the block lasts. What it wrote is kept only if something fails."""
    check_sites(federation)
    folder = Path(tempfile.mkdtemp(prefix="gramfold-flower-"))
    kept = False
    try:
        with ExitStack() as ending:
            yield FlowerRuns(federation, folder, ending)
    except GramfoldError as error:
        kept = (folder / "link.log").exists()
        raise GramfoldError(f"{error} (logs are in {folder})") if kept else error from None
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def check_sites(federation: Federation) -> None:
    if len(federation) > MAX_SITES:
        raise GramfoldError(f"{len(federation)} sites are too many for one machine; ask for at most {MAX_SITES} clients")


def sites_of(federation: Federation, folder: Path) -> list[Site]:
    """Every client's samples in a file of its own, and the site that will read it."""
    sites = []
    for client in federation:
        path = folder / "data" / f"{wire.file_name(client.name)}.npz"
        samples.save(path, client, federation.task)
        sites.append(Site(client.name, {"loader": samples.LOADER, "samples": str(path)}))
    return sites
