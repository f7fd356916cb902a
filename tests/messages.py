"""A run's messages as they travel, and what they weigh when they are really serialised."""

from collections import defaultdict

import pytest

from gramfold.engines.deliveries import Deliveries
from gramfold.wire import Packet


def delivered(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Packet]]:
    """The packets that each client receives, while anything runs after this."""
    packets: dict[str, list[Packet]] = defaultdict(list)
    original = Deliveries.delivered

    def recorded(self: Deliveries, client: str, packet: Packet) -> None:
        packets[client].append(packet)
        original(self, client, packet)

    monkeypatch.setattr(Deliveries, "delivered", recorded)
    return packets


def really_serialised(kind, monkeypatch):
    """Bytes up and down by client, counted while a method of this kind runs after this."""
    up: dict[str, int] = defaultdict(int)
    received, original = delivered(monkeypatch), kind.local

    def recorded(self, client, broadcast):
        upload = original(self, client, broadcast)
        up[client.name] += len(upload.pack().to_bytes())
        return upload

    monkeypatch.setattr(kind, "local", recorded)
    return up, lambda name: sum(len(packet.to_bytes()) for packet in received[name])
