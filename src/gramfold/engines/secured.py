"""A secure sum with all of its clients in this process, in which every message is made and counted as if it travelled."""

import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from gramfold import uploads
from gramfold.errors import SecureSumError
from gramfold.methods import Method, spec_of
from gramfold.privacy import Client, SecureSum, Server, ranges
from gramfold.privacy.protocol import asked
from gramfold.wire.record import Record


class SecuredRound:
    """One sum of these clients' uploads, in a round of a method. Adding is safe from several threads."""

    def __init__(self, names: Sequence[str], policy: SecureSum, method: Method, number: int, broadcast: Record) -> None:
        if len(names) < policy.minimum:
            raise SecureSumError(f"a secure sum of {len(names)} clients would hide nobody; it takes {policy.minimum} or more")
        self.up: dict[str, int] = dict.fromkeys(names, 0)
        """Bytes sent, by client."""
        self.down: dict[str, int] = dict.fromkeys(names, 0)
        self._implied, self._lock = method.asked(broadcast).implied, threading.Lock()
        self._public: Mapping[str, Any] | None = None
        question = {"method": spec_of(method), "parameters": dict(method.parameters()), "round": number}
        session, self._asked = secrets.token_hex(16), asked(question, broadcast.pack())
        self._server = Server(session, policy, self._asked)
        self._identities = {name: secrets.token_bytes(32) for name in names}
        self._clients = {name: Client.begin(name, session, identity) for name, identity in self._identities.items()}
        roster = self._server.roster([self._sent(name, client.keys) for name, client in self._clients.items()])
        size = roster.pack().wire_bytes
        self.down = dict.fromkeys(names, size)
        for name, client in self._clients.items():
            self._server.take(self._sent(name, client.share(roster)))
        self._inboxes = self._server.inboxes()

    def add(self, name: str, upload: Any) -> None:
        """A client masks its upload; the server adds it up."""
        public = upload.public()
        plan = ranges.plan(public, self._implied, len(self._clients))
        masked = self._clients[name].mask(self._inboxes[name], plan.encode(upload.vector()), self._asked)
        with self._lock:
            self.down[name] += self._inboxes[name].pack().wire_bytes
            if self._public not in (None, public):
                raise SecureSumError(f"the upload of {name!r} is of another kind or shape than the others'")
            self._public = public
            self._server.add(self._sent(name, masked))

    def total(self) -> Any:
        """The sum, as an upload."""
        assert self._public is not None
        survivors = self._server.survivors()
        for name in survivors.names:
            self._server.confirm(self._sent(name, self._clients[name].confirm(survivors, self._identities[name])))
        confirmations = self._server.confirmations()
        size = survivors.pack().wire_bytes + confirmations.pack().wire_bytes
        self.down = {name: count + size for name, count in self.down.items()}
        for name in survivors.names:
            self._server.reveal(self._sent(name, self._clients[name].unmask(confirmations)))
        plan = ranges.plan(self._public, self._implied, len(self._clients))
        return uploads.from_vector(plan.decode(self._server.total()), self._public)

    def _sent(self, name: str, message: Any) -> Any:
        assert isinstance(message, Record)
        self.up[name] += message.pack().wire_bytes
        return message
