"""A share of a run: some of its clients, worked on in the process that has their data. The others are elsewhere, on other workers
of a cluster or in other files; sums of shares are sums of clients."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gramfold.engines.deliveries import Deliveries
from gramfold.engines.inprocess import InProcess
from gramfold.engines.options import RunOptions
from gramfold.engines.transport import Final, Finished, Fold, Memories, Round
from gramfold.federation import Client, Federation, Task
from gramfold.methods import Method
from gramfold.numerics import threads
from gramfold.wire.record import Record


@dataclass
class Folded:
    """What the clients of a share have sent, added up."""

    upload: Any
    bytes: dict[str, int]
    """Bytes sent, by client: that of each alone."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Each client's own upload, where the round keeps them."""
    memories: Memories = field(default_factory=dict)
    """What each client remembers after the round."""


class Share:
    """Some clients of a task, and what they remember of earlier rounds. `workers`: how many threads, each with its own clients;
    None: as many as there are cores."""

    def __init__(
        self,
        method: Method,
        clients: Sequence[Client],
        task: Task,
        memories: Memories | None = None,
        *,
        device: str = "cpu",
        workers: int | None = None,
    ) -> None:
        self.method, self.names = method, [client.name for client in clients]
        self.transport = InProcess(method, Federation(clients, task), RunOptions(device=device), workers=workers)
        self.transport.memories = memories or {}

    def fold(self, number: int, broadcast: Record, keep: bool = False, names: Sequence[str] | None = None) -> Folded:
        """The sum of the uploads of a round, of all its clients or of those named."""
        asked = Round(
            self.method,
            number,
            self.names if names is None else names,
            broadcast,
            keep,
            announced(broadcast, self.method.precision),
        )
        fold, sent = Fold(), dict[str, int]()
        kept: dict[str, Any] = {}
        with threads.engine():
            for contribution in self.transport.uploads(asked):
                sent |= contribution.bytes
                kept |= contribution.kept
                fold.add(contribution)
        return Folded(fold.total, sent, kept, self.transport.staged)

    def finish(self, final: Final) -> Iterator[Finished]:
        """Every client's head and figures."""
        with threads.engine():
            yield from self.transport.heads(final)


def announced(broadcast: Record, precision: str | None) -> Deliveries:
    """Deliveries to clients that have received nothing before."""
    deliveries = Deliveries(precision=precision)
    deliveries.announce(broadcast)
    return deliveries
