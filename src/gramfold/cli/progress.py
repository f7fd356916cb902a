"""Progress of long runs: a bar on a terminal, plain lines otherwise. Always on standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gramfold.engines import Event
from gramfold.engines import Progress as ReportProgress
from gramfold.report.text import duration


class Display:
    """Shows one method after another."""

    def __init__(self, methods: int, console: Console, bar: Progress | None) -> None:
        self._methods, self._console, self._bar, self._begun = methods, console, bar, 0

    @contextmanager
    def method(self, name: str) -> Iterator[ReportProgress]:
        self._begun += 1
        title = f"[{self._begun}/{self._methods}] {name}"
        if self._bar is None:
            start = time.perf_counter()
            yield lambda event: None
            self._console.print(f"{title}: {duration(time.perf_counter() - start)}", markup=False, highlight=False)
            return
        task = self._bar.add_task(title, total=None)

        def show(event: Event) -> None:
            assert self._bar is not None
            shown = f"{title}: {event.phase}".replace("[", r"\[")
            self._bar.update(task, description=shown, completed=event.done, total=event.total)

        yield show
        self._bar.remove_task(task)


@contextmanager
def show_progress(methods: int) -> Iterator[Display]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Display(methods, console, None)
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console, transient=True
    ) as bar:
        yield Display(methods, console, bar)
