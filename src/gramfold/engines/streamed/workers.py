"""Worker processes that make heads, each a batch at a time."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gramfold.engines.streamed import worker
from gramfold.errors import GramfoldError
from gramfold.federation.streams import ClientBatch

Numbered = tuple[int, ClientBatch]


def personalize(folder: Path, batches: Iterable[Numbered], count: int, done: Callable[[int], None]) -> None:
    """Have so many processes make the heads of all batches; `done` is called with the number of each that is finished."""
    source, lock, stop = iter(batches), threading.Lock(), threading.Event()

    def following() -> Numbered | None:
        with lock:
            return None if stop.is_set() else next(source, None)

    def feed(_: int) -> None:
        try:
            for number in _served(folder, following):
                with lock:
                    done(number)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(count) as pool:
        try:
            list(pool.map(feed, range(count)))
        except BaseException:
            stop.set()  # Ctrl-C reaches this thread only: workers finish the batch that they have
            raise


def _served(folder: Path, following: Callable[[], Numbered | None]) -> Iterator[int]:
    """The numbers of the batches that one process has finished."""
    with _started(folder) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            while (batch := following()) is not None:
                try:
                    worker.send(process.stdin, worker.packed(*batch))  # type: ignore[arg-type]
                    answer = worker.receive(process.stdout)  # type: ignore[arg-type]
                except OSError:
                    answer = None
                if answer is None:
                    raise GramfoldError("a worker process has died; call gf.run_streamed again, and it goes on where it stopped")
                if "error" in answer.meta:
                    raise GramfoldError(str(answer.meta["error"]))
                yield batch[0]
        except BaseException:
            process.kill()
            raise


def _started(folder: Path) -> "subprocess.Popen[bytes]":
    """A worker, which finds the modules that this process finds."""
    alone = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    found = {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", f"from {worker.__name__} import main; main()", str(folder.absolute())],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **alone, **found}, start_new_session=True,
    )  # fmt: skip
