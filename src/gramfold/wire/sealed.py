"""JSON files of our own carry the version of their format and a checksum: what is damaged or changed is not believed."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gramfold.errors import FileError
from gramfold.wire.files import read, write_atomically
from gramfold.wire.strict_json import read_json

FORMAT, CHECKSUM = "format", "checksum"
FIRST = 1
"""The format of contents that do not name theirs."""


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its checksum.

    >>> sorted(sealed({"site": "a"}))
    ['checksum', 'format', 'site']
    """
    named = {FORMAT: FIRST, **content}
    return {**named, CHECKSUM: _digest(named)}


def write_sealed(path: Path, content: Mapping[str, Any], *, public: bool = False) -> None:
    write_atomically(path, json.dumps(sealed(content), indent=1, allow_nan=False).encode(), public=public)


def read_sealed(path: Path) -> dict[str, Any]:
    """The content that was written, without its checksum; ValueError unless it is just that."""
    content = opened(read_json(read(path)))
    if content.get(FORMAT) != FIRST:
        raise FileError(f"{path} was written by a newer gramfold (format {content.get(FORMAT)}, this reads {FIRST}); upgrade")
    return content


def sealed_line(content: Mapping[str, Any]) -> bytes:
    """A line of a file that grows."""
    return json.dumps(sealed(content), allow_nan=False).encode() + b"\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What the lines hold; ValueError unless all are as they were written."""
    return [opened(read_json(line)) for line in read(path).splitlines() if line.strip()]


def opened(content: Any) -> dict[str, Any]:
    """A sealed content without its checksum, which must fit; ValueError otherwise."""
    if not isinstance(content, dict) or CHECKSUM not in content:
        raise ValueError("no checksum")
    found = {key: value for key, value in content.items() if key != CHECKSUM}
    if content[CHECKSUM] != _digest(found):
        raise ValueError("its checksum does not fit")
    return found


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
