"""The clients of a federation as the partitions of a cluster."""

import math
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from gramfold.engines.dask import tasks
from gramfold.engines.dask.tasks import Asked, Ending, State, Sum
from gramfold.engines.events import Event, Progress
from gramfold.engines.options import RunOptions
from gramfold.engines.transport import Contribution, Final, Finished, Out, Round, Transport
from gramfold.engines.workers import Workers
from gramfold.errors import NetworkError
from gramfold.federation import Federation
from gramfold.methods import Method

if TYPE_CHECKING:
    from distributed import Client, Future

EACH = 4
"""Partitions for each thread of the cluster: enough to even out clients of different sizes, few enough sums."""
TRIES = 4
"""How often samples are sent anew before a cluster that loses them is given up."""
Found = TypeVar("Found")


@dataclass(frozen=True)
class _Question:
    """A round as it was asked, for what is lost with a worker."""

    asked: Asked
    clients: frozenset[str]
    broadcast: bytes


class OnDask(Transport):
    """The clients of a federation, on a cluster."""

    def __init__(
        self,
        method: Method,
        federation: Federation,
        options: RunOptions,
        cluster: "Client",
        progress: Progress | None = None,
    ) -> None:
        super().__init__()
        self.task, self.cluster, self.options, self.progress = federation.task, cluster, options, progress
        self._partitions = _cut(list(federation.clients), EACH * max(1, sum(cluster.nthreads().values())))
        self._names = [[client.name for client in partition] for partition in self._partitions]
        self._asked = Asked(method, self.task, options.device)
        self._remembers = method.rounds > 1 or method.answer is not None
        self._rounds: list[_Question] = []
        self._sent: dict[int, Future] = {}
        """Clients whose samples were sent, by partition."""
        self._states: dict[int, Future] = {}
        self._workers = Workers(1, None, self.seconds)

    def clients(self) -> Sequence[str]:
        return [name for names in self._names for name in names]

    def at_server(self, phase: str, work: Callable[[], Out], size: float = math.inf) -> Out:
        return self._workers.server(phase, work, size)

    # --- rounds ---

    def uploads(self, round_: Round) -> Iterator[Contribution]:
        asked = replace(self._asked, method=round_.method, number=round_.number, keep=round_.keep)
        self._rounds.append(_Question(asked, frozenset(round_.clients), round_.broadcast.pack().to_bytes()))
        with self._timed("local"):
            total = self._lasting(lambda: self._folded(round_.title))
        for name in round_.clients:
            round_.deliveries.delivered(name, round_.deliveries.packet(name, round_.broadcast))
        if total.upload is not None:
            yield Contribution(total.upload, total.bytes)

    def _folded(self, title: str) -> Sum:
        """The sum of the last round."""
        self._restore(self._rounds[:-1])
        sums = self._ask(self._rounds[-1])
        total = self._tree(sums)
        self._watch(title, sums)
        del sums  # on the cluster a partition's sum is dropped once it is merged
        found: Sum = total.result()
        if found.partitions != frozenset(range(len(self._partitions))):
            raise AssertionError("a partition is missing in the sum")
        return found

    def _restore(self, rounds: Sequence[_Question]) -> None:
        """Have clients remember earlier rounds, where that was lost."""
        if self._remembers and not self._states:
            for question in rounds:
                self._ask(question)

    def _ask(self, question: _Question) -> "list[Future]":
        """The partitions' sums. What their clients remember stays on the cluster."""
        asked, broadcast, sums = question.asked, self._send(question.broadcast), []
        for place, names in enumerate(self._names):
            wanted = [name for name in names if name in question.clients]
            before = self._states.get(place, State())
            folded = self._submit(tasks.fold, place, self._clients_at(place), wanted, asked, broadcast, before)
            sums.append(self._submit(tasks.sum_of, folded))
            if self._remembers:
                self._states[place] = self._submit(tasks.state_of, folded)
        return sums

    def _tree(self, sums: "list[Future]") -> "Future":
        """One sum of all, added up in an order that follows from their number."""
        while len(sums) > 1:
            pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
            sums = [self._submit(tasks.merge, *pair) if len(pair) > 1 else pair[0] for pair in pairs]
        return sums[0]

    # --- every client's own model ---

    def heads(self, final: Final) -> Iterator[Finished]:
        with self._timed("personalize"):
            found = self._lasting(lambda: self._finished(final))
        for done, received in found:
            final.deliveries.bytes[done.name] = final.deliveries.bytes.get(done.name, 0) + received
            yield done

    def _finished(self, final: Final) -> list[tuple[Finished, int]]:
        """Every client's figures, and the bytes that it is sent."""
        self._restore(self._rounds)
        packed, folder = final.broadcast.pack(), self.options.heads
        if folder is not None:
            folder = folder.absolute() / final.method.name if final.keep_heads else None
        about = {"version": packed.digest()[:16], "clients": len(final.contributed) or None, "seed": self.task.seed}
        broadcast, shared, futures = self._send(packed.to_bytes()), self._send(final.shared), []
        for place, names in enumerate(self._names):
            mine = frozenset(name for name in names if name in final.contributed)
            known = [final.deliveries.packet(name, final.broadcast).known for name in names]
            ending = Ending(replace(self._asked, method=final.method), mine, final.keep_heads, folder, about)
            state = self._states.get(place, State())
            futures.append(self._submit(tasks.finish, self._clients_at(place), ending, shared, broadcast, known, state))
        self._watch("personalize", futures)
        return [done for part in self.cluster.gather(futures) for done in part]

    # --- the cluster ---

    def _submit(self, work: Callable[..., Any], *given: Any) -> "Future":
        """A task under a name of its own: no other run's result is taken for it."""
        return self.cluster.submit(work, *given, key=f"gramfold-{work.__name__}-{uuid.uuid4().hex}", pure=False)

    def _send(self, value: Any) -> "Future":
        [future] = self.cluster.scatter([value], hash=False)
        return future

    def _clients_at(self, place: int) -> Any:
        """A partition as a task takes it."""
        clients = self._partitions[place]
        if place not in self._sent:
            if tasks.is_light(clients):
                return clients
            self._sent[place] = self._send([tasks.loaded(client) for client in clients])
        return self._sent[place]

    def _lasting(self, work: Callable[[], Found]) -> Found:
        """The outcome of some tasks. What was sent and died with its worker is sent anew, and what follows is run again."""
        from distributed import KilledWorker

        for _ in range(TRIES):
            try:
                return work()
            except KilledWorker as error:
                raise NetworkError(f"workers died one after the other of the same clients (out of memory?): {error}") from None
            except CancelledError:
                self._sent.clear()
                self._states.clear()
        raise NetworkError("the cluster loses its workers faster than they work; look at its logs")

    def _watch(self, phase: str, futures: "Sequence[Future]") -> None:
        """Report partitions as they are done."""
        if self.progress is None:
            return
        from distributed import as_completed

        sizes, done, total = dict(zip((each.key for each in futures), map(len, self._names), strict=True)), 0, len(self.clients())
        for future in as_completed(futures, loop=self.cluster.loop):
            done += sizes[future.key]
            self.progress(Event(phase, done, total))

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - begun


def _cut(clients: list[Any], most: int) -> list[list[Any]]:
    """Runs of clients, as equal in number as can be."""
    many = max(1, min(len(clients), most))
    edges = [len(clients) * i // many for i in range(many + 1)]
    return [clients[start:end] for start, end in pairwise(edges)]
