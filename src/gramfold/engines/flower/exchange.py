"""Messages to nodes, and their answers one by one as they come.

Answers may be large, so there is one in memory at a time: it is pulled, handled and released before the next is. But a pull of
an answer whose sender has died in mid-upload blocks for minutes. So pulls are done in a daemon thread; one that takes too long
loses its turn to a fresh thread; and at the deadline the caller goes on, whatever the threads are doing. Answers that come
later than that still come out, with those of whatever was asked next.

This is also where messages between sites would be relayed: a phase is free to `ask` several times, any nodes, anything.
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
from gramfold.remote.messages import Arrival, Asked, Message

POLL = 0.1, 2.0
"""The least and most seconds between two looks for the same answer; in between, a tenth of what it has taken so far."""
CONNECTING = 30.0
"""Seconds in which a node that is up is sure to be connected."""
PATIENCE = 0.1, 60.0
"""A pull that takes longer than this part of the deadline, or these seconds, no longer holds up the next."""


class FlowerExchange:
    """All traffic of one run over a grid."""

    def __init__(self, grid: Grid, deadline: float) -> None:
        self.grid, self.deadline = grid, deadline
        self.patience = min(PATIENCE[0] * deadline, PATIENCE[1])
        self._pending: deque[Asked] = deque()
        self._arrived: queue.Queue[Arrival] = queue.Queue()
        self._lock = threading.Lock()
        self._turns: dict[int, float] = {}
        """When each thread began what it is doing; 0 for nothing."""
        self._answered: set[str] = set()
        self._closed = False

    def nodes(self, needed: int = 0, expected: int = 0) -> dict[int, str]:
        """The nodes that are connected, with the names they are registered under. Waits for as many as are needed until the
        deadline, and a little for those that are expected beyond."""
        begun = time.monotonic()
        while True:
            found = {int(node.node_id): str(node.name) for node in self.grid.get_nodes()}
            limit = self.deadline if len(found) < needed else min(CONNECTING, self.deadline)
            if len(found) >= max(needed, expected) or time.monotonic() - begun >= limit:
                return found
            time.sleep(min(1.0, self.deadline))

    def ask(self, kind: str, messages: Iterable[tuple[int, Message]]) -> Iterator[Arrival]:
        """Send, and yield what comes until all have answered or the deadline is over; then those who have not."""
        waiting: dict[str, Asked] = {}
        laid_out = records.LaidOut()
        for node, message in messages:
            ids = list(self.grid.push_messages([FlowerMessage(laid_out.content(message), node, kind)]))
            asked = Asked(node, kind, ids[0] if ids and ids[0] else "", time.monotonic())
            if not asked.message_id:
                yield Arrival(asked, None, "the message could not be sent; it may be too large for the network")
                continue
            waiting[asked.message_id] = asked
            with self._lock:
                self._pending.append(asked)
            self._staff()
        del messages, laid_out
        until = time.monotonic() + self.deadline
        while waiting and (left := until - time.monotonic()) > 0:
            self._staff()
            try:
                arrival = self._arrived.get(timeout=min(left, self.patience, 1.0))
            except queue.Empty:
                continue
            arrival.late = arrival.asked.message_id not in waiting
            try:
                if arrival.asked.message_id not in self._answered:  # delivered twice, it is still one answer
                    self._answered.add(arrival.asked.message_id)
                    yield arrival
            finally:
                waiting.pop(arrival.asked.message_id, None)
                arrival.read = None
                arrival.handled.set()
        for asked in waiting.values():
            yield Arrival(asked, None, f"no answer within {self.deadline:g} s")

    def close(self) -> None:
        """Let go of what is still out."""
        self._closed = True

    def _staff(self) -> None:
        """See to it that a thread is there that is not held up."""
        with self._lock:
            now = time.monotonic()
            if all(began and now - began > self.patience for began in self._turns.values()):
                thread = threading.Thread(target=self._take_turns, daemon=True, name="gramfold-pull")
                thread.start()
                if thread.ident is not None:
                    self._turns[thread.ident] = 0.0

    def _take_turns(self) -> None:
        me = threading.get_ident()
        while not self._closed:
            asked = self._next(me)
            if asked is None:
                time.sleep(POLL[0] / 4)
                continue
            arrivals = self._pull(asked)
            with self._lock:
                slow = time.monotonic() - self._turns[me] > self.patience
                self._turns[me] = 0.0
                if not arrivals:
                    now = time.monotonic()
                    asked.look_at = now + min(max(POLL[0], (now - asked.sent) / 10), POLL[1])
                    self._pending.append(asked)
            for arrival in arrivals:
                self._arrived.put(arrival)
                while not (self._closed or arrival.handled.wait(1.0)):
                    pass
            if slow:  # another has taken its place
                break
        with self._lock:
            del self._turns[me]

    def _next(self, me: int) -> Asked | None:
        with self._lock:
            now = time.monotonic()
            for _ in range(len(self._pending)):
                asked = self._pending.popleft()
                if asked.look_at <= now:
                    self._turns[me] = now
                    return asked
                self._pending.append(asked)
            return None

    def _pull(self, asked: Asked) -> list[Arrival]:
        try:
            messages = list(self.grid.pull_messages([asked.message_id]))
        except Exception as error:
            return [Arrival(asked, None, f"the network failed: {type(error).__name__}: {error}")]
        return [
            Arrival(asked, None, f"its app failed: {message.error.reason or message.error.code}")
            if message.has_error()
            else Arrival(asked, partial(records.read, message.content))
            for message in messages
        ]
