"""A round's secure sum at the server: five phases of messages, and one contribution of all sites that were there to the end.

A site that fails before it has sent its masked upload is not in the sum; one that fails afterwards is, and its mask is recovered
from the others' shares. Nobody's upload can be checked, only the sum: where that is not of any samples the run ends, and no site
can be named.
"""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramfold import uploads
from gramfold.engines.transport import Contribution, Round
from gramfold.errors import GramfoldError, SecureSumError
from gramfold.privacy import SecureSum, Server, ranges
from gramfold.privacy.protocol import Confirmed, Keys, Masked, Revealed, Shares
from gramfold.privacy.ring import FixedPoint
from gramfold.remote.influence import oversized
from gramfold.remote.ledger import Ledger
from gramfold.remote.messages import BROADCAST, SECURE, STEP, Message, asked_of
from gramfold.remote.peers import Peer
from gramfold.remote.release import check_release
from gramfold.wire import Packet
from gramfold.wire.record import Record

if TYPE_CHECKING:
    from gramfold.remote.transport import Remote

Packets = Callable[[Peer], Mapping[str, Packet]]


class Summed(Ledger):
    """A sum that came as one. Nothing is kept for later runs: what a site sent cannot be taken out of it again."""

    asked = 0
    """How many sites the sum was begun with."""
    noise = 0.0
    """The variance of the noise in it, in units of what one release needs."""

    def add(self, contribution: Contribution) -> None:
        assert isinstance(contribution, SecureContribution)
        self.noise = contribution.noise
        self.total = contribution.upload
        self.counted = dict.fromkeys(contribution.bytes, contribution.session)
        self.contributed = set(self.counted)


@dataclass
class SecureContribution(Contribution):
    """The sum of several sites' uploads; what each of them sent goes by the name of the session."""

    session: str = ""
    noise: float = 0.0


def contribution(remote: "Remote", round_: Round, nodes: Collection[int]) -> Contribution:
    """The sum of the uploads of these nodes."""
    policy = remote.settings.privacy.secure
    assert policy is not None
    try:
        return _Sum(remote, round_, policy).run(nodes)
    except GramfoldError as error:
        raise type(error)(f"{error}; {remote.reasons()}" if remote.peers.excluded else str(error)) from None


class _Sum:
    """One secure sum over the network."""

    def __init__(self, remote: "Remote", round_: Round, policy: SecureSum) -> None:
        self.remote, self.round, self.session = remote, round_, secrets.token_hex(16)
        self.asked = round_.method.asked(round_.broadcast)
        settings = remote.settings
        needed = max(policy.minimum, settings.release_sites, min(settings.minimum_sites, len(round_.clients)))
        self.header = remote.header(session=self.session, round=round_.number, threshold=policy.threshold)
        self.server = Server(self.session, SecureSum(policy.threshold, needed), asked_of(self.header, round_.broadcast))
        self.bytes: dict[str, int] = {}
        self.nodes: dict[str, int] = {}
        """The nodes of the sites that are still there."""
        self.public: Mapping[str, Any] = {}
        self.identities: set[str] = set()
        self.noise: dict[str, float] = {}
        """How much of the noise each site says that it has added."""

    def run(self, nodes: Collection[int]) -> Contribution:
        server, keys = self.server, list[Keys]()
        for name, one in self._ask("keys", Keys, lambda peer: {}, nodes, self._check_keys):
            keys.append(one)
            self.nodes[name] = self.remote.peers.called(name).node
        odd = oversized({one.name: one.samples for one in keys}, self.remote.settings.max_share)
        for name, reason in odd.items():
            self.remote.peers.refuse(self.remote.peers.called(name), SECURE, GramfoldError(reason))
        keys = [one for one in keys if one.name not in odd]
        roster = server.roster(keys)
        self.remote.ledger.asked = len(roster.clients)  # type: ignore[attr-defined]
        packed = roster.pack()
        for _ in self._ask("share", Shares, lambda peer: {STEP: packed}, self._left(roster.by_name), self._take):
            pass
        inboxes = {name: inbox.pack() for name, inbox in server.inboxes().items()}
        deliveries = self.round.deliveries

        def to_mask(peer: Peer) -> Mapping[str, Packet]:
            return {STEP: inboxes[peer.site], BROADCAST: deliveries.packet(peer.site, self.round.broadcast)}

        for name, _ in self._ask("mask", Masked, to_mask, self._left(inboxes), self._add):
            deliveries.delivered(name, deliveries.packet(name, self.round.broadcast))
        survivors = server.survivors()
        if self.remote.method.rounds == 1:  # before anything is known of the sum
            check_release(self.remote.settings.out, dict.fromkeys(survivors.names, SECURE), self.remote.settings.release_sites)
        packed, confirmed = survivors.pack(), list[str]()
        for name, _ in self._ask("confirm", Confirmed, lambda peer: {STEP: packed}, self._left(survivors.names), self._confirm):
            confirmed.append(name)
        signed = server.confirmations().pack()
        for _ in self._ask("unmask", Revealed, lambda peer: {STEP: signed}, self._left(confirmed), self._reveal):
            pass
        upload = self._upload(server.total(), sum(roster.by_name[name].samples for name in survivors.names))
        sent = {name: self.bytes[name] for name in survivors.names}
        noise = sum(self.noise[name] for name in survivors.names)
        return SecureContribution(upload, sent, session=self.session, noise=noise)

    def _ask(
        self,
        step: str,
        kind: type[Record],
        packets: Packets,
        nodes: Collection[int],
        check: Callable[[Any, Mapping[str, Any]], None],
    ) -> Iterator[tuple[str, Any]]:
        """Send a step's message to nodes, and yield the answers in order; whoever's is not one is excluded."""
        remote, header = self.remote, {**self.header, STEP: step}
        answers = remote.peers.ask(SECURE, lambda peer: Message(header, packets(peer)), remote.take_late, nodes)
        for peer, said, came, received in answers:
            try:
                if step == "keys" and "abstains" in said:
                    remote.take_abstention(peer, said)
                    continue
                remote.check_remembered(peer.site)
                one: Any = kind.unpack(came[STEP])
                if one.name != peer.site:
                    raise SecureSumError("it speaks in another site's name")
                check(one, said)
            except Exception as error:  # a bad answer must not stop the other sites
                remote.peers.refuse(peer, SECURE, error)
                continue
            self.bytes[peer.site] = self.bytes.get(peer.site, 0) + received
            yield peer.site, one

    def _left(self, names: Collection[str]) -> list[int]:
        """The nodes of these sites, as far as they are still there."""
        return [self.nodes[name] for name in names if self.nodes[name] in self.remote.peers.live]

    # --- what is asked of each site's answer ---

    def _check_keys(self, one: Keys, header: Mapping[str, Any]) -> None:
        self.server.check(one)
        self.remote.influence.check(one.name, one.samples)
        if one.identity in self.identities:
            raise SecureSumError("another site has signed with its key; every site needs a `state-dir` of its own")
        self.identities.add(one.identity)

    def _take(self, one: Shares, header: Mapping[str, Any]) -> None:
        self.server.take(one)

    def _add(self, one: Masked, header: Mapping[str, Any]) -> None:
        """A masked upload: what it is of is public, and must be what was asked for, whatever the others say."""
        public, words = header.get("public"), np.asarray(one.words)
        if not isinstance(public, dict) or words.ndim != 2:
            raise SecureSumError("its masked upload does not say what it is of")
        if public != self.public:
            nothing = uploads.from_vector(np.zeros(words.shape[1]), public)
            self.asked.check_packet(nothing.pack())
            self.asked.check(nothing)
        plan = self._plan(public)
        if words.shape != (plan.words, plan.size):
            raise SecureSumError(f"its masked upload has shape {words.shape}, not {(plan.words, plan.size)}")
        noise = header.get("noise")
        if not isinstance(noise, float | int) or not 0 < noise <= 1:
            raise SecureSumError("it does not say how much of the noise it has added")
        self.server.add(one)
        self.public, self.noise[one.name] = public, float(noise)

    def _confirm(self, one: Confirmed, header: Mapping[str, Any]) -> None:
        self.server.confirm(one)

    def _reveal(self, one: Revealed, header: Mapping[str, Any]) -> None:
        self.server.reveal(one)

    # --- the sum ---

    def _plan(self, public: Mapping[str, Any]) -> FixedPoint:
        return ranges.plan(public, self.asked.implied, len(self.server.known.clients))

    def _upload(self, total: np.ndarray, samples: int) -> Any:
        """The sum of uploads of so many samples, as their sites have signed."""
        upload = uploads.from_vector(self._plan(self.public).decode(total), self.public)
        if self.remote.settings.privacy.dp is None:
            try:
                self.asked.check(upload)
                if getattr(upload, "n", 0) > samples:
                    raise SecureSumError(f"the sum is of {upload.n} samples, and the sites have signed to bring {samples}")
            except GramfoldError as error:
                raise type(error)(f"some site lied, and under a secure sum nobody can tell which: {error}") from None
        return upload
