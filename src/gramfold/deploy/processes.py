"""Processes that are always stopped again: each in its own group, its output in a file."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gramfold.errors import InstallError

MARK = "GRAMFOLD_NETWORK"
"""An environment variable of every process of a network: it finds those that have moved to another session."""
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
"""Settings without which Flower sends usage statistics, checks for updates and installs packages."""
POLL_SECONDS = "0.5"
"""How often a site's processes poll for work: 0.1 made no run faster, and used a quarter of a core with three idle sites."""
_UNINFORMATIVE = re.compile("For more information, visit|Exit Code: |An unhandled exception occurred|raised an exception$")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def environment(mark: Path, home: Path) -> dict[str, str]:
    """The environment for a process of the network at `mark`: a few of our variables, and Flower's files in `home`."""
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
        raise InstallError("Flower is not installed beside this Python: install gramfold[flower]")
    return str(path)


_GUARD = 'read _; kill -s TERM -- "-$0"; sleep 2; kill -s KILL -- "-$0"'
"""A line that never comes is waited for: the read ends when the process that would write it does, however it ended."""


def _guard(group: int) -> "subprocess.Popen[bytes]":
    """A shell that ends a group of processes once this process is gone, even if it was killed outright."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, str(group)], stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env={}, start_new_session=True
    )


class Process:
    """A running command. It ends with this process, even where that is killed."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=dict(environment), cwd=folder,
                start_new_session=True, umask=0o077 if os.name == "posix" else -1,  # databases, logs: nobody else's
            )  # fmt: skip
        self._guard = _guard(self._popen.pid)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self.returncode is None

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it runs."""
        code = self._popen.poll()
        if code is not None and self._guard.returncode is None:
            self._dismiss()  # its number may become another's
        return code

    def send(self, number: int) -> None:
        """A signal to it and its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def terminate(self) -> None:
        """Ask it to exit."""
        if self.running:
            self._popen.terminate()

    def stop(self, seconds: float = 5.0) -> None:
        """Ask it to exit, then kill it and its group."""
        self.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        self.send(signal.SIGKILL)
        self._popen.wait()
        self._dismiss()

    def _dismiss(self) -> None:
        """The guard has nothing left to wait for."""
        self._guard.kill()
        self._guard.communicate()

    def output(self) -> str:
        return read_log(self.log)


def read_log(path: Path) -> str:
    """The output of a process, without colours."""
    return _COLOURS.sub("", path.read_text(errors="replace")) if path.exists() else ""


def error_line(text: str) -> str:
    """The most informative line of an output: the last error in it, or else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _UNINFORMATIVE.search(line)]
    errors = [line for line in lines if re.search(r"error|exception|failed|refused", line, re.IGNORECASE)]
    return (errors or lines or ["no output"])[-1][:300]


def members(mark: Path) -> list[int]:
    """The processes that belong to the network at `mark`, other than this one (on systems with /proc)."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != os.getpid() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_members(mark: Path, seconds: float = 2.0) -> None:
    """Kill what is left of a network; most processes exit by themselves after their parent."""
    deadline = time.monotonic() + seconds
    while (left := members(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while members(mark) and time.monotonic() < deadline + 5:
        time.sleep(0.05)
