"""Memory is asked before it is taken: one line that says what is needed and what to do, in place of a killed process."""

import os
from pathlib import Path

from gramfold.errors import TooLargeError

GIGABYTE = 1e9
SMALL = GIGABYTE / 4
"""Less than this is taken without asking."""
GROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")


def available() -> float | None:
    """The bytes that this process can still take, by the machine and by its control group; None where nobody says."""
    known = [found for found in (_of_machine(), _of_group()) if found is not None]
    return min(known, default=None)


def ask(needed: float, what: str, remedy: str) -> None:
    """Raise unless there are so many bytes."""
    if needed < SMALL:
        return
    there = available()
    if there is not None and needed > there:
        raise TooLargeError(f"{what} take {needed / GIGABYTE:.1f} GB, and {there / GIGABYTE:.1f} GB are there; {remedy}")


def _of_machine() -> float | None:
    try:
        lines = MEMINFO.read_text().splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return None


def _of_group() -> float | None:
    try:
        most = (GROUP / "memory.max").read_text().strip()
        if most == "max":
            return None
        statistics = dict(line.split() for line in (GROUP / "memory.stat").read_text().splitlines())
        used = int((GROUP / "memory.current").read_text()) - int(statistics.get("inactive_file", 0))
        return max(float(int(most) - used), 0.0)
    except (OSError, ValueError):
        return None
