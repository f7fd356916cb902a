"""One policy for BLAS threads, entered by engines only.

The number of threads is a setting of the whole process. Runs in several threads of a process may ask for different ones at the
same time and end in any order: the least that anybody asks for holds, and after the last the process is as it was.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_asked: list[int] = []
_limiter: Any = None
_controller: ThreadpoolController | None = None
_engine: ContextVar[bool] = ContextVar("gramfold_engine", default=False)


@contextmanager
def limit(count: int) -> Iterator[None]:
    """At most so many BLAS threads within the block."""
    _ask(count)
    try:
        yield
    finally:
        _withdraw(count)


@contextmanager
def engine() -> Iterator[None]:
    """Within the block gramfold may set the number of threads; outside it is the caller's business."""
    token = _engine.set(True)
    try:
        yield
    finally:
        _engine.reset(token)


def one_if_engine() -> Any:
    """One thread within an engine; no change elsewhere."""
    return limit(1) if _engine.get() else nullcontext()


def _ask(count: int) -> None:
    with _lock:
        _asked.append(count)
        _apply()


def _withdraw(count: int) -> None:
    with _lock:
        _asked.remove(count)
        _apply()


def _apply() -> None:
    """Undo the present limit, which restores what was there before anybody asked, and set the least that is asked for."""
    global _limiter, _controller
    if _limiter is not None:
        _limiter.restore_original_limits()
        _limiter = None
    if _asked:
        if _controller is None:
            _controller = ThreadpoolController()
        _limiter = _controller.limit(limits=min(_asked))
