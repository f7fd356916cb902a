"""Many small problems in parallel: one BLAS thread per client, clients side by side.

Threads inside one small solve cost more than they gain: 100 heads took 24 s with threaded BLAS and 2 s this way.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TypeVar

from gramfold.engines.events import Event, Progress
from gramfold.numerics import stopwatch, threads
from gramfold.numerics.stopwatch import Stopwatch

Item = TypeVar("Item")
State = TypeVar("State")
SMALL_SYSTEM = 512
"""Solves below this size take milliseconds on one thread; on a busy machine two threads can take a hundred times as long."""


def cpu_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Runs a function over items in parallel and adds up where the time went."""

    def __init__(self, count: int, progress: Progress | None = None, seconds: dict[str, float] | None = None) -> None:
        self.count = max(1, count)
        self.seconds: dict[str, float] = seconds if seconds is not None else {}
        self._progress = progress

    def each(
        self,
        phase: str,
        items: Sequence[Item],
        work: Callable[[State, Item], None],
        start: Callable[[], State],
        size: Callable[[Item], int] = lambda item: 1,
    ) -> list[State]:
        """Every worker makes a state and does its share of the items with it; the states come back in worker order. `size`: how
        many an item counts for where progress is shown.

        Worker w takes items w, w + count, ...: with the same number of workers the sums have the same order every time.
        """
        count = min(self.count, max(len(items), 1))
        done, total, lock, stop = 0, sum(map(size, items)), threading.Lock(), threading.Event()
        watch = Stopwatch()

        def share(w: int) -> State:
            nonlocal done
            state = start()
            with stopwatch.on(watch):
                for i in range(w, len(items), count):
                    if stop.is_set():
                        break
                    try:
                        work(state, items[i])
                    except BaseException:
                        stop.set()
                        raise
                    if self._progress:
                        with lock:
                            done += size(items[i])
                            self._progress(Event(phase, done, total))
            return state

        begun = time.perf_counter()
        if count == 1:
            states = [share(0)]
        else:
            with threads.limit(max(1, cpu_count() // count)), ThreadPoolExecutor(count) as pool:
                try:
                    states = list(pool.map(share, range(count)))
                except BaseException:
                    stop.set()  # Ctrl-C reaches this thread only: let the others finish their current item
                    raise
        self._book(watch, time.perf_counter() - begun)
        return states

    def server(self, phase: str, work: Callable[[], State], size: float = math.inf) -> State:
        """Run and time work at the server: with all BLAS threads, or with one where its matrices are small."""
        watch, begun = Stopwatch(), time.perf_counter()
        narrow = threads.limit(1) if size < SMALL_SYSTEM else nullcontext()
        with narrow, stopwatch.on(watch), stopwatch.phase(phase):
            out = work()
        self._book(watch, time.perf_counter() - begun)
        return out

    def _book(self, watch: Stopwatch, wall: float) -> None:
        """Share the wall-clock time among the phases as the threads spent it."""
        busy = sum(watch.seconds.values())
        for name, seconds in watch.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds * (wall / busy if busy else 0.0)
