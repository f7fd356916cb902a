"""Progress events: reported by engines, read by progress bars, logs and other processes."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from gramfold import wire
from gramfold.errors import MessageError
from gramfold.progress import Show, display


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
        try:
            fields: dict[str, Any] = wire.read_json(text)
            return cls(**fields)
        except (TypeError, ValueError) as error:
            raise MessageError(f"not an event of a run: {error}") from None


Progress = Callable[[Event], None]


def to(show: Show) -> Progress:
    """Events as a display takes them."""
    return lambda event: show(event.phase, event.done, event.total)


@contextmanager
def reported(progress: Progress | bool, name: str) -> Iterator[Progress | None]:
    """What a run calls: what was given, nothing (False), or a display of its own (True)."""
    if not isinstance(progress, bool):
        yield progress
    elif progress:
        with display() as shown, shown.piece(name) as show:
            yield to(show)
    else:
        yield None
