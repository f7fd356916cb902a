"""What passes between a server and its sites, and what carries it. Nothing here knows how."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gramfold.wire import Packet

TASK, QUERY, TRAIN, EVALUATE = "query.task", "query", "train", "evaluate"
"""The kinds of message: what is your data like; your upload (of one round; of one of many); make your head and test it."""
BROADCAST, UPLOAD, REPLACED = "broadcast", "upload", "replaced"
"""What the packets of a message are called."""


@dataclass(frozen=True)
class Message:
    """A small header, as JSON, and packets by name."""

    header: Mapping[str, Any]
    packets: Mapping[str, Packet] = field(default_factory=dict)


@dataclass
class Asked:
    """A message that is out."""

    node: int
    kind: str
    message_id: str
    sent: float
    look_at: float = 0.0


@dataclass
class Arrival:
    """An answer, or why there is none. Reading it empties it, so that nothing is held twice."""

    asked: Asked
    read: Callable[[], Message] | None
    error: str = ""
    late: bool = False
    """Whether it belongs to a phase that has gone on without it."""
    handled: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.asked.sent


class Exchange(Protocol):
    """Messages to nodes, and their answers one by one as they come."""

    deadline: float

    def nodes(self, needed: int = 0, expected: int = 0) -> dict[int, str]:
        """The nodes that are connected, with the names they are registered under. Waits for as many as are needed until the
        deadline, and a little for those that are expected beyond."""

    def ask(self, kind: str, messages: Iterable[tuple[int, Message]]) -> Iterator[Arrival]:
        """Send, and yield what comes until all have answered or the deadline is over; then those who have not."""


def one_line(text: str) -> str:
    """An error as one line of bounded length."""
    line = " ".join(text.split()) or "no reason given"
    return line if len(line) <= 300 else line[:297] + "..."
