"""The nodes of a server: requests to them, one answer at a time, and the exclusion of those that fail."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gramfold.engines.events import Event, Progress
from gramfold.errors import GramfoldError, RemoteError
from gramfold.remote import reports
from gramfold.remote.messages import EVALUATE, QUERY, SECURE, TASK, TRAIN, Arrival, Exchange, Message, one_line
from gramfold.report.text import size
from gramfold.version import __version__
from gramfold.wire import Packet

LOG = logging.getLogger("gramfold.remote")
PHASE = {TASK: "task", QUERY: "local", TRAIN: "round", EVALUATE: "personalize", SECURE: "secure"}


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
TakeLate = Callable[[str, Answer], None]
"""Handles an answer, of the given kind, to a request of an earlier phase."""


class Peers:
    """Nodes by their number, those that are live, and those that are excluded, with the reason."""

    def __init__(self, exchange: Exchange, progress: Progress | None = None) -> None:
        self.exchange, self.progress = exchange, progress
        self.by_node: dict[int, Peer] = {}
        self.live: set[int] = set()
        """The nodes that take part in the next request."""
        self.reserved: set[str] = set()
        """Names that no node takes that is registered without one, where others have theirs: of sites expected, or counted."""
        self.excluded: dict[str, str] = {}
        """The sites excluded from the run, and why."""

    def called(self, site: str) -> Peer:
        return next(peer for peer in self.by_node.values() if peer.site == site)

    def add(self, nodes: Mapping[int, str]) -> None:
        """Add new nodes."""
        new = {node: Peer(node, name) for node, name in nodes.items() if node not in self.by_node}
        self.by_node |= new
        self.live |= new.keys()
        if new:
            LOG.info("%d sites connected", len(new))

    def ask(
        self, kind: str, message: Callable[[Peer], Message], take_late: TakeLate, nodes: Collection[int] | None = None
    ) -> Iterator[Answer]:
        """Send a request to nodes (default: all live ones) and yield every valid answer; nodes without one are excluded."""
        asked = sorted(self.live if nodes is None else nodes)
        done = 0
        for arrival in self.exchange.ask(kind, ((node, message(self.by_node[node])) for node in asked)):
            peer, seconds, late = self.by_node[arrival.request.node], arrival.seconds, arrival.late
            done += not late
            try:
                header, packets = self._read(peer, arrival)
                received = sum(packet.wire_bytes for packet in packets.values())
                peer.seconds += reports.seconds(header)
                if late:
                    take_late(arrival.request.kind, (peer, header, packets, received))
            except Exception as error:  # a bad answer must not stop the other sites
                self.refuse(peer, arrival.request.kind, error)
            else:
                when = "too late for its phase" if late else f"{done} of {len(asked)}"
                LOG.info("%s: %s answered, %s in %.1f s (%s)", arrival.request.kind, peer.label, size(received), seconds, when)
                if not late:
                    self._report(Event(PHASE[kind], done, len(asked), peer.label, received, seconds))
                    yield peer, header, packets, received
                del packets

    def refuse(self, peer: Peer, kind: str, error: Exception) -> None:
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
            raise RemoteError(arrival.error)
        answer = arrival.read()
        header, site = answer.header, answer.header.get("site")
        if not isinstance(site, str) or not 0 < len(site) <= 200 or not site.isprintable():
            raise RemoteError(header.get("error") or "it gives no valid name")
        others = [other for other in self.by_node.values() if other is not peer]
        named = any(other.registered for other in others) and not peer.registered
        if any(site in (other.site, other.registered) for other in others) or (named and site in self.reserved):
            raise RemoteError(f"another node is already called {site!r}; every site needs its own name")
        if site != (peer.site or peer.registered or site):
            raise RemoteError(f"it calls itself {site!r} but is registered as {peer.label!r}")
        peer.site = site
        if "error" in header:
            raise RemoteError(str(header["error"]))
        if header.get("gramfold") != __version__:
            raise RemoteError(f"it runs gramfold {header.get('gramfold')}, the server {__version__}; install the same")
        return header, dict(answer.packets)

    def reasons(self) -> str:
        listed = [f"{name}: {reason}" for name, reason in list(self.excluded.items())[:5]]
        more = [f"and {len(self.excluded) - 5} more: {', '.join(list(self.excluded)[5:])}"] if len(self.excluded) > 5 else []
        return "; ".join(listed + more) or "no site was asked"
