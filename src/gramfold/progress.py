"""How far long work is, on standard error: a bar on a terminal, one line that changes in a notebook, plain lines otherwise.

Nothing is shown of what is done in a moment, so that short runs, tests and examples are silent.
"""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.errors import LiveError
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

Show = Callable[[str, int, int], None]
"""Called with a phase, how much of it is done, and of how much."""
AT_ONCE = 1.0
"""Seconds after which a bar is worth its place."""
LINE = 15.0
"""Seconds after which a line is, where lines stay; and between two of them."""
REFRESH = 0.5
"""Seconds between two changes of a notebook's line."""


class Display(ABC):
    """Shows one piece of work after another, of so many. `always`: also what took but a moment."""

    def __init__(self, pieces: int, console: Console, always: bool) -> None:
        self.pieces, self.console, self.always = pieces, console, always
        self._begun, self._lock = 0, threading.RLock()

    @contextmanager
    def piece(self, name: str) -> Iterator[Show]:
        """A piece of work of this name; gives what to call as it goes on."""
        self._begun += 1
        title = f"[{self._begun}/{self.pieces}] {name}" if self.pieces > 1 or self.always else name
        start = time.perf_counter()

        def show(phase: str, done: int, total: int) -> None:
            with self._lock:
                self.show(title, phase, done, total, time.perf_counter() - start)

        yield show
        self.end(title, time.perf_counter() - start)

    @abstractmethod
    def show(self, title: str, phase: str, done: int, total: int, spent: float) -> None: ...

    @abstractmethod
    def end(self, title: str, spent: float) -> None: ...


class OnTerminal(Display):
    """A bar that goes when the work is done."""

    _bar: Bar | None = None
    _task: Any = None

    def show(self, title: str, phase: str, done: int, total: int, spent: float) -> None:
        if self._bar is None and (self.always or spent > AT_ONCE):
            columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
            self._bar = Bar(*columns, console=self.console, transient=True)
            with suppress(LiveError):  # somebody shows a bar already
                self._bar.start()
        if self._bar is not None:
            self._task = self._bar.add_task(title, total=None) if self._task is None else self._task
            self._bar.update(self._task, description=f"{title}: {phase}".replace("[", r"\["), completed=done, total=total)

    def end(self, title: str, spent: float) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


class InLines(Display):
    """A line now and then, and one at the end of what took long."""

    _last = 0.0

    def show(self, title: str, phase: str, done: int, total: int, spent: float) -> None:
        if spent - self._last > LINE:
            self._last = spent
            self._print(f"{title}: {phase}, {done} of {total}, {spoken(spent)}")

    def end(self, title: str, spent: float) -> None:
        if self.always or self._last:
            self._print(f"{title}: {spoken(spent)}")
        self._last = 0.0

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class InNotebook(Display):
    """One line below the cell, which changes."""

    _handle: Any = None
    _last = 0.0

    def show(self, title: str, phase: str, done: int, total: int, spent: float) -> None:
        if spent > AT_ONCE and spent - self._last > REFRESH:
            self._last = spent
            self._write(f"{title}: {phase}, {done} of {total}, {spoken(spent)}")

    def end(self, title: str, spent: float) -> None:
        if self._handle is not None:
            self._write(f"{title}: {spoken(spent)}")
        self._last = 0.0

    def _write(self, line: str) -> None:
        from IPython import display

        content = {"text/plain": line}
        if self._handle is None:
            self._handle = display.display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(content, raw=True)


def spoken(seconds: float) -> str:
    """
    >>> spoken(3.21), spoken(200)
    ('3 s', '3 min 20 s')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


@contextmanager
def display(pieces: int = 1, *, always: bool = False) -> Iterator[Display]:
    """What shows so many pieces of work, one after another, here."""
    console = Console(stderr=True)
    kind: type[Display] = InNotebook if _in_notebook() else OnTerminal if console.is_terminal else InLines
    shown = kind(pieces, console, always)
    try:
        yield shown
    finally:
        if isinstance(shown, OnTerminal):
            shown.close()


def _in_notebook() -> bool:
    """Whether there is a cell to show something below: only where a notebook has imported IPython itself."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
