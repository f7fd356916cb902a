"""What a secure sum costs: seconds and bytes for each client and for the server, beside the plain upload.

    python -m benchmarks.secure [--clients 10 50 200]

Moments of m = 769 features and 100 classes, every message made and counted, one client after another. Seconds are the
processor's, on one core: neighbours do not count.
"""

import argparse
import secrets
import time
from typing import Any

import numpy as np

import gramfold as gf
from benchmarks.timing import write
from gramfold.moments import Implied
from gramfold.privacy import Client, SecureSum, Server, graph, ranges

FEATURES, CLASSES, SAMPLES = 769, 100, 400
ASKED = "a1" * 32
"""The digest of what clients are asked."""


def measure(clients: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows, codes = rng.standard_normal((SAMPLES, FEATURES)), rng.integers(0, CLASSES, SAMPLES)
    upload = gf.Moments.from_features(rows, codes, CLASSES)
    names, session = [f"client-{k}" for k in range(clients)], secrets.token_hex(16)
    server, sent = Server(session, SecureSum(), ASKED), 0
    spent = dict.fromkeys(("keys", "share", "mask", "confirm", "unmask"), 0.0)
    identities = {name: secrets.token_bytes(32) for name in names}

    def timed(step: str, work: Any) -> Any:
        nonlocal sent
        begun = time.process_time()
        message = work()
        spent[step] += time.process_time() - begun
        sent += message.pack().wire_bytes
        return message

    members = {}
    for name in names:
        begun = time.process_time()
        members[name] = Client.begin(name, session, identities[name])
        spent["keys"] += time.process_time() - begun
        sent += members[name].keys.pack().wire_bytes
    roster = server.roster([member.keys for member in members.values()])
    for member in members.values():
        server.take(timed("share", lambda member=member: member.share(roster)))
    inboxes = server.inboxes()
    plan = ranges.plan(upload.public(), Implied(), clients)
    adding = 0.0
    for name, member in members.items():
        masked = timed("mask", lambda member=member, name=name: member.mask(inboxes[name], plan.encode(upload.vector()), ASKED))
        begun = time.process_time()
        server.add(masked)
        adding += time.process_time() - begun
    survivors = server.survivors()
    confirming = 0.0
    for name, member in members.items():
        confirmed = timed("confirm", lambda member=member, name=name: member.confirm(survivors, identities[name]))
        begun = time.process_time()
        server.confirm(confirmed)
        confirming += time.process_time() - begun
    confirmations = server.confirmations()
    for member in members.values():
        server.reveal(timed("unmask", lambda member=member: member.unmask(confirmations)))
    begun = time.process_time()
    total = plan.decode(server.total())
    unmasking = time.process_time() - begun
    exact = float(np.abs(total - clients * upload.vector()).max() / np.abs(total).max())
    many = rng.standard_normal((FEATURES, FEATURES)), rng.integers(0, CLASSES, FEATURES)
    triangle = gf.Moments.from_features(*many, CLASSES)
    received = roster.pack().wire_bytes + inboxes[names[0]].pack().wire_bytes
    received += survivors.pack().wire_bytes + confirmations.pack().wire_bytes
    return {
        "clients": clients, "neighbours": graph.degree(clients), "client_seconds": sum(spent.values()) / clients,
        "steps_seconds": {step: seconds / clients for step, seconds in spent.items()}, "client_bytes": sent / clients,
        "client_received_bytes": received, "server_adding_seconds": adding, "server_confirming_seconds": confirming,
        "server_unmasking_seconds": unmasking,
        "plain_bytes_few_samples": upload.wire_bytes, "plain_bytes": triangle.wire_bytes, "relative_error": exact,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[10, 50, 200])
    given = parser.parse_args()
    write("secure", {"features": FEATURES, "classes": CLASSES, "runs": [measure(clients) for clients in given.clients]})


if __name__ == "__main__":
    main()
