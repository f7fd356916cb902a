"""Progress events: reported by engines, read by progress bars, logs and other processes."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """A client answered, or a phase progressed: `done` of `total`."""

    phase: str
    done: int
    total: int
    client: str = ""
    received: int = 0
    """Bytes that the client sent."""
    seconds: float = 0.0
    """Time until its answer."""
    problem: str = ""
    """Why the client was excluded."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Event":
        fields: dict[str, Any] = json.loads(text)
        return cls(**fields)


Progress = Callable[[Event], None]
