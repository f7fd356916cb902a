"""Secure sums played through in one process, with every message packed and unpacked on its way."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gramfold.privacy import Client, SecureSum, Server
from gramfold.privacy.protocol import Confirmations, Masked, Revealed, Survivors
from gramfold.wire import Packet
from gramfold.wire.record import Record

STEPS = ("keys", "share", "mask", "confirm", "unmask", "never")
"""Before which step a client drops out."""
ASKED = "a1" * 32
"""The digest of what clients are asked."""


def sent(message: Record) -> Any:
    """A message as it arrives."""
    return Record.unpack(Packet.from_bytes(message.pack().to_bytes()))


def kept(client: Client) -> Client:
    """A client that was put away between two messages."""
    return sent(client)


def secure_sum(
    vectors: Mapping[str, np.ndarray],
    policy: SecureSum,
    drops: Mapping[str, str] | None = None,
    seed: int | None = None,
    look: Callable[[Masked], None] = lambda masked: None,
) -> np.ndarray:
    """The sum as ring elements. `seed`: of all that is random, for a test that must not fail by chance."""
    drops = drops or {}
    options = {} if seed is None else {"random": random.Random(seed).randbytes}
    drawn = options.get("random", random.Random(0).randbytes)

    def left(step: str) -> list[str]:
        return [name for name in vectors if STEPS.index(drops.get(name, "never")) > STEPS.index(step)]

    server = Server("session", policy, ASKED)
    identities = {name: drawn(32) for name in vectors}
    clients = {name: Client.begin(name, "session", identities[name], **options) for name in left("keys")}
    roster = sent(server.roster([sent(client.keys) for client in clients.values()]))
    for name in left("share"):
        server.take(sent(clients[name].share(roster, **options)))
    inboxes = server.inboxes()
    clients = {name: kept(client) for name, client in clients.items()}
    for name in left("mask"):
        masked = sent(clients[name].mask(sent(inboxes[name]), vectors[name], ASKED))
        look(masked)
        server.add(masked)
    survivors = sent(server.survivors())
    clients = {name: kept(client) for name, client in clients.items()}
    for name in left("confirm"):
        server.confirm(sent(clients[name].confirm(survivors, identities[name])))
    confirmations = sent(server.confirmations())
    for name in left("unmask"):
        server.reveal(sent(kept(clients[name]).unmask(confirmations)))
    return server.total()


def identity(name: str) -> bytes:
    """The private key of a client called by a letter."""
    return bytes([ord(name) - ord("a") + 1]) * 32


def unmasked(clients: Mapping[str, Client], survivors: Survivors) -> list[Revealed]:
    """What clients reveal once all of them have confirmed one list."""
    signed = {name: clients[name].confirm(survivors, identity(name)).signature for name in survivors.names}
    return [clients[name].unmask(Confirmations(signed)) for name in survivors.names]
