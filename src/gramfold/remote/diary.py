"""A site's own record of what left it: `sent.jsonl` in its `state-dir`, one dated line for every upload, every set of figures and
every refusal."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.remote.outside import SiteError
from gramfold.remote.state import made

SENT = "sent.jsonl"
Line = dict[str, Any]


def lines(state: str | Path) -> list[Line]:
    """All of it."""
    path = Path(state) / SENT
    if not path.exists():
        return []
    try:
        found = wire.read_lines(path)
        if not all(isinstance(entry, dict) for entry in found):
            raise ValueError
        return found
    except ValueError:
        raise SiteError(f"its {SENT} is damaged: restore it, so that releases can be counted") from None


def released(state: str | Path) -> frozenset[str]:
    """What has left the site, each under the site's own name for it: what was asked and of which samples, or for a sum under
    masks the bytes that left."""
    named = (str(entry.get("release", entry.get("upload", ""))) for entry in lines(state) if entry.get("bytes"))
    return frozenset(name for name in named if name)


def note(state: str | Path, **entry: Any) -> None:
    """Add a line. What cannot be written down is not sent."""
    line = wire.sealed_line({"time": datetime.now(UTC).isoformat(timespec="seconds"), **entry})
    try:
        wire.append(made(Path(state)) / SENT, line)
    except OSError as error:
        raise SiteError(f"cannot write its {SENT}: {error.strerror}") from None
