"""Who was forgotten, as hashes, beside the folders of runs and not in them: a backup that is restored, or copied in as another
folder, brings back neither a site nor its upload.

A line has no name in it: the hash of the name with the sum's id (which a copy of the folder has too), that of the name with the
folder's path, and the SHA-256 of what the site sent.
"""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from gramfold import wire
from gramfold.errors import FileError

REGISTER = "gramfold-forgotten.jsonl"


class Register:
    """The hashes of all that was forgotten in the folders beside each other."""

    def __init__(self, marks: Iterable[str] = ()) -> None:
        self._marks = frozenset(marks)

    def __bool__(self) -> bool:
        return bool(self._marks)

    def holds(self, out: Path, site: str, ledger: str = "", digest: str | None = None) -> bool:
        """Whether a site of a folder was forgotten: there, in the sum that this is a copy of, or by what it sent."""
        return bool(self._marks & set(_marks(out, site, ledger, digest)))


def path_of(out: Path) -> Path:
    """The file for a run's folder: in the folder that it lies in."""
    return out.absolute().parent / REGISTER


def read(out: Path) -> Register:
    path = path_of(out)
    if not path.exists():
        return Register()
    try:
        return Register(str(mark) for line in wire.read_lines(path) for mark in line["marks"])
    except (KeyError, TypeError, ValueError):
        raise FileError(f"{path} is damaged; restore it, so that nobody is taken in again who was forgotten") from None


def add(out: Path, site: str, ledger: str, digest: str | None) -> None:
    marks = _marks(out, site, ledger, digest)
    line = wire.sealed_line({"time": datetime.now(UTC).isoformat(timespec="seconds"), "marks": marks})
    try:
        wire.append(path_of(out), line)
    except OSError as error:
        raise FileError(f"cannot write {path_of(out)}: {error.strerror}") from None


def name_hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _marks(out: Path, site: str, ledger: str, digest: str | None) -> list[str]:
    here = [name_hash("path", str(out.resolve()), site)]
    return here + ([name_hash("sum", ledger, site)] if ledger else []) + ([digest] if digest else [])
