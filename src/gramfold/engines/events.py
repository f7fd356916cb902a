"""How far a run has come: what engines report, and progress bars, logs and other processes read."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """A client was heard of, or a phase went on: `done` of `total`."""

    phase: str
    done: int
    total: int
    client: str = ""
    received: int = 0
    """Bytes that the client sent."""
    seconds: float = 0.0
    """How long it took."""
    problem: str = ""
    """Why the run goes on without the client."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Event":
        fields: dict[str, Any] = json.loads(text)
        return cls(**fields)


Progress = Callable[[Event], None]
