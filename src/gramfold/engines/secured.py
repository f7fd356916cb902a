"""What a run keeps to itself: which methods can, and a secure sum with all of its clients in this process, in which every message
is made and counted as if it travelled."""

import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from gramfold import uploads
from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.methods import Method, Tunable, spec_of
from gramfold.privacy import Client, Privacy, SecureSum, Server, ranges
from gramfold.privacy.protocol import asked
from gramfold.wire.record import Record


def check_private(method: Method, privacy: Privacy, task: Task) -> None:
    """Raise, in words, where a method needs more than it would get."""
    if not privacy:
        return
    if method.keeps_uploads:
        raise GramfoldError(
            f"{method.name} answers each client from its own upload, which nobody is to see; "
            "personalise at the clients (fedhip: at='client'; pace, deepafl, pacecnn: regime='sum')"
        )
    if privacy.dp is not None and (method.rounds > 1 or task.labels is None):
        what = f"{method.name} has {method.rounds} rounds" if method.rounds > 1 else "continuous targets have no bound"
        raise GramfoldError(
            f"differential privacy is for classes and methods of one round of moments, such as afl, or pace with "
            f"features='bias+linear': {what}"
        )
    if privacy.dp is not None and method.parameters().get("precision") not in (None, "float64"):
        raise GramfoldError("noise is calibrated for moments as they are, not for rounded ones; use precision='float64'")
    unset = method.undecided if isinstance(method, Tunable) else ()
    if unset:
        raise GramfoldError(
            f"{method.name} would tune {unset[0]} by trial runs on what nobody is to see; set it, for example "
            f"--set {method.name}.{unset[0]}=..."
        )


class SecuredRound:
    """One sum of these clients' uploads, in a round of a method. Adding is safe from several threads."""

    def __init__(self, names: Sequence[str], policy: SecureSum, method: Method, number: int, broadcast: Record) -> None:
        if len(names) < policy.minimum:
            raise GramfoldError(f"a secure sum of {len(names)} clients would hide nobody; it takes {policy.minimum} or more")
        self.up: dict[str, int] = dict.fromkeys(names, 0)
        """Bytes sent, by client."""
        self.down: dict[str, int] = dict.fromkeys(names, 0)
        self._implied, self._lock = method.implied(broadcast), threading.Lock()
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
                raise GramfoldError(f"the upload of {name!r} is of another kind or shape than the others'")
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
