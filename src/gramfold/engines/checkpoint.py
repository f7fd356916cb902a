"""Checkpoints of long runs: all that is needed to resume after the last finished round, in one atomic safetensors file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.engines.deliveries import Deliveries
from gramfold.engines.driver import State
from gramfold.engines.transport import Memories
from gramfold.errors import MALFORMED, FileError
from gramfold.federation import Client, Federation
from gramfold.methods import Method
from gramfold.wire import Packet
from gramfold.wire.record import Record

SAVE_EVERY_SECONDS = 30.0
"""A run that is killed outright loses at most this much work."""


@dataclass(frozen=True)
class Saved:
    """A run between two rounds: the driver's state, the clients' memories, and the seconds per phase so far."""

    state: State
    memories: Memories
    seconds: dict[str, float]


@dataclass(frozen=True)
class Snapshot(Record, kind="checkpoint"):
    """The same as a record."""

    broadcast: Record
    round: int
    memories: Mapping[str, Mapping[str, Any]]
    uplink: Mapping[str, int]
    contributed: Sequence[str]
    deliveries: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    seconds: Mapping[str, float]
    tuned: Mapping[str, Any]
    finished: bool


class Checkpoint:
    """One run's file in a folder. A file from a different run is refused, never used."""

    def __init__(self, folder: Path, method: Method, federation: Federation, privacy: Mapping[str, Any] | None = None) -> None:
        """`privacy`: what the run states of it."""
        self.path = folder / f"{method.name}.safetensors"
        self._run = _fingerprint(method, federation, privacy or {})
        self._samples = {client.name: _digest(client) for client in federation.clients}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make checkpoint folder {folder}: {error.strerror}") from None

    def load(self) -> Saved | None:
        """The saved run; None if there is none."""
        if not self.path.exists():
            return None
        packet = Packet.from_bytes(wire.read(self.path))
        if packet.meta.get("run") != self._run:
            raise FileError(f"{self.path} belongs to a run with other data or settings; remove it or choose another folder")
        before: Any = packet.meta.get("samples")
        known = before if isinstance(before, dict) else {}
        changed = next((name for name, digest in self._samples.items() if known.get(name) != digest), None)
        if changed is not None:
            raise FileError(
                f"client {changed!r} has other samples than when {self.path} was written; remove it or choose another folder"
            )
        try:
            return _restored(packet)
        except MALFORMED as error:
            raise FileError(f"{self.path} is damaged; remove it and start over: {error!r}") from None

    def save(self, saved: Saved) -> None:
        state = saved.state
        packed = Snapshot(
            state.broadcast, state.round, saved.memories, state.uplink, sorted(state.contributed), state.deliveries.to_dict(),
            state.history, saved.seconds, state.tuned, state.finished,
        ).pack()  # fmt: skip
        whole = Packet(packed.arrays, {"run": self._run, "samples": self._samples, "snapshot": packed.meta}, packed.triangular)
        wire.write_atomically(self.path, whole.to_bytes())


def _restored(packet: Packet) -> Saved:
    saved = Snapshot.unpack(Packet(packet.arrays, packet.meta["snapshot"], packet.triangular))
    state = State(
        saved.broadcast, saved.round, dict(saved.uplink), frozenset(saved.contributed),
        Deliveries.from_dict(saved.deliveries, saved.broadcast), [dict(entry) for entry in saved.history], dict(saved.tuned),
        saved.finished,
    )  # fmt: skip
    return Saved(state, {name: dict(memory) for name, memory in saved.memories.items()}, dict(saved.seconds))


def _fingerprint(method: Method, federation: Federation, privacy: Mapping[str, Any]) -> str:
    """Equal for runs with equal results if their samples are equal: a hash of method, parameters, clients and task."""
    task = federation.task
    identity = [
        method.name, dict(method.parameters()), [client.name for client in federation.clients], task.inputs, task.outputs,
        task.seed, dict(federation.description), *([dict(privacy)] if privacy else []),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _digest(client: Client) -> str:
    """Of all its samples, those it is tested on too: the figures of earlier rounds are theirs."""
    return f"{client.train().digest()[:32]}{client.test().digest()[:32]}"
