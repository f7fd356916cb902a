"""Processes that we start and certainly end: each in a group of its own, its output in a file."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gramfold.errors import GramfoldError

MARK = "GRAMFOLD_NETWORK"
"""In the environment of everything that belongs to a network: by it we find what has wandered off into a session of its own."""
KEPT = (
    "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "COVERAGE_PROCESS_START",
)  # fmt: skip
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Flower sends usage figures, looks for updates and installs packages unless it is told not to."""
POLL_SECONDS = "0.5"
"""How often a site's processes look for work: 0.1 made no run faster, and kept a quarter of a core busy with three idle sites."""
_EMPTY_WORDS = re.compile("For more information, visit|Exit Code: |An unhandled exception occurred|raised an exception$")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def environment(mark: Path, home: Path) -> dict[str, str]:
    """What a process of the network at `mark` is given: little of ours, and Flower's files in `home`."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return {
        **kept, **QUIET, "PATH": path, "FLWR_HOME": str(home), "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": POLL_SECONDS,
        "PYTHONUNBUFFERED": "1", MARK: str(mark),
    }  # fmt: skip


def command_path(name: str) -> str:
    """A command of Flower's, beside this Python."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise GramfoldError("Flower is not installed beside this Python: install gramfold[flower]")
    return str(path)


class Process:
    """A running command."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=dict(environment), cwd=folder,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self.returncode is None

    @property
    def returncode(self) -> int | None:
        """How it ended; None if it has not."""
        return self._popen.poll()

    def send(self, number: int) -> None:
        """A signal to it and its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        if self.running:
            self._popen.terminate()

    def stop(self, seconds: float = 5.0) -> None:
        """Ask it to end, and end it and its group."""
        self.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        self.send(signal.SIGKILL)
        self._popen.wait()

    def output(self) -> str:
        return read_log(self.log)


def read_log(path: Path) -> str:
    """What a process has said, without colours."""
    return _COLOURS.sub("", path.read_text(errors="replace")) if path.exists() else ""


def last_words(text: str) -> str:
    """The line of an output that says best what went wrong: the last error in it, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _EMPTY_WORDS.search(line)]
    errors = [line for line in lines if re.search(r"error|exception|failed|refused", line, re.IGNORECASE)]
    return (errors or lines or ["it said nothing"])[-1][:300]


def members(mark: Path) -> list[int]:
    """The processes that belong to the network at `mark`, other than this one (where /proc tells)."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != os.getpid() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_members(mark: Path, seconds: float = 2.0) -> None:
    """End whatever is left of a network; most of it goes by itself when its parent is gone."""
    deadline = time.monotonic() + seconds
    while (left := members(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while members(mark) and time.monotonic() < deadline + 5:
        time.sleep(0.05)
