"""Files that are written all or nothing, and that nobody else reads."""

import hashlib
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from gramfold.errors import FileError

_TEMPORARY = re.compile(r"\.gramfold-[0-9a-f]{32}\.tmp")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def write_atomically(path: Path, *pieces: bytes | memoryview, public: bool = False) -> None:
    """Write under a temporary name, then rename: nobody ever sees half a file, not even after a power cut.

    The temporary name cannot be guessed, so nothing can lie in wait under it. Only the owner can read the file; one that is
    `public`, a page for people, is as readable as their umask says.
    """
    temporary = path.with_name(f".gramfold-{secrets.token_hex(16)}.tmp")
    try:
        with os.fdopen(os.open(temporary, _FLAGS, 0o666 if public else 0o600), "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise FileError(f"cannot write {path}: {error.strerror}") from None


def private_folder(folder: Path) -> None:
    """Make a folder, and those above it, for nobody but their owner; one that is there stays as it is."""
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)


def append(path: Path, line: bytes) -> None:
    """Add to a file that grows; only the owner can read it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600), "ab") as file:
        with suppress(OSError):  # one of an earlier gramfold
            os.chmod(path, 0o600)
        file.write(line)


def sync_folder(folder: Path) -> None:
    """Make what was renamed or removed in a folder last; some file systems know no such thing."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def is_temporary(path: Path) -> bool:
    """Whether it is what a write of ours that was killed has left."""
    return _TEMPORARY.fullmatch(path.name) is not None


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


def file_name(name: str) -> str:
    """A client's name as a file name of its own that cannot leave its folder."""
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
