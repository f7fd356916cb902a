"""Exclusive time per named phase, summed over threads."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Exclusive seconds per name; nested phases are not counted twice."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def _add(self, name: str, seconds: float) -> None:
        with self._lock:
            self.seconds[name] += seconds


class _Running(threading.local):
    stopwatch: Stopwatch | None = None
    inner: float = 0.0


_running = _Running()


@contextmanager
def on(stopwatch: Stopwatch) -> Iterator[None]:
    """Let phases timed in this thread count for `stopwatch`."""
    before, _running.stopwatch = _running.stopwatch, stopwatch
    try:
        yield
    finally:
        _running.stopwatch = before


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Time a block under a name, less the phases inside it."""
    stopwatch = _running.stopwatch
    if stopwatch is None:
        yield
        return
    outer, _running.inner = _running.inner, 0.0
    start = time.perf_counter()
    try:
        yield
    finally:
        elapsed = time.perf_counter() - start
        stopwatch._add(name, elapsed - _running.inner)
        _running.inner = outer + elapsed
