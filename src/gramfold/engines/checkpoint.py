"""A long run on disk: what it takes to go on after the last finished round, in one safetensors file, written all or nothing."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gramfold import wire
from gramfold.errors import GramfoldError
from gramfold.federation import Federation
from gramfold.methods import Method
from gramfold.numerics import arrays
from gramfold.wire import Packet

EVERY_SECONDS = 30.0
"""A run that is killed outright loses at most this much."""


@dataclass
class State:
    """Where a run stands between two rounds."""

    broadcast: Packet
    round: int = 0
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each client remembers."""
    uplink: dict[str, int] = field(default_factory=dict)
    downlink: dict[str, int] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    tuned: dict[str, Any] = field(default_factory=dict)
    """What was chosen by trial before the first round."""


class Checkpoint:
    """One run's file in a folder. A file of another run is refused, never used."""

    def __init__(self, folder: Path, method: Method, federation: Federation) -> None:
        self.path = folder / f"{method.name}.safetensors"
        self._run = _fingerprint(method, federation)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GramfoldError(f"cannot make checkpoint folder {folder}: {error.strerror}") from None

    def load(self) -> State | None:
        """The state that was saved, None if there is none."""
        if not self.path.exists():
            return None
        packet = Packet.from_bytes(wire.read(self.path))
        meta = dict(packet.meta)
        if meta.pop("run", None) != self._run:
            raise GramfoldError(f"{self.path} is of a run with other data or settings; remove it or choose another folder")
        clients, inner = meta.pop("clients"), meta.pop("broadcast")
        memories: dict[str, dict[str, Any]] = {name: {} for name in clients}
        told: dict[str, Any] = {}
        for place, array in packet.arrays.items():
            kind, _, rest = place.partition("/")
            if kind == "broadcast":
                told[rest] = array
            else:
                number, _, key = rest.partition("/")
                memories[clients[int(number)]][key] = array
        triangular = frozenset(name.partition("/")[2] for name in packet.triangular)
        return State(Packet(told, inner, triangular), memories=memories, **meta)

    def save(self, state: State) -> None:
        clients = list(state.memories)
        parts = {f"broadcast/{name}": array for name, array in state.broadcast.arrays.items()}
        for k, name in enumerate(clients):
            parts |= {f"memory/{k}/{key}": array for key, array in state.memories[name].items()}
        meta = {
            "run": self._run, "clients": clients, "broadcast": dict(state.broadcast.meta), "round": state.round,
            "uplink": state.uplink, "downlink": state.downlink, "history": state.history, "seconds": state.seconds,
            "tuned": state.tuned,
        }  # fmt: skip
        triangular = frozenset(f"broadcast/{name}" for name in state.broadcast.triangular)
        wire.write_atomically(self.path, Packet(parts, meta, triangular).to_bytes())


def _fingerprint(method: Method, federation: Federation) -> str:
    """Equal for runs that give equal results: method, parameters, clients, task, and the first client's samples."""
    first = federation.clients[0].train()
    samples = [hashlib.sha256(np.ascontiguousarray(arrays.to_numpy(part)).tobytes()).hexdigest() for part in first]
    task = federation.task
    told = [
        method.name, dict(method.parameters()), [client.name for client in federation.clients], task.inputs, task.outputs,
        task.seed, dict(federation.description), samples,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:32]
