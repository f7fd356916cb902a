"""One process at a time in a folder. The lock is the kernel's and lies on the folder itself: no file stays behind, and it ends
with the process that holds it, however that ends."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gramfold.errors import FileError

POLL_SECONDS = 0.05


@contextmanager
def locked(folder: Path, refusal: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of a folder that exists; raise with these words if somebody else has it for longer than `patience` seconds.

    Where the system or the file system knows no locks (Windows, some network drives) there is none.
    """
    number = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    if number is None:
        yield
        return
    try:
        until = time.monotonic() + patience
        while not _taken(number):
            if time.monotonic() >= until:
                raise FileError(refusal)
            time.sleep(POLL_SECONDS)
        yield
    finally:
        os.close(number)


def _taken(number: int) -> bool:
    import fcntl

    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # no locks here
    return True
