"""What a sample is, as a hash of its content: a file, a text, an array or an image."""

import hashlib
import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.errors import BackboneError
from gramfold.numerics.arrays import is_torch, to_numpy


class Digests:
    """Hashes of samples. A file that has the size and time it had when it was last read is not read again."""

    def __init__(self, path: Path) -> None:
        try:
            self._known = sqlite3.connect(path, timeout=60.0)
            self._known.execute("CREATE TABLE IF NOT EXISTS seen (path TEXT PRIMARY KEY, size INT, changed INT, digest BLOB)")
        except sqlite3.DatabaseError as error:
            raise BackboneError(f"cannot use the cache's list {path}: {error}; remove that file") from None

    def of(self, sample: Any) -> bytes:
        if isinstance(sample, Path):
            return self._of_file(sample)
        return hashlib.sha256(content(sample)).digest()

    def _of_file(self, path: Path) -> bytes:
        name = str(path.absolute())
        try:
            status = path.stat()
        except OSError as error:
            return hashlib.sha256(f"missing {name} {error.errno}".encode()).digest()
        now = (status.st_size, status.st_mtime_ns)
        found = self._known.execute("SELECT size, changed, digest FROM seen WHERE path = ?", (name,)).fetchone()
        if found is not None and found[:2] == now:
            return bytes(found[2])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        self._known.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", (name, *now, digest))
        return digest

    def keep(self) -> None:
        """Write down what was read."""
        self._known.commit()

    def close(self) -> None:
        self.keep()
        self._known.close()


def content(sample: Any) -> bytes:
    """A sample that is no file, as bytes that no other sample has."""
    match sample:
        case str():
            return b"text " + sample.encode()
        case bytes() | bytearray() | memoryview():
            return b"bytes " + bytes(sample)
        case _ if is_torch(sample):
            return b"tensor " + content(to_numpy(sample))
        case np.ndarray():
            return f"array {sample.dtype.str} {sample.shape} ".encode() + np.ascontiguousarray(sample).tobytes()
        case dict():
            if sample.get("bytes"):
                return b"bytes " + bytes(sample["bytes"])
            return b"file " + Path(os.fspath(sample["path"])).read_bytes()
    if hasattr(sample, "tobytes") and hasattr(sample, "mode"):
        return f"image {sample.mode} {sample.size} ".encode() + bytes(sample.tobytes())
    raise BackboneError(f"a sample is a path, a text, an array or an image, not {type(sample).__name__}")
