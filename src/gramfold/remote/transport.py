"""Sites as a transport: send requests, pass on the answers, and exclude sites that fail.

    (task)        where no task is given: sites describe their data, and must agree
    query         methods of one round: the upload
    train         methods of many rounds: the upload of each
    evaluate      every site computes its head, keeps it, and reports its figures

A site that raises, sends invalid data, or misses the deadline is excluded by name, with a reason; the result over the others
is exact. An upload that arrives after its deadline is folded into the sum on disk and counts in the next run with the same
`out`; in a method of many rounds its site takes part again from the next round.
"""

import logging
import re
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gramfold import uploads
from gramfold.engines.events import Event, Progress
from gramfold.engines.transport import Contribution, Final, Finished, Round, Transport
from gramfold.errors import GramfoldError
from gramfold.evaluation import Scored
from gramfold.evaluation.metrics import MAX_SAMPLES
from gramfold.federation import Task
from gramfold.methods import Method, spec_of
from gramfold.remote.ledger import Ledger, SentUpload, saved_task
from gramfold.remote.messages import (
    BROADCAST,
    EVALUATE,
    QUERY,
    REPLACED,
    TASK,
    TRAIN,
    UPLOAD,
    Arrival,
    Exchange,
    Message,
    one_line,
)
from gramfold.remote.settings import Settings
from gramfold.remote.tasks import agreed_task, session_of, task_from_json, task_to_json
from gramfold.report.text import size
from gramfold.version import __version__
from gramfold.wire import Packet

LOG = logging.getLogger("gramfold.remote")
SAVE_EVERY_SECONDS = 30.0
"""The interval between saves of the sum while uploads arrive."""
LEDGER, KEPT = "fold.safetensors", "uploads"
PHASE = {TASK: "task", QUERY: "local", TRAIN: "round", EVALUATE: "personalize"}
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass
class Peer:
    """A node as the server knows it."""

    node: int
    registered: str
    site: str = ""
    """Its own name; empty until it has answered."""
    seconds: float = 0.0
    """The time it spent computing; the rest of a phase is network and process start-up."""

    @property
    def known(self) -> bool:
        return bool(self.site or self.registered)

    @property
    def label(self) -> str:
        return self.site or self.registered or f"node {self.node}"


Answer = tuple[Peer, Mapping[str, Any], Mapping[str, Packet], int]
"""The peer that answered, the header, the packets, and their size in bytes."""


class Remote(Transport):
    """The sites of an exchange."""

    trusted = False

    def __init__(self, exchange: Exchange, settings: Settings, progress: Progress | None = None) -> None:
        super().__init__()
        self.exchange, self.settings, self.method, self.progress = exchange, settings, settings.method, progress
        self.peers: dict[int, Peer] = {}
        self.live: set[int] = set()
        """The nodes that take part in the next request."""
        self.excluded: dict[str, str] = {}
        """The sites excluded from the run, and why."""
        self.late: list[str] = []
        self.ledger = Ledger()
        self._named: dict[str, int] = {}
        self._round: Round | None = None
        self._ledger_file, self._kept = settings.out / LEDGER, settings.out / KEPT
        self._run = "" if settings.method.rounds == 1 else secrets.token_hex(8)
        self._task_text = self._session = ""
        self._find_nodes()
        self.task = self._agree()
        _check_inputs(self.method, self.task)
        self._task_text, self._session = task_to_json(self.task), session_of(self.method, self.task)

    # --- nodes, and the task ---

    def _find_nodes(self) -> None:
        settings = self.settings
        found = self.exchange.nodes(settings.minimum_sites, len(settings.sites))
        if not found:
            raise GramfoldError(f"no site is connected after {settings.deadline:g} s; start the SuperNodes and run again")
        if len(found) < settings.minimum_sites:
            raise GramfoldError(f"only {len(found)} of at least {settings.minimum_sites} sites connected; start more SuperNodes")
        self._add_nodes(found)

    def _add_nodes(self, nodes: Mapping[int, str]) -> None:
        """Add new nodes."""
        new = {node: Peer(node, name) for node, name in nodes.items() if node not in self.peers}
        self.peers |= new
        self.live |= new.keys()
        if new:
            LOG.info("%d sites connected", len(new))

    def _agree(self) -> Task:
        """The given task, that of the uploads already folded in `out`, or the one that all sites agree on."""
        if self.settings.task is not None:
            return self.settings.task
        saved = saved_task(self._ledger_file)
        if saved is not None:
            return task_from_json(saved)
        described: dict[str, Mapping[str, Any]] = {}
        for peer, header, _, _ in self._ask(TASK, lambda peer: Message(self._header())):
            described[peer.site] = header
        if not described:
            raise GramfoldError(f"no site could describe its data; {self._reasons()}")
        try:
            return agreed_task(described, self.settings.seed)
        except (KeyError, TypeError) as error:
            raise GramfoldError(f"a site's description of its data cannot be read: {error!r}") from None

    def prepare(self, number: int) -> None:
        """Nodes may join between rounds."""
        if number:
            self._add_nodes(self.exchange.nodes())

    def clients(self) -> Sequence[str]:
        self._named = {}
        for node in sorted(self.live):
            label = self.peers[node].label
            self._named[label if label not in self._named else f"{label}/{node}"] = node
        return sorted(self._named)

    def exclude(self, client: str, reason: str) -> None:
        """Exclude a site from the rest of the run."""
        kind = QUERY if self.method.rounds == 1 else TRAIN
        self._refuse(next(peer for peer in self.peers.values() if peer.site == client), kind, GramfoldError(reason))

    # --- rounds ---

    def fold(self, round_: Round) -> Ledger:
        once = self.method.rounds == 1
        if round_.keep:
            if not once:
                shutil.rmtree(self._kept, ignore_errors=True)
            self._kept.mkdir(exist_ok=True)
        kept = self._kept if round_.keep else None
        self.ledger = Ledger.load(self._ledger_file, self._session, kept) if once else Ledger(kept=kept)
        return self.ledger

    def uploads(self, round_: Round) -> Iterator[Contribution]:
        once, begun, self._round = self.method.rounds == 1, time.monotonic(), round_
        nodes = {self._named[name] for name in round_.clients}
        saved = time.monotonic()

        def message(peer: Peer) -> Message:
            counted = self.ledger.counted
            mine = [counted[peer.label]] if peer.label in counted else []
            # a node that has not yet identified itself is sent all ids
            header = self._header(round=round_.number, counted=mine if peer.known else sorted(counted.values()))
            return Message(header, {BROADCAST: round_.deliveries.packet(peer.label, round_.broadcast)})

        for peer, header, packets, received in self._ask(QUERY if once else TRAIN, message, nodes):
            packet = round_.deliveries.packet(peer.site, round_.broadcast)
            contribution = self._contribution(peer, header, packets, received)
            del packets
            if contribution is not None:
                yield contribution
                del contribution
            if peer.node in self.live:
                round_.deliveries.delivered(peer.site, packet)
            if once and self.ledger.counted and time.monotonic() - saved > SAVE_EVERY_SECONDS:
                self._save_ledger()
                saved = time.monotonic()
        if once and self.ledger.counted:
            self._save_ledger()
        self.seconds["local"] += time.monotonic() - begun
        minimum = self.settings.minimum_sites
        needed = minimum if len(nodes) == len(self._named) else min(minimum, len(nodes))
        if len(self.ledger.counted) < max(needed, 1):
            raise GramfoldError(f"only {len(self.ledger.counted)} of at least {needed} sites sent an upload; {self._reasons()}")

    def _contribution(
        self, peer: Peer, header: Mapping[str, Any], packets: Mapping[str, Packet], received: int
    ) -> SentUpload | None:
        """An upload, unpacked; None where it is already in the sum or cannot be read."""
        try:
            upload_id = header.get("upload")
            if not isinstance(upload_id, str) or not _ID.fullmatch(upload_id):
                raise GramfoldError("its upload has no valid id")
            if self.ledger.counted.get(peer.site) == upload_id:
                return None
            if header.get("counted"):
                raise GramfoldError("it reports its upload as counted, but it is not")
            upload = uploads.unpack(packets[UPLOAD])
            if list(getattr(upload, "parcels", {peer.site: None})) != [peer.site]:
                raise GramfoldError("its upload carries another site's name")
            before, replaced = self.ledger.counted.get(peer.site), None
            if before is not None and header.get("replaces") == before and REPLACED in packets:
                replaced = uploads.unpack(packets[REPLACED])
            return SentUpload(upload, {peer.site: received}, site=peer.site, upload_id=upload_id, replaced=replaced)
        except Exception as error:  # a bad answer must not stop the other sites
            self._refuse(peer, QUERY, error)
            return None

    def _save_ledger(self) -> None:
        self.ledger.save(self._ledger_file, self._session, self._task_text)

    # --- every site's own model ---

    def heads(self, final: Final) -> Iterator[Finished]:
        begun = time.monotonic()
        sent: dict[int, Packet] = {}

        def message(peer: Peer) -> Message:
            sent[peer.node] = final.deliveries.packet(peer.label, final.reply(peer.site))
            return Message(self._header(upload=self.ledger.counted.get(peer.site, "")), {BROADCAST: sent[peer.node]})

        count = 0
        nodes = {self._named[name] for name in final.clients}
        for peer, header, _, _ in self._ask(EVALUATE, message, nodes):
            try:
                finished = _finished(peer.site, header)
            except Exception as error:
                self._refuse(peer, EVALUATE, error)
                continue
            final.deliveries.delivered(peer.site, sent.pop(peer.node))
            count += 1
            yield finished
        self.seconds["personalize"] += time.monotonic() - begun
        needed = self.settings.minimum_sites
        if count < needed:
            raise GramfoldError(f"only {count} of at least {needed} sites computed a head; {self._reasons()}")

    # --- requests and answers ---

    def _header(self, **more: Any) -> dict[str, Any]:
        parameters = dict(self.method.parameters())
        common = {"gramfold": __version__, "method": spec_of(self.method), "parameters": parameters}
        return {**common, "task": self._task_text, "run": self._run, **more}

    def _ask(self, kind: str, message: Callable[[Peer], Message], nodes: Collection[int] | None = None) -> Iterator[Answer]:
        """Send a request to nodes (default: all live ones) and yield every valid answer; nodes without one are excluded."""
        asked = sorted(self.live if nodes is None else nodes)
        done = 0
        for arrival in self.exchange.ask(kind, ((node, message(self.peers[node])) for node in asked)):
            peer, seconds, late = self.peers[arrival.request.node], arrival.seconds, arrival.late
            done += not late
            try:
                header, packets = self._read(peer, arrival)
                received = sum(packet.wire_bytes for packet in packets.values())
                peer.seconds += float(header.get("seconds", 0.0))
                if late:
                    self._take_late(peer, arrival.request.kind, header, packets, received)
            except Exception as error:  # a bad answer must not stop the other sites
                self._refuse(peer, arrival.request.kind, error)
            else:
                when = "too late for its phase" if late else f"{done} of {len(asked)}"
                LOG.info("%s: %s answered, %s in %.1f s (%s)", arrival.request.kind, peer.label, size(received), seconds, when)
                if not late:
                    self._report(Event(PHASE[kind], done, len(asked), peer.label, received, seconds))
                    yield peer, header, packets, received
                del packets

    def _refuse(self, peer: Peer, kind: str, error: Exception) -> None:
        reason = str(error) if isinstance(error, GramfoldError) else f"its answer cannot be read: {error!r}"
        self.excluded[peer.label] = one_line(reason)
        self.live.discard(peer.node)
        LOG.warning("%s: %s excluded: %s", kind, peer.label, self.excluded[peer.label])
        self._report(Event(PHASE.get(kind, kind), 0, 0, peer.label, problem=self.excluded[peer.label]))

    def _report(self, event: Event) -> None:
        if self.progress:
            self.progress(event)

    def _read(self, peer: Peer, arrival: Arrival) -> tuple[Mapping[str, Any], dict[str, Packet]]:
        """An answer's header and packets, after checking its sender and its version."""
        if arrival.read is None:
            raise GramfoldError(arrival.error)
        answer = arrival.read()
        header, site = answer.header, answer.header.get("site")
        if not isinstance(site, str) or not 0 < len(site) <= 200 or not site.isprintable():
            raise GramfoldError(header.get("error") or "it gives no valid name")
        if any(other.site == site for other in self.peers.values() if other is not peer):
            raise GramfoldError(f"another node is already called {site!r}; every site needs its own name")
        if site != (peer.site or peer.registered or site):
            raise GramfoldError(f"it calls itself {site!r} but is registered as {peer.label!r}")
        peer.site = site
        if "error" in header:
            raise GramfoldError(str(header["error"]))
        if header.get("gramfold") != __version__:
            raise GramfoldError(f"it runs gramfold {header.get('gramfold')}, the server {__version__}; install the same")
        return header, dict(answer.packets)

    def _take_late(self, peer: Peer, kind: str, header: Mapping[str, Any], packets: Mapping[str, Packet], received: int) -> None:
        """Handle an answer to a request of an earlier phase."""
        if kind == QUERY and self._round is not None:
            self.ledger = Ledger.load(self._ledger_file, self._session, self.ledger.kept)
            contribution = self._contribution(peer, header, packets, received)
            if contribution is None:
                return
            self.method.check(contribution.upload, self._round.broadcast)
            self.ledger.add(contribution)
            self._save_ledger()
            self.ledger.total = None
            self.late.append(peer.site)
            self.excluded[peer.site] = "its upload arrived after the deadline; it is folded and counts in the next run"
        elif kind == TRAIN:
            self.live.add(peer.node)
            self.excluded.pop(peer.label, None)

    def _reasons(self) -> str:
        listed = [f"{name}: {reason}" for name, reason in list(self.excluded.items())[:5]]
        return "; ".join(listed) or "no site was asked"

    def account(self, answered: Collection[str]) -> dict[str, Any]:
        """The outcome for every site."""
        for peer in self.peers.values():
            if peer.site not in answered:
                self.excluded.setdefault(peer.label, "it answered too late to compute its head")
        for name in self.settings.sites:
            if name not in answered:
                self.excluded.setdefault(name, "it was expected but never connected")
        return {
            "answered": list(answered),
            "excluded": self.excluded,
            "late": self.late,
            "folded": sorted(self.ledger.counted),
            "seconds": {peer.site: peer.seconds for peer in self.peers.values() if peer.site in answered},
        }


def _finished(site: str, header: Mapping[str, Any]) -> Finished:
    """The figures that a site reports, validated."""
    train, shared, chosen = int(header["train"]), header["shared"], dict(header["chosen"])
    if not 0 < train < MAX_SAMPLES:
        raise GramfoldError("its number of samples is impossible")
    if not isinstance(chosen.get("leave_one_out_accuracy"), float | int | None):
        raise GramfoldError("its leave-one-out accuracy is not a number")
    return Finished(
        site, train, Scored.from_dict(header["scored"]), None if shared is None else Scored.from_dict(shared), chosen
    )  # fmt: skip


def _check_inputs(method: Method, task: Task) -> None:
    kind = "images" if task.shape else "features"
    if kind not in method.input_kinds:
        raise GramfoldError(f"the sites have {kind}, which {method.name} does not support")
