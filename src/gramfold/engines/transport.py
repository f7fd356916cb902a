"""How a run reaches its clients: in this process, over a network, on a cluster. The driver does not depend on which."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gramfold.engines.deliveries import Deliveries
from gramfold.errors import GramfoldError
from gramfold.evaluation import Scored, score_each
from gramfold.federation import Samples, Task
from gramfold.heads import Head
from gramfold.methods import ClientData, Method
from gramfold.methods.finishing import SharedRoot, all_finished
from gramfold.numerics import stopwatch
from gramfold.wire.record import Record

PHASES = ("features", "local", "aggregate", "personalize", "evaluate")
TUNING = "tuning"
"""The phase of trial runs that choose parameters, where there are any."""
Out = TypeVar("Out")
Memories = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Round:
    """A round's request to clients: their uploads."""

    method: Method
    number: int
    clients: Sequence[str]
    broadcast: Record
    keep: bool
    """Whether the server must keep each client's upload for its reply."""
    deliveries: Deliveries

    @property
    def title(self) -> str:
        return f"round {self.number + 1}" if self.method.rounds > 1 else "local"


@dataclass
class Contribution:
    """The upload of one client, or the sum of several where the transport adds them up itself."""

    upload: Any
    bytes: Mapping[str, int]
    """Bytes sent, by client."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """The individual uploads, where the round keeps them."""


@dataclass(frozen=True)
class Final:
    """The final request to clients: their heads."""

    method: Method
    clients: Sequence[str]
    broadcast: Record
    reply: Callable[[str], Record]
    """The record that a client is sent."""
    contributed: Collection[str]
    """The clients whose samples are in the last sum."""
    shared: Head | None
    """The shared head, tested alongside each client's own."""
    keep_heads: bool
    deliveries: Deliveries
    task: Task
    root: SharedRoot = field(default_factory=SharedRoot)

    def finished(self, client: ClientData, test: Callable[[], Samples], reply: Record) -> "Finished":
        """What one client answers: its head, and how it does on its test samples."""
        return self.all_finished([client], lambda: [test()], [reply], {})[0]

    def all_finished(
        self,
        clients: Sequence[ClientData],
        tests: Callable[[], Sequence[Samples]],
        replies: Sequence[Record],
        made: Mapping[str, Head],
        device: str = "cpu",
    ) -> list["Finished"]:
        """What several clients answer, of which some heads may be made already; on a `device` together."""
        with stopwatch.phase("personalize"):
            empty = next((client.name for client in clients if not client.train.n), None)
            if empty is not None:
                raise GramfoldError(f"client {empty!r} has no training samples; leave it out")
            heads = [
                made.get(client.name) or self.method.personalize(client, reply)
                for client, reply in zip(clients, replies, strict=True)
            ]
            heads = all_finished(heads, self.method, clients, replies, self.task, self.keep_heads, self.root)
        with stopwatch.phase("evaluate"):
            scored = score_each(heads, self.shared, tests(), device)
        return [
            Finished(client.name, client.train.n, mine, shared, head.chosen, head if self.keep_heads else None)
            for client, head, (mine, shared) in zip(clients, heads, scored, strict=True)
        ]


@dataclass(frozen=True)
class Finished:
    """A client's figures, and its head if the transport returns it and it is to be kept."""

    name: str
    train: int
    """Training samples."""
    scored: Scored
    shared: Scored | None
    """The shared model on the same test split."""
    chosen: Mapping[str, Any]
    head: Head | None = None


class Fold:
    """The sum of a round's uploads, and the clients that contributed to it."""

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
        """The sum, released here so that a solver can reuse its memory."""
        total, self.total = self.total, None
        return total.settle()

    def upload_of(self, client: str) -> Any:
        """A client's upload, for methods that keep them."""
        return self._kept[client]


class Transport(ABC):
    """Clients, wherever they are."""

    task: Task

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.memories: Memories = {}
        """What each client remembers, where clients live in this process."""
        self.staged: Memories = {}
        """The memories after the current round; they take effect when it is over."""

    @abstractmethod
    def clients(self) -> Sequence[str]:
        """The clients that are available now."""

    def prepare(self, number: int) -> None:  # noqa: B027
        """Called before a round: the set of available clients may change."""

    def fold(self, round_: Round) -> Fold:
        """Where the uploads of a round are added up."""
        return Fold()

    @abstractmethod
    def uploads(self, round_: Round) -> Iterator[Contribution]:
        """Request uploads and yield them as they arrive; each is handled before the next is fetched."""

    def check(self, round_: Round, upload: Any) -> None:
        """Raise unless an upload from elsewhere is one that the round asked for."""
        round_.method.asked(round_.broadcast).check(upload)

    def release(self, total: Any, summed: int) -> Any:
        """The sum of so many clients' uploads, as the method gets it."""
        return total

    @property
    def statement(self) -> dict[str, Any]:
        """What the run keeps from whom, for the result."""
        return {}

    def exclude(self, client: str, reason: str) -> None:
        """Exclude a client whose upload is invalid; unless a transport does, the run ends."""
        raise GramfoldError(f"the upload of {client!r} is refused: {reason}")

    trusted: bool = True
    """Whether uploads come from this process and need no validation."""

    @abstractmethod
    def heads(self, final: Final) -> Iterator[Finished]:
        """Have every client compute its head, and yield its figures."""

    def at_server(self, phase: str, work: Callable[[], Out], size: float = math.inf) -> Out:
        """Run and time work at the server; `size` is the dimension of its matrices."""
        begun = time.perf_counter()
        out = work()
        self.seconds[phase] += time.perf_counter() - begun
        return out
