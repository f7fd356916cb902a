"""Features on disk, addressed by what they were made of: a shard's name is a hash of its samples, its folder one of the backbone.

    CACHE/seen.db                      which files were read before, and their hashes
    CACHE/BACKBONE/KEY.npy             the features of some hundreds of samples
    CACHE/BACKBONE/journal.jsonl       a line for each shard that is complete, with its checksum

A shard is written under a temporary name and renamed, then noted in the journal: whatever is not noted is made again. So an
extraction that was killed goes on where it was, data that has grown costs what is new, and two backbones never mix.
"""

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gramfold import wire
from gramfold.errors import BackboneError

JOURNAL = "journal.jsonl"
Report = Callable[[str], None]


def default_cache() -> Path:
    """GRAMFOLD_CACHE, or the user's cache folder."""
    named = os.environ.get("GRAMFOLD_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gramfold"


class Cache:
    """The shards of one backbone."""

    def __init__(self, folder: Path, fingerprint: str, report: Report) -> None:
        self.root, self.folder, self._report = folder, folder / fingerprint, report
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BackboneError(f"cannot make the cache {self.folder}: {error.strerror}; choose another with --cache") from None
        self._journal = self._read()

    def _read(self) -> dict[str, str]:
        """Checksums by shard. A last line that a kill has cut off is dropped."""
        path = self.folder / JOURNAL
        if not path.exists():
            return {}
        text = path.read_bytes()
        complete = text[: text.rfind(b"\n") + 1]
        if len(complete) < len(text):
            os.truncate(path, len(complete))
        noted: dict[str, str] = {}
        for line in complete.decode(errors="replace").splitlines():
            try:
                entry = json.loads(line)
                noted[str(entry["shard"])] = str(entry["sha256"])
            except (ValueError, KeyError, TypeError):
                self._report(f"a line of {path} cannot be read; its shard is made again")
        return noted

    def get(self, key: str, rows: int) -> np.ndarray | None:
        """A shard, memory-mapped; None where it is not there, or not as it was written."""
        if key not in self._journal:
            return None
        path = self._path(key)
        try:
            with path.open("rb") as file:
                intact = hashlib.file_digest(file, "sha256").hexdigest() == self._journal[key]
            found: np.ndarray | None = np.load(path, mmap_mode="r", allow_pickle=False) if intact else None
        except (OSError, ValueError):
            found = None
        if found is None or found.ndim != 2 or len(found) != rows:
            self._report(f"shard {path.name} in {self.folder} is damaged; it is made again")
            return None
        return found

    def put(self, key: str, rows: np.ndarray) -> np.ndarray:
        """Keep a shard, and give it back memory-mapped."""
        path = self._path(key)
        header = _npy_header(rows)
        content = np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data
        digest = hashlib.sha256(header)
        digest.update(content)
        wire.write_atomically(path, header, content)
        if self._journal.get(key) != digest.hexdigest():
            line = json.dumps({"shard": key, "rows": len(rows), "sha256": digest.hexdigest()}) + "\n"
            with (self.folder / JOURNAL).open("a") as journal:
                journal.write(line)
                journal.flush()
                os.fsync(journal.fileno())
            self._journal[key] = digest.hexdigest()
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npy"


def _npy_header(rows: np.ndarray) -> bytes:
    """The beginning of an .npy file that holds these rows."""
    beginning = io.BytesIO()
    np.lib.format.write_array_header_2_0(beginning, np.lib.format.header_data_from_array_1_0(np.ascontiguousarray(rows)))
    return beginning.getvalue()
