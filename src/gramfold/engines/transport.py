"""What carries a run to its clients: in this process, on a network, on a cluster. The driver does not know the difference."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gramfold.engines.deliveries import Deliveries
from gramfold.evaluation import Scored
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods import Method
from gramfold.wire.record import Record

PHASES = ("features", "local", "aggregate", "personalize", "evaluate")
Out = TypeVar("Out")
Memories = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Round:
    """What is asked of clients in a round: their uploads."""

    method: Method
    number: int
    clients: Sequence[str]
    broadcast: Record
    keep: bool
    """Whether the server needs each of these uploads again."""
    deliveries: Deliveries

    @property
    def title(self) -> str:
        return f"round {self.number + 1}" if self.method.rounds > 1 else "local"


@dataclass
class Contribution:
    """What one client sent, or several, added up already where a transport can do that best."""

    upload: Any
    bytes: Mapping[str, int]
    """What each of them sent, by name."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """The uploads apart, where the round keeps them."""


@dataclass(frozen=True)
class Final:
    """What is asked of clients at the end: their heads."""

    method: Method
    clients: Sequence[str]
    broadcast: Record
    reply: Callable[[str], Record]
    """What a client is sent."""
    contributed: Collection[str]
    """The clients whose samples are in the last sum."""
    shared: Head | None
    """The shared head, to be tested beside each client's own."""
    keep_heads: bool
    deliveries: Deliveries


@dataclass(frozen=True)
class Finished:
    """A client's figures; and its head, where that comes here and is to be kept."""

    name: str
    train: int
    """Training samples."""
    scored: Scored
    shared: Scored | None
    """The shared model on the same test split."""
    chosen: Mapping[str, Any]
    head: Head | None = None


class Fold:
    """The sum of a round's uploads, and who is in it."""

    def __init__(self) -> None:
        self.total: Any = None
        self.contributed: set[str] = set()
        self._kept: dict[str, Any] = {}

    def add(self, contribution: Contribution) -> None:
        upload = contribution.upload
        self._kept |= contribution.kept
        if self.total is None:
            self.total = upload.copy() if contribution.kept else upload
        else:
            self.total += upload
        self.contributed |= contribution.bytes.keys()

    def take_total(self) -> Any:
        """The sum, which is not held here any longer: a solver may want its memory."""
        total, self.total = self.total, None
        return total.settle()

    def upload_of(self, client: str) -> Any:
        """A client's upload again, for methods that keep them."""
        return self._kept[client]


class Transport(ABC):
    """Clients, wherever they are."""

    task: Task

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.memories: Memories = {}
        """What each client remembers, where clients live in this process."""
        self.staged: Memories = {}
        """The same after the round that is under way: it holds once the round is over."""

    @abstractmethod
    def clients(self) -> Sequence[str]:
        """Who can be asked now."""

    def prepare(self, number: int) -> None:  # noqa: B027
        """A round is about to begin: who is there may change."""

    def fold(self, round_: Round) -> Fold:
        """Where the uploads of a round are added up."""
        return Fold()

    @abstractmethod
    def uploads(self, round_: Round) -> Iterator[Contribution]:
        """Ask for uploads, and yield them as they come; each is handled before the next is asked for."""

    def exclude(self, client: str, reason: str) -> None:
        """Go on without a client whose upload cannot be used. Where clients are trusted, that is the end."""
        raise AssertionError(f"{client}: {reason}")

    trusted: bool = True
    """Whether uploads come from this very process, and need no check."""

    @abstractmethod
    def heads(self, final: Final) -> Iterator[Finished]:
        """Have every client make its head, and yield its figures."""

    def at_server(self, phase: str, work: Callable[[], Out], size: float = math.inf) -> Out:
        """Do one thing here, timed; `size` is that of its matrices."""
        begun = time.perf_counter()
        out = work()
        self.seconds[phase] += time.perf_counter() - begun
        return out
