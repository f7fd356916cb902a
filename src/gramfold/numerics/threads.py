"""One policy for BLAS threads, entered by engines, and by what spreads many small products over all cores by itself.

The number of threads is a setting of the whole process. Runs in several threads of a process may ask for different ones at the
same time and end in any order: the smallest requested number applies, and after the last run the process is as before.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_requested: list[int] = []
_limiter: Any = None
_controller: ThreadpoolController | None = None
_torch_threads = 0
"""How many threads PyTorch had before the limit; 0 where there is none."""
_engine: ContextVar[bool] = ContextVar("gramfold_engine", default=False)


@contextmanager
def limit(count: int) -> Iterator[None]:
    """At most `count` BLAS threads within the block."""
    _request(count)
    try:
        yield
    finally:
        _withdraw(count)


@contextmanager
def engine() -> Iterator[None]:
    """Within the block gramfold may set the number of threads; outside, the caller decides."""
    token = _engine.set(True)
    try:
        yield
    finally:
        _engine.reset(token)


def one_if_engine() -> Any:
    """One thread within an engine; no change elsewhere."""
    return limit(1) if _engine.get() else nullcontext()


def _request(count: int) -> None:
    with _lock:
        _requested.append(count)
        _apply()


def _withdraw(count: int) -> None:
    with _lock:
        _requested.remove(count)
        _apply()


def _apply() -> None:
    """Undo the current limit, which restores the original one, and set the smallest requested number."""
    global _limiter, _controller, _torch_threads
    torch = sys.modules.get("torch")
    if _limiter is not None:
        _limiter.restore_original_limits()
        _limiter = None
        if torch is not None and _torch_threads:
            torch.set_num_threads(_torch_threads)
    _torch_threads = 0
    if _requested:
        if _controller is None:
            _controller = ThreadpoolController()
        _limiter = _controller.limit(limits=min(_requested))
        if torch is not None:  # a pool of its own, which threads that begin now take their number from
            _torch_threads = torch.get_num_threads()
            torch.set_num_threads(min(_requested))
