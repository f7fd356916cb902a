"""Messages to nodes, and their answers one by one as they arrive.

Answers may be large, so only one is in memory at a time: it is pulled, handled and released before the next. But pulling an
answer whose sender died during the upload blocks for minutes. So pulls run in a daemon thread; one that takes too long is
replaced by a fresh thread; and at the deadline the caller continues, whatever the threads are doing. Answers that arrive
later are still yielded, together with those to the next request.

This is also where messages between sites would be relayed: a phase may `ask` any nodes, several times.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial

from flwr.app import Message as FlowerMessage
from flwr.serverapp import Grid

from gramfold.engines.flower import records
from gramfold.remote.messages import Arrival, Message, Request

POLL_SECONDS = 0.1, 2.0
"""The minimum and maximum interval between polls for the same answer; in between, a tenth of the time waited so far."""
CONNECT_SECONDS = 30.0
"""Within this time a running node is sure to have connected."""
PATIENCE = 0.1, 60.0
"""A pull that takes longer than this fraction of the deadline, or these seconds, no longer blocks the next."""


class FlowerExchange:
    """All traffic of one run over a grid."""

    def __init__(self, grid: Grid, deadline: float) -> None:
        self.grid, self.deadline = grid, deadline
        self.patience = min(PATIENCE[0] * deadline, PATIENCE[1])
        self._pending: deque[Request] = deque()
        self._arrived: queue.Queue[Arrival] = queue.Queue()
        self._lock = threading.Lock()
        self._turns: dict[int, float] = {}
        """When each thread began its current pull; 0 if it is idle."""
        self._answered: set[str] = set()
        self._closed = False

    def nodes(self, needed: int = 0, expected: int = 0) -> dict[int, str]:
        """The connected nodes, with their registered names. Waits until the deadline for as many as are needed, and briefly
        for the others that are expected."""
        begun = time.monotonic()
        while True:
            found = {int(node.node_id): str(node.name) for node in self.grid.get_nodes()}
            limit = self.deadline if len(found) < needed else min(CONNECT_SECONDS, self.deadline)
            if len(found) >= max(needed, expected) or time.monotonic() - begun >= limit:
                return found
            time.sleep(min(1.0, self.deadline))

    def ask(self, kind: str, messages: Iterable[tuple[int, Message]]) -> Iterator[Arrival]:
        """Send, and yield answers until all have arrived or the deadline has passed; then an error for each that is missing."""
        waiting: dict[str, Request] = {}
        builder = records.RecordBuilder()
        for node, message in messages:
            ids = list(self.grid.push_messages([FlowerMessage(builder.content(message), node, kind)]))
            request = Request(node, kind, ids[0] if ids and ids[0] else "", time.monotonic())
            if not request.message_id:
                yield Arrival(request, None, "the message could not be sent; it may be too large for the network")
                continue
            waiting[request.message_id] = request
            with self._lock:
                self._pending.append(request)
            self._ensure_thread()
        del messages, builder
        until = time.monotonic() + self.deadline
        while waiting and (left := until - time.monotonic()) > 0:
            self._ensure_thread()
            try:
                arrival = self._arrived.get(timeout=min(left, self.patience, 1.0))
            except queue.Empty:
                continue
            arrival.late = arrival.request.message_id not in waiting
            try:
                if arrival.request.message_id not in self._answered:  # delivered twice, it still counts once
                    self._answered.add(arrival.request.message_id)
                    yield arrival
            finally:
                waiting.pop(arrival.request.message_id, None)
                arrival.read = None
                arrival.handled.set()
        for request in waiting.values():
            yield Arrival(request, None, f"no answer within {self.deadline:g} s")

    def close(self) -> None:
        """Stop waiting for outstanding answers."""
        self._closed = True

    def _ensure_thread(self) -> None:
        """Make sure that at least one thread is not blocked."""
        with self._lock:
            now = time.monotonic()
            if all(began and now - began > self.patience for began in self._turns.values()):
                thread = threading.Thread(target=self._pull_loop, daemon=True, name="gramfold-pull")
                thread.start()
                if thread.ident is not None:
                    self._turns[thread.ident] = 0.0

    def _pull_loop(self) -> None:
        me = threading.get_ident()
        while not self._closed:
            request = self._next(me)
            if request is None:
                time.sleep(POLL_SECONDS[0] / 4)
                continue
            arrivals = self._pull(request)
            with self._lock:
                slow = time.monotonic() - self._turns[me] > self.patience
                self._turns[me] = 0.0
                if not arrivals:
                    now = time.monotonic()
                    request.poll_at = now + min(max(POLL_SECONDS[0], (now - request.sent) / 10), POLL_SECONDS[1])
                    self._pending.append(request)
            for arrival in arrivals:
                self._arrived.put(arrival)
                while not (self._closed or arrival.handled.wait(1.0)):
                    pass
            if slow:  # another thread has replaced this one
                break
        with self._lock:
            del self._turns[me]

    def _next(self, me: int) -> Request | None:
        with self._lock:
            now = time.monotonic()
            for _ in range(len(self._pending)):
                request = self._pending.popleft()
                if request.poll_at <= now:
                    self._turns[me] = now
                    return request
                self._pending.append(request)
            return None

    def _pull(self, request: Request) -> list[Arrival]:
        try:
            messages = list(self.grid.pull_messages([request.message_id]))
        except Exception as error:
            return [Arrival(request, None, f"the network failed: {type(error).__name__}: {error}")]
        return [
            Arrival(request, None, f"its app failed: {message.error.reason or message.error.code}")
            if message.has_error()
            else Arrival(request, partial(records.read, message.content))
            for message in messages
        ]
