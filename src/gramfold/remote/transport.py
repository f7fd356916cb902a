"""Sites as a transport: send requests, pass on the answers, and exclude sites that fail.

    (task)        where no task is given: sites describe their data, and must agree
    query         methods of one round: the upload
    train         methods of many rounds: the upload of each
    evaluate      every site computes its head, keeps it, and reports its figures

A site that raises, sends invalid data, or misses the deadline is excluded by name, with a reason; the result over the others
is exact. An upload that arrives after its deadline is folded into the sum on disk and counts in the next run with the same
`out`; in a method of many rounds its site takes part again from the next round.
"""

import re
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from gramfold import uploads
from gramfold.engines.events import Progress
from gramfold.engines.transport import Contribution, Final, Finished, Round, Transport
from gramfold.errors import GramfoldError, RemoteError
from gramfold.federation import Task
from gramfold.methods import spec_of
from gramfold.remote import reports, secure
from gramfold.remote.agreement import odd_ones_out
from gramfold.remote.erasure import Forgotten
from gramfold.remote.influence import Influence
from gramfold.remote.ledger import KEPT, LEDGER, Ledger, SentUpload, saved_task
from gramfold.remote.messages import BROADCAST, EVALUATE, QUERY, REPLACED, TASK, TRAIN, UPLOAD, Exchange, Message, one_line
from gramfold.remote.peers import LOG, Answer, Peer, Peers
from gramfold.remote.release import check_first, check_release, check_run
from gramfold.remote.settings import Settings
from gramfold.remote.table_agreement import remarks
from gramfold.remote.tasks import agreed_task, session_of, task_from_json, task_to_json
from gramfold.results.saved import make_folder
from gramfold.version import __version__
from gramfold.wire import Packet

SAVE_EVERY_SECONDS = 30.0
"""The interval between saves of the sum while uploads arrive."""
_ID = re.compile(r"[0-9a-f]{32}")


class Remote(Transport):
    """The sites of an exchange."""

    trusted = False

    def __init__(self, exchange: Exchange, settings: Settings, progress: Progress | None = None) -> None:
        super().__init__()
        self.exchange, self.settings, self.method = exchange, settings, settings.method
        self.peers = Peers(exchange, progress)
        self.peers.reserved |= set(settings.sites)
        self.late: list[str] = []
        self.receiving: dict[str, str] = {}
        """The sites that receive and do not contribute, and why."""
        self.withheld: dict[str, str] = {}
        """The sites that have their head and keep its figures, and why."""
        self.influence = Influence(settings.max_share)
        self.ledger = Ledger()
        self._named: dict[str, int] = {}
        self._round: Round | None = None
        self._ledger_file, self._kept = settings.out / LEDGER, settings.out / KEPT
        self._forgotten = Forgotten(settings.out)
        self._run = self._task_text = self._session = ""
        self._marks: dict[str, str] = {}
        """Of which samples the uploads of this run are: a site's own word, the same in every run and round, by site."""
        self._find_nodes()
        self.task = self._agree()
        self.method = settings.options.prepared(settings.method, self.task)
        self._run = "" if self.method.rounds == 1 else secrets.token_hex(8)
        self._task_text, self._session = task_to_json(self.task), session_of(self.method, self.task)

    # --- nodes, and the task ---

    def _find_nodes(self) -> None:
        settings = self.settings
        found = self.exchange.nodes(settings.minimum_sites, len(settings.sites))
        self._meet(found)
        found = {node: name for node, name in found.items() if node in self.peers.live}
        if not found and not self.peers.excluded:
            raise RemoteError(
                f"no site is connected after {settings.deadline:g} s; start the SuperNodes and run again{self._absent()}"
            )
        if len(found) < settings.minimum_sites:
            raise RemoteError(
                f"only {len(found)} of at least {settings.minimum_sites} sites connected; start more SuperNodes{self._absent()}"
            )

    def _meet(self, nodes: Mapping[int, str]) -> None:
        """Add new nodes; those of sites that were forgotten are not asked for anything."""
        self.peers.add(nodes)
        for node, name in nodes.items():
            if name and node in self.peers.live:
                try:
                    self._forgotten.check(name)
                except GramfoldError as error:
                    self.peers.refuse(self.peers.by_node[node], TASK, error)

    def _absent(self) -> str:
        """Which of the expected sites are not there, as the end of an error."""
        here = {peer.label for peer in self.peers.by_node.values()}
        missing = [name for name in self.settings.sites if name not in here]
        return f"; not connected: {', '.join(missing)}" if missing else ""

    def reasons(self) -> str:
        return self.peers.reasons() + self._absent()

    def _agree(self) -> Task:
        """The given task, that of the uploads already folded in `out`, or the one that the sites agree on: whoever differs from
        most is excluded."""
        if self.settings.task is not None:
            return self.settings.task
        saved = saved_task(self._ledger_file)
        if saved is not None:
            return task_from_json(saved)
        described: dict[str, Mapping[str, Any]] = {}
        for peer, header, _, _ in self.peers.ask(TASK, lambda peer: Message(self.header()), self.take_late):
            described[peer.site] = header
        odd = odd_ones_out(described, self.settings.max_classes)
        samples = {name: site["samples"] for name, site in described.items() if name not in odd}
        odd |= self.influence.describe(samples)
        for name, reason in odd.items():
            self.peers.refuse(self.peers.called(name), TASK, GramfoldError(reason))
            del described[name]
        for remark in remarks({name: site["table"] for name, site in described.items() if "table" in site}):
            LOG.warning("check: %s", remark)
        if not described:
            raise RemoteError(f"no site could describe its data; {self.reasons()}")
        return agreed_task(described, self.settings.seed)

    def prepare(self, number: int) -> None:
        """Nodes may join between rounds."""
        if number:
            self._meet(self.exchange.nodes())

    def clients(self) -> Sequence[str]:
        self._named = {}
        for node in sorted(self.peers.live):
            label = self.peers.by_node[node].label
            self._named[label if label not in self._named else f"{label}/{node}"] = node
        return sorted(self._named)

    def exclude(self, client: str, reason: str) -> None:
        """Exclude a site from the rest of the run."""
        kind = QUERY if self.method.rounds == 1 else TRAIN
        self.peers.refuse(self.peers.called(client), kind, GramfoldError(reason))

    # --- rounds ---

    def fold(self, round_: Round) -> Ledger:
        once = self.method.rounds == 1
        if self.settings.privacy.secure is not None:
            if self._ledger_file.exists():
                raise RemoteError(f"{self.settings.out} holds uploads of single sites; a secure run needs a folder of its own")
            self.ledger = secure.Summed()
            return self.ledger
        kept = self._kept if round_.keep else None
        if kept is not None:
            make_folder(kept)
        self.ledger = Ledger.load(self._ledger_file, self._session, kept) if once else Ledger(kept=kept)
        self.peers.reserved |= self.ledger.counted.keys()
        self.influence.before = dict(self.ledger.samples)
        if not once:
            self.ledger.sweep()
        away = sorted(self.ledger.counted.keys() - {peer.label for peer in self.peers.by_node.values()})
        if away:
            LOG.warning("%s: not connected, but in the sum; `gramfold flower forget` takes a site out for good", ", ".join(away))
        return self.ledger

    def uploads(self, round_: Round) -> Iterator[Contribution]:
        once, begun, self._round = self.method.rounds == 1, time.monotonic(), round_
        nodes = {self._named[name] for name in round_.clients}
        if self.settings.privacy.secure is not None:
            yield secure.contribution(self, round_, nodes)
            self.seconds["local"] += time.monotonic() - begun
            return
        saved, last = time.monotonic(), self.method.is_last(round_.number, round_.broadcast)

        def message(peer: Peer) -> Message:
            counted = self.ledger.counted
            mine = [counted[peer.label]] if peer.label in counted else []
            # a node that has not yet identified itself is sent all ids
            mine = mine if peer.known else sorted(counted.values())
            header = self.header(round=round_.number, counted=mine, ledger=self.ledger.id)
            return Message(header, {BROADCAST: round_.deliveries.packet(peer.label, round_.broadcast)})

        for peer, header, packets, received in self.peers.ask(QUERY if once else TRAIN, message, self.take_late, nodes):
            packet = round_.deliveries.packet(peer.site, round_.broadcast)
            contribution = self._contribution(peer, header, packets, received)
            del packets
            if contribution is not None:
                if last:
                    self.influence.keep(peer.site, contribution.upload)
                yield contribution
                del contribution
            if peer.node in self.peers.live:
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
            raise RemoteError(f"only {len(self.ledger.counted)} of at least {needed} sites sent an upload; {self.reasons()}")
        self.influence.check_sum(self.ledger.samples)
        if once:
            check_release(self.settings.out, self.ledger.counted, self.settings.release_sites)
        else:
            check_first(len(self.ledger.counted), self.settings.release_sites)
            if round_.number == 0 and len(nodes) == len(self._named):
                check_run(
                    self.settings.out, {name: self._marks[name] for name in self.ledger.counted}, self.settings.release_sites
                )

    def check(self, round_: Round, upload: Any) -> None:
        """A secure sum has been checked already, as far as it can be."""
        if self.settings.privacy.secure is None:
            super().check(round_, upload)

    def release(self, total: Any, summed: int) -> Any:
        assert self._round is not None
        asked, noise = summed, None
        if isinstance(self.ledger, secure.Summed):
            asked, noise = self.ledger.asked, self.ledger.noise
        self.influence.show(total, self.ledger.samples)
        implied = self.method.asked(self._round.broadcast).implied
        return self.settings.privacy.release(total, implied, asked, summed, noise)

    @property
    def statement(self) -> dict[str, Any]:
        return self.settings.privacy.statement()

    def _contribution(
        self, peer: Peer, header: Mapping[str, Any], packets: Mapping[str, Packet], received: int
    ) -> SentUpload | None:
        """An upload, unpacked; None where it is already in the sum or cannot be read."""
        try:
            if "abstains" in header:
                self.take_abstention(peer, header)
                return None
            self._forgotten.check(peer.site)
            upload_id = header.get("upload")
            if not isinstance(upload_id, str) or not _ID.fullmatch(upload_id):
                raise RemoteError("its upload has no valid id")
            if self.ledger.counted.get(peer.site) == upload_id:
                return None
            if header.get("counted"):
                raise RemoteError("it reports its upload as counted, but it is not")
            assert self._round is not None
            self.method.asked(self._round.broadcast).check_packet(packets[UPLOAD])
            self._marks[peer.site] = str(header.get("data", upload_id))[:64]
            digest, upload = packets[UPLOAD].digest(), uploads.unpack(packets[UPLOAD])
            self.influence.check(peer.site, getattr(upload, "n", 0))
            if list(getattr(upload, "parcels", {peer.site: None})) != [peer.site]:
                raise RemoteError("its upload carries another site's name")
            before, replaced = self.ledger.counted.get(peer.site), None
            if before is not None and header.get("replaces") == before and REPLACED in packets:
                replaced = self.ledger.earlier(peer.site, packets[REPLACED])
            return SentUpload(
                upload, {peer.site: received}, site=peer.site, upload_id=upload_id, digest=digest, replaced=replaced
            )  # fmt: skip
        except Exception as error:  # a bad upload must not stop the other sites
            self.peers.refuse(peer, QUERY, error)
            return None

    def check_remembered(self, site: str) -> None:
        """Raise for a site that was taken out for good."""
        self._forgotten.check(site)

    def take_abstention(self, peer: Peer, header: Mapping[str, Any]) -> None:
        """A site that receives without contributing; what it sent before must not stay in the sum against its will."""
        if peer.site in self.ledger.counted:
            raise RemoteError("it no longer contributes, but an upload of its is in the sum; `gramfold flower forget` it")
        self.receiving[peer.site] = one_line(str(header["abstains"]))
        LOG.info("%s receives, and does not contribute: %s", peer.label, self.receiving[peer.site])

    def _save_ledger(self) -> None:
        self.ledger.save(self._ledger_file, self._session, self._task_text)

    # --- every site's own model ---

    def heads(self, final: Final) -> Iterator[Finished]:
        begun = time.monotonic()
        sent: dict[int, Packet] = {}

        def message(peer: Peer) -> Message:
            sent[peer.node] = final.deliveries.packet(peer.label, final.reply(peer.site))
            header = self.header(upload=self.ledger.counted.get(peer.site, ""), ledger=self.ledger.id)
            return Message(header, {BROADCAST: sent[peer.node]})

        count, once = 0, self.method.rounds == 1
        nodes = {self._named[name] for name in final.clients}
        for peer, header, _, _ in self.peers.ask(EVALUATE, message, self.take_late, nodes):
            try:
                finished = reports.finished(peer.site, header, self.ledger.samples.get(peer.site) if once else None)
            except Exception as error:
                self.peers.refuse(peer, EVALUATE, error)
                continue
            final.deliveries.delivered(peer.site, sent.pop(peer.node))
            count += 1
            if "withheld" in header:
                self.withheld[peer.site] = one_line(str(header["withheld"]))
                LOG.info("%s has its head, and keeps its figures: %s", peer.label, self.withheld[peer.site])
            yield finished
        self.seconds["personalize"] += time.monotonic() - begun
        needed = self.settings.minimum_sites
        if count < needed:
            raise RemoteError(f"only {count} of at least {needed} sites computed a head; {self.reasons()}")

    # --- requests and answers ---

    def header(self, **more: Any) -> dict[str, Any]:
        parameters = dict(self.method.parameters())
        common = {"gramfold": __version__, "method": spec_of(self.method), "parameters": parameters}
        noise, secured = self.settings.privacy.dp, self.settings.privacy.secure is not None
        promised = {
            "release-sites": self.settings.release_sites, "secure": secured,
            "dp": None if noise is None else {"eps": noise.eps, "delta": noise.delta},
        }  # fmt: skip
        unregistered = any(not peer.registered for peer in self.peers.by_node.values())
        forgotten = self._forgotten.hashes() if unregistered else []
        return {**common, **promised, "task": self._task_text, "run": self._run, "forgotten": forgotten, **more}

    def take_late(self, kind: str, answer: Answer) -> None:
        """Handle an answer to a request of an earlier phase."""
        peer, header, packets, received = answer
        if kind == QUERY and self._round is not None:
            self.ledger = Ledger.load(self._ledger_file, self._session, self.ledger.kept)
            contribution = self._contribution(peer, header, packets, received)
            if contribution is None:
                return
            self.method.asked(self._round.broadcast).check(contribution.upload)
            self.ledger.add(contribution)
            self._save_ledger()
            self.ledger.total = None
            self.late.append(peer.site)
            self.peers.excluded[peer.site] = "its upload arrived after the deadline; it is folded and counts in the next run"
        elif kind == TRAIN:
            self.peers.live.add(peer.node)
            self.peers.excluded.pop(peer.label, None)

    def account(self, answered: Collection[str]) -> dict[str, Any]:
        """The outcome for every site."""
        for peer in self.peers.by_node.values():
            if peer.site not in answered:
                self.peers.excluded.setdefault(peer.label, "it answered too late to compute its head")
        for name in self.settings.sites:
            if name not in answered:
                self.peers.excluded.setdefault(name, "it was expected but never connected")
        return {
            "answered": list(answered),
            "excluded": self.peers.excluded,
            "late": self.late,
            "receiving": self.receiving,
            "withheld": self.withheld,
            "folded": sorted(self.ledger.counted),
            "samples": self.ledger.samples,
            "influence": self.influence.moved,
            "seconds": {peer.site: peer.seconds for peer in self.peers.by_node.values() if peer.site in answered},
        }
