"""Runs methods over a real network on this machine: a site for each client of a federation, started and stopped here."""

import itertools
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from gramfold import wire
from gramfold.deploy.template import write_app
from gramfold.deploy.toml import Value
from gramfold.engines.events import Event, Progress
from gramfold.engines.flower.network import Network, Site
from gramfold.errors import GramfoldError, OptionError
from gramfold.evaluation import score_head
from gramfold.federation import Client, Federation
from gramfold.heads import load_head
from gramfold.methods import Method, spec_of
from gramfold.privacy import Privacy
from gramfold.remote import samples
from gramfold.remote.erasure import ERROR
from gramfold.remote.settings import Settings
from gramfold.remote.site import head_file
from gramfold.remote.tasks import task_to_json
from gramfold.results.figures import ClientResult
from gramfold.results.folder import EVENTS
from gramfold.results.result import Result

MAX_SITES = 16
"""A site is two processes, and a third while it works; more sites need more machines."""
DEADLINE_SECONDS = 900.0
OWN: Mapping[str, Value] = {"methods": "*", "release-threshold": 0.5, "release-features": 1e9}
"""What sites allow that are this process's own: all that a run in it would."""


class FlowerRuns:
    """Runs methods one after another on a network that starts with the first of them."""

    def __init__(self, federation: Federation, folder: Path, ending: ExitStack, privacy: Privacy) -> None:
        self.federation, self.folder, self.privacy = federation, folder, privacy
        self._ending, self._numbers, self._starting = ending, itertools.count(1), threading.Lock()
        self._network: Network | None = None

    def __call__(self, method: Method, *, progress: Progress | None = None, keep_heads: bool = True) -> Result:
        out = self.folder / "out" / str(next(self._numbers))
        config: dict[str, Value] = {
            "method": spec_of(method),
            "parameters": json.dumps(dict(method.parameters())),
            "task": task_to_json(self.federation.task),
            "random-state": self.federation.task.seed,
            "minimum-sites": len(self.federation),
            "deadline-seconds": DEADLINE_SECONDS,
            "release-sites": 1,  # all sites are this process's own
            "out": str(out),
            **_private(self.privacy),
        }
        Settings.read(config)  # fail before anything starts on what the server would reject
        network = self.start(progress)
        try:
            network.run(self.folder / "app", config, watch=_EventReader(out / EVENTS, progress))
        except GramfoldError:
            reason = out / ERROR
            if reason.exists():
                raise OptionError(reason.read_text().strip()) from None
            raise
        return self._with_heads(Result.load(out), network, keep_heads)

    def start(self, progress: Progress | None = None) -> Network:
        """The network, started if necessary."""
        with self._starting:
            if self._network is None:
                write_app(self.folder / "app", {})
                network = Network(self.folder, sites_of(self.federation, self.folder), progress=progress)
                self._network = self._ending.enter_context(network)
            return self._network

    def _with_heads(self, result: Result, network: Network, keep_heads: bool) -> Result:
        """The result with the sites' heads, read from their state folders."""

        def tested(client: Client) -> ClientResult:
            """A site that receives only its own head cannot test the shared one; it is tested here."""
            mine = result.clients[client.name]
            if result.global_head is None or mine.shared is not None:
                return mine
            return replace(mine, shared=score_head(result.global_head, client.test(), uncertain=False))

        clients = {client.name: tested(client) for client in self.federation}
        names = clients if keep_heads else ()
        heads = {name: load_head(head_file(network.state(name), result.method)) for name in names}
        return replace(result, clients=clients, heads=heads)


def _private(privacy: Privacy) -> dict[str, Value]:
    """A run's privacy as its configuration says it."""
    secure: dict[str, Value] = {} if privacy.secure is None else {"secure": True, "secure-threshold": privacy.secure.threshold}
    return secure | ({} if privacy.dp is None else {"dp-eps": privacy.dp.eps, "dp-delta": privacy.dp.delta})


class _EventReader:
    """Forwards the events that the server process has written since the last call."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self.path, self.progress, self._read = path, progress, 0

    def __call__(self) -> None:
        if self.progress is None or not self.path.exists():
            return
        lines = self.path.read_text().split("\n")[:-1]  # the last may be half a line
        for line in lines[self._read :]:
            event = Event.from_json(line)
            if not event.problem:
                self.progress(event)
        self._read = len(lines)


@contextmanager
def on_flower(federation: Federation, privacy: Privacy) -> Iterator[FlowerRuns]:
    """A network with a site for each client, for the duration of the block. Its files are kept only if something fails."""
    check_sites(federation)
    folder = Path(tempfile.mkdtemp(prefix="gramfold-flower-"))
    kept = False
    try:
        with ExitStack() as ending:
            yield FlowerRuns(federation, folder, ending, privacy)
    except GramfoldError as error:
        kept = (folder / "link.log").exists()
        raise GramfoldError(f"{error} (logs are in {folder})") if kept else error from None
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def check_sites(federation: Federation) -> None:
    if len(federation) > MAX_SITES:
        raise OptionError(f"{len(federation)} sites are too many for one machine; ask for at most {MAX_SITES} clients")


def sites_of(federation: Federation, folder: Path) -> list[Site]:
    """Write each client's samples to its own file, and return the sites that read them; they allow any method."""
    sites = []
    for client in federation:
        path = folder / "data" / f"{wire.file_name(client.name)}.npz"
        samples.save(path, client, federation.task)
        sites.append(Site(client.name, {"loader": samples.LOADER, "samples": str(path), **OWN}))
    return sites
