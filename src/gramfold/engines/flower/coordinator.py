"""A run from the server's side: ask, fold, tell, in as few messages as the method allows, and go on without who fails.

    (task)        where no task is given: sites say what their data is like, and must agree
    query         methods of one round: the upload
    train         methods of many rounds: the upload of each
    evaluate      every site makes its head, keeps it, and says how well it does

Who raises, sends what cannot be, or misses the deadline is named with a reason and left out; the rest is exact. An upload that
comes after its deadline is folded into the sum on disk, and counts in the next run with the same `out`; in a method of many
rounds its site takes part again from the next round on.
"""

import json
import logging
import re
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from flwr.app import RecordDict

from gramfold import uploads, wire
from gramfold.engines.flower import records
from gramfold.engines.flower.exchange import Arrival, Exchange
from gramfold.engines.inprocess import PHASES
from gramfold.engines.result import ClientResult, Result, Run
from gramfold.errors import GramfoldError
from gramfold.evaluation import Scored
from gramfold.evaluation.metrics import MAX_SAMPLES
from gramfold.federation import Task
from gramfold.methods import Method
from gramfold.remote.fold import Fold, saved_task
from gramfold.remote.settings import Settings
from gramfold.remote.site import BROADCAST, REPLACED, UPLOAD, one_line
from gramfold.remote.tasks import agreed_task, session_of, task_from_json, task_to_json
from gramfold.report import render_page
from gramfold.report.text import size
from gramfold.version import __version__
from gramfold.wire import Packet

LOG = logging.getLogger("gramfold.flower")
SAVE_EVERY = 30.0
"""Seconds between two saves of the sum while uploads come in."""
FOLD, KEPT, ERROR = "fold.safetensors", "uploads", "error.txt"
TASK, QUERY, TRAIN, EVALUATE = "query.task", "query", "train", "evaluate"
Take = Callable[["Peer", Mapping[str, Any], Mapping[str, Packet]], None]
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass
class Peer:
    """A node as the server knows it."""

    node: int
    registered: str
    site: str = ""
    """What it calls itself; empty until it has answered."""
    told: set[str] = field(default_factory=set)
    """The arrays it has, of which it need not be told again."""
    up: int = 0
    down: int = 0
    seconds: float = 0.0
    """What it worked; the rest of a phase is the network's and the start of processes."""

    @property
    def known(self) -> bool:
        return bool(self.site or self.registered)

    @property
    def label(self) -> str:
        return self.site or self.registered or f"node {self.node}"


class Coordinator:
    """One run."""

    def __init__(self, exchange: Exchange, settings: Settings) -> None:
        self.exchange, self.settings, self.method = exchange, settings, settings.method
        self.peers: dict[int, Peer] = {}
        self.live: set[int] = set()
        """The nodes that take part in what is asked next."""
        self.failed: dict[str, str] = {}
        self.late: list[str] = []
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.history: list[dict[str, Any]] = []
        self.fold = Fold()
        self._fold_file, self._kept = settings.out / FOLD, settings.out / KEPT
        self._session = self._run = ""
        self._told: Packet = Packet()
        self._task_text = ""
        self._saved = 0.0
        """When the sum was last written."""

    def run(self) -> Result:
        """Everything, from waiting for nodes to the last figure."""
        settings, method = self.settings, self.method
        self._make_out()
        self._find_nodes()
        task = self._agree()
        _check_able(method, task)
        self._task_text, self._session = task_to_json(task), session_of(method, task)
        self._run = "" if method.rounds == 1 else secrets.token_hex(8)
        broadcast = self._timed("aggregate", lambda: method.begin(task))
        for number in range(method.rounds):
            broadcast = self._round(number, broadcast, task)
        clients = self._personalize(broadcast)
        for peer in self.peers.values():
            if peer.site not in clients:
                self.failed.setdefault(peer.label, "it came back too late to make its head")
        for name in settings.sites:
            if name not in clients:
                self.failed.setdefault(name, "it was expected and never came")
        shared = method.global_head(broadcast)
        wire.write_atomically(settings.out / "broadcast.safetensors", Packet(
            broadcast.arrays, broadcast.meta, broadcast.triangular).to_bytes())  # fmt: skip
        if shared is not None:
            shared.save(settings.out / "shared.safetensors")
        result = Result(
            method=method.name, parameters=method.parameters(), rounds=method.rounds, clients=clients, heads={},
            global_head=shared, seconds=self.seconds, run=Run(method, task, broadcast),
            chosen=dict(broadcast.meta.get("chosen", {})), history=self.history,
        )  # fmt: skip
        result = result.with_final_figures()
        self._write(result, task)
        return result

    # --- before the first round ---

    def _make_out(self) -> None:
        out = self.settings.out
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / ERROR).unlink(missing_ok=True)
        except OSError as error:
            raise GramfoldError(f"cannot write to {out}: {error.strerror}; give another `out`") from None

    def _find_nodes(self) -> None:
        settings = self.settings
        found = self.exchange.nodes(settings.minimum_sites, len(settings.sites))
        if not found:
            raise GramfoldError(f"no site is connected after {settings.deadline:g} s; start the SuperNodes and run again")
        if len(found) < settings.minimum_sites:
            raise GramfoldError(f"only {len(found)} of at least {settings.minimum_sites} sites connected; start more SuperNodes")
        self._welcome(found)

    def _welcome(self, nodes: Mapping[int, str]) -> None:
        """Take in nodes that are new."""
        new = {node: Peer(node, name) for node, name in nodes.items() if node not in self.peers}
        self.peers |= new
        self.live |= new.keys()
        if new:
            LOG.info("%d sites connected", len(new))

    def _agree(self) -> Task:
        """The task that is given, that of what is folded in `out` already, or the one that all sites agree on."""
        if self.settings.task is not None:
            return self.settings.task
        saved = saved_task(self._fold_file)
        if saved is not None:
            return task_from_json(saved)
        told: dict[str, Mapping[str, Any]] = {}

        def take(peer: Peer, answer: Mapping[str, Any], parts: Mapping[str, Packet]) -> None:
            told[peer.site] = answer

        self._ask(TASK, lambda peer: records.content(self._header()), take)
        if not told:
            raise GramfoldError(f"no site could describe its data; {self._reasons()}")
        try:
            return agreed_task(told, self.settings.seed)
        except (KeyError, TypeError) as error:
            raise GramfoldError(f"a site's description of its data cannot be read: {error!r}") from None

    # --- rounds ---

    def _round(self, number: int, broadcast: Packet, task: Task) -> Packet:
        """Ask for uploads, fold them as they come, and aggregate."""
        method, once, begun = self.method, self.method.rounds == 1, time.monotonic()
        if number:
            self._welcome(self.exchange.nodes())
        keep = method.keeps_uploads and number == method.rounds - 1
        self._told = broadcast
        if keep:
            if not once:
                shutil.rmtree(self._kept, ignore_errors=True)
            self._kept.mkdir(exist_ok=True)
        kept = self._kept if keep else None
        self.fold = Fold.load(self._fold_file, self._session, kept) if once else Fold(kept=kept)
        asked = self._participants(number, task.seed)
        packets = self._packets(broadcast)

        def content(peer: Peer) -> RecordDict:
            counted = self.fold.counted
            mine = [counted[peer.label]] if peer.label in counted else []
            everybodys = sorted(counted.values())  # for a node of which nobody knows yet who it is
            return records.content(self._header(round=number, counted=mine if peer.known else everybodys), packets(peer))

        def take(peer: Peer, answer: Mapping[str, Any], parts: Mapping[str, Packet]) -> None:
            self._count(peer, answer, parts)
            peer.told |= set(broadcast.arrays)

        needed = self.settings.minimum_sites if asked == self.live else min(self.settings.minimum_sites, len(asked))
        self._saved = time.monotonic()
        self._ask(QUERY if once else TRAIN, content, take, asked)
        if once and self.fold.counted:
            self._save_fold()
        self.seconds["local"] += time.monotonic() - begun
        if len(self.fold.counted) < needed or not self.fold.counted:
            raise GramfoldError(f"only {len(self.fold.counted)} of at least {needed} sites sent their part; {self._reasons()}")
        total = self.fold.total
        if once:
            self.fold.total = None  # it is on disk, and the solvers want the memory
        broadcast = self._timed("aggregate", lambda: method.aggregate(total, broadcast))
        self.history.append(
            {
                "round": number + 1,
                "seconds": sum(self.seconds.values()),
                "uplink_bytes": sum(peer.up for peer in self.peers.values()),
                "downlink_bytes": sum(peer.down for peer in self.peers.values()),
            }
        )
        return broadcast

    def _participants(self, number: int, seed: int) -> set[int]:
        """The nodes that take part in a round: all that are live, or those that the method samples by name."""
        named: dict[str, int] = {}
        for node in sorted(self.live):
            label = self.peers[node].label
            named[label if label not in named else f"{label}/{node}"] = node
        return {named[name] for name in self.method.participants(number, sorted(named), seed)}

    def _count(self, peer: Peer, answer: Mapping[str, Any], parts: Mapping[str, Packet]) -> None:
        """Fold one upload, once."""
        upload_id = answer.get("upload")
        if not isinstance(upload_id, str) or not _ID.fullmatch(upload_id):
            raise GramfoldError("its upload has no proper id")
        if self.fold.counted.get(peer.site) == upload_id:
            return
        if answer.get("counted"):
            raise GramfoldError("it says that its upload is counted, which it is not")
        upload = uploads.unpack(parts[UPLOAD])
        if list(getattr(upload, "parcels", {peer.site: None})) != [peer.site]:
            raise GramfoldError("its parcels carry another site's name")
        self.method.check(upload, self._told)
        before = self.fold.counted.get(peer.site)
        if before is not None and answer.get("replaces") == before and REPLACED in parts:
            self.fold.replace(peer.site, upload_id, upload, uploads.unpack(parts[REPLACED]))
        else:
            self.fold.add(peer.site, upload_id, upload)

    def _save_fold(self) -> None:
        self.fold.save(self._fold_file, self._session, self._task_text)
        self._saved = time.monotonic()

    # --- every site's own model ---

    def _personalize(self, broadcast: Packet) -> dict[str, ClientResult]:
        method, begun = self.method, time.monotonic()
        packets = self._packets(broadcast)

        def content(peer: Peer) -> RecordDict:
            header = self._header(upload=self.fold.counted.get(peer.site, ""))
            if method.keeps_uploads and peer.site in self.fold.counted:
                reply = method.reply(self.fold.upload_of(peer.site), broadcast)
                return records.content(header, self._packets(reply)(peer))
            return records.content(header, packets(peer))

        clients: dict[str, ClientResult] = {}

        def take(peer: Peer, answer: Mapping[str, Any], parts: Mapping[str, Packet]) -> None:
            train, shared, chosen = int(answer["train"]), answer["shared"], dict(answer["chosen"])
            if not 0 < train < MAX_SAMPLES:
                raise GramfoldError("its number of samples cannot be")
            if not isinstance(chosen.get("leave_one_out_accuracy"), float | int | None):
                raise GramfoldError("its estimate of its accuracy is no number")
            clients[peer.site] = ClientResult(
                peer.site, train, Scored.from_dict(answer["scored"]),
                None if shared is None else Scored.from_dict(shared), peer.up, peer.down, chosen,
            )  # fmt: skip

        self._ask(EVALUATE, content, take)
        self.seconds["personalize"] += time.monotonic() - begun
        if len(clients) < self.settings.minimum_sites:
            needed = self.settings.minimum_sites
            raise GramfoldError(f"only {len(clients)} of at least {needed} sites made their head; {self._reasons()}")
        return dict(sorted(clients.items()))

    # --- asking ---

    def _header(self, **more: Any) -> dict[str, Any]:
        parameters = dict(self.method.parameters())
        told = {"gramfold": __version__, "method": self.method.name, "parameters": parameters}
        return {**told, "task": self._task_text, "run": self._run, **more}

    def _packets(self, broadcast: Packet) -> Callable[[Peer], records.Records]:
        """The broadcast as records for a peer, laid out once for all who know the same of it; and booked as sent."""
        made: dict[frozenset[str], tuple[records.Records, int]] = {}

        def records_for(peer: Peer) -> records.Records:
            known = broadcast.known & peer.told
            if known not in made:
                packet = Packet(broadcast.arrays, broadcast.meta, broadcast.triangular, known)
                made[known] = records.packet_records(BROADCAST, packet), packet.wire_bytes
            peer.down += made[known][1]
            return made[known][0]

        return records_for

    def _ask(self, kind: str, content: Callable[[Peer], RecordDict], take: Take, nodes: Collection[int] | None = None) -> None:
        """Ask nodes (all that are live) and give every answer to `take`, which may raise; who gives none, or a bad one, is named
        and no longer live."""
        asked = sorted(self.live if nodes is None else nodes)
        done = 0
        for arrival in self.exchange.ask(kind, ((node, content(self.peers[node])) for node in asked)):
            peer, seconds = self.peers[arrival.asked.node], arrival.seconds
            done += not arrival.late
            try:
                received = self._receive(peer, arrival, take)
            except Exception as error:  # whatever it sent, it must not stop the others
                reason = str(error) if isinstance(error, GramfoldError) else f"its answer cannot be read: {error!r}"
                self.failed[peer.label] = one_line(reason)
                self.live.discard(peer.node)
                LOG.warning("%s: %s left out: %s", arrival.asked.kind, peer.label, self.failed[peer.label])
            else:
                when = "too late for this phase" if arrival.late else f"{done} of {len(asked)}"
                LOG.info("%s: %s answered, %s in %.1f s (%s)", arrival.asked.kind, peer.label, size(received), seconds, when)
            if kind == QUERY and self.fold.counted and time.monotonic() - self._saved > SAVE_EVERY:
                self._save_fold()

    def _receive(self, peer: Peer, arrival: Arrival, take: Take) -> int:
        """Read one answer and have it taken; the bytes that came. Nothing of it stays behind when this returns."""
        header, parts = self._read(peer, arrival)
        received = sum(packet.wire_bytes for packet in parts.values())
        peer.up += received
        peer.seconds += float(header.get("seconds", 0.0))
        if arrival.late:
            self._take_late(peer, arrival.asked.kind, header, parts)
        else:
            take(peer, header, parts)
        return received

    def _read(self, peer: Peer, arrival: Arrival) -> tuple[dict[str, Any], dict[str, Packet]]:
        """An answer's header and packets, once it is clear whose it is and that it is one."""
        if arrival.content is None:
            raise GramfoldError(arrival.error)
        header, parts = records.read(arrival.content)
        site = header.get("site")
        if not isinstance(site, str) or not 0 < len(site) <= 200 or not site.isprintable():
            raise GramfoldError(header.get("error") or "it gives no proper name")
        if any(other.site == site for other in self.peers.values() if other is not peer):
            raise GramfoldError(f"another node is called {site!r} already; every site needs a name of its own")
        if site != (peer.site or peer.registered or site):
            raise GramfoldError(f"it calls itself {site!r} and is known as {peer.label!r}")
        peer.site = site
        if "error" in header:
            raise GramfoldError(str(header["error"]))
        if header.get("gramfold") != __version__:
            raise GramfoldError(f"it runs gramfold {header.get('gramfold')}, the server {__version__}; install the same")
        return header, parts

    def _take_late(self, peer: Peer, kind: str, answer: Mapping[str, Any], parts: Mapping[str, Packet]) -> None:
        """An answer to what is no longer waited for."""
        if kind == QUERY:
            self.fold = Fold.load(self._fold_file, self._session, self.fold.kept)
            self._count(peer, answer, parts)
            self._save_fold()
            self.fold.total = None
            self.late.append(peer.site)
            self.failed[peer.site] = "its upload came after the deadline; it is folded and counts in the next run"
        elif kind == TRAIN:
            self.live.add(peer.node)
            self.failed.pop(peer.label, None)

    def _reasons(self) -> str:
        listed = [f"{name}: {reason}" for name, reason in list(self.failed.items())[:5]]
        return "; ".join(listed) or "nobody was asked"

    def _timed(self, phase: str, work: Callable[[], Packet]) -> Packet:
        begun = time.monotonic()
        out = work()
        self.seconds[phase] += time.monotonic() - begun
        return out

    # --- the end ---

    def _write(self, result: Result, task: Task) -> None:
        """result.json as `gramfold run` writes it, with what became of every site, and the page."""
        worked = {peer.site: peer.seconds for peer in self.peers.values() if peer.site in result.clients}
        page = {
            "gramfold": __version__,
            "seed": task.seed,
            "engine": "flower",
            "device": "cpu",
            "data": {"name": "sites", "samples": task.samples, "inputs": task.inputs, "outputs": task.outputs},
            "partition": {"kind": "site", "clients": len(result.clients), "dropped": 0},
            "sites": {
                "answered": list(result.clients),
                "failed": self.failed,
                "late": self.late,
                "folded": sorted(self.fold.counted),
                "seconds": worked,
            },
            "methods": [result.to_dict()],
        }
        text = json.dumps(page, indent=1, allow_nan=False)
        wire.write_atomically(self.settings.out / "result.json", text.encode())
        wire.write_atomically(self.settings.out / "report.html", render_page(page).encode())
        LOG.info("%d sites have their heads; figures in %s", len(result.clients), self.settings.out / "result.json")


def _check_able(method: Method, task: Task) -> None:
    kind = "images" if task.shape else "features"
    if kind not in method.input_kinds:
        raise GramfoldError(f"the sites hold {kind}, on which {method.name} does not work")
