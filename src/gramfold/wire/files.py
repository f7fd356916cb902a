"""Files that are written all or nothing."""

import hashlib
import os
from pathlib import Path

from gramfold.errors import GramfoldError


def write_atomically(path: Path, *pieces: bytes | memoryview) -> None:
    """Write under a temporary name, then rename: nobody ever sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(pieces)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise GramfoldError(f"cannot write {path}: {error.strerror}") from None


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise GramfoldError(f"cannot read {path}: {error.strerror}") from None


def file_name(name: str) -> str:
    """A client's name as a file name of its own that cannot leave its folder."""
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
