"""Messages between a server and its sites, and the interface that carries them; implementations are elsewhere."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gramfold.privacy.protocol import asked
from gramfold.wire import Packet
from gramfold.wire.record import Record

TASK, QUERY, TRAIN, EVALUATE, SECURE = "query.task", "query", "train", "evaluate", "query.secure"
"""The kinds of message: describe your data; send your upload (of the only round; of one of many); compute and test your head;
take the next step of a secure sum."""
BROADCAST, UPLOAD, REPLACED = "broadcast", "upload", "replaced"
"""The names of the packets in a message."""
STEP = "step"
"""Which step of a secure sum a message is for, in its header; and the packet that a step takes or gives."""


@dataclass(frozen=True)
class Message:
    """A small header, as JSON, and packets by name."""

    header: Mapping[str, Any]
    packets: Mapping[str, Packet] = field(default_factory=dict)


def asked_of(header: Mapping[str, Any], broadcast: Record) -> str:
    """The digest of all that a site is asked in a secure sum: everything in the header but the step, and the broadcast. Sites
    sign it, and the masks of one that was asked anything else do not cancel."""
    return asked({key: value for key, value in header.items() if key != STEP}, broadcast.pack())


@dataclass
class Request:
    """A message that has been sent and awaits its answer."""

    node: int
    kind: str
    message_id: str
    sent: float
    poll_at: float = 0.0


@dataclass
class Arrival:
    """An answer, or why there is none. Reading it empties it, so that nothing is in memory twice."""

    request: Request
    read: Callable[[], Message] | None
    error: str = ""
    late: bool = False
    """Whether it answers a request of an earlier phase."""
    handled: threading.Event = field(default_factory=threading.Event)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.request.sent


class Exchange(Protocol):
    """Messages to nodes, and their answers one by one as they arrive."""

    deadline: float

    def nodes(self, needed: int = 0, expected: int = 0) -> dict[int, str]:
        """The connected nodes, with their registered names. Waits until the deadline for as many as are needed, and briefly
        for the others that are expected."""

    def ask(self, kind: str, messages: Iterable[tuple[int, Message]]) -> Iterator[Arrival]:
        """Send, and yield answers until all have arrived or the deadline has passed; then an error for each that is missing."""


def one_line(text: str, most: int = 300) -> str:
    """An error as one line of bounded length, without characters that a terminal would obey."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 10 * most]).split()) or "no reason given"
    return line if len(line) <= most else line[: most - 3] + "..."
