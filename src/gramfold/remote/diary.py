"""A site's own record of what left it: `sent.jsonl` in its `state-dir`, one dated line for every upload and every refusal."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.errors import GramfoldError

SENT = "sent.jsonl"


def released(state: str | Path) -> frozenset[str]:
    """The ids of all uploads that have left the site."""
    path = Path(state) / SENT
    if not path.exists():
        return frozenset()
    try:
        entries = wire.read_lines(path)
        return frozenset(str(entry["upload"]) for entry in entries if entry.get("bytes") and "upload" in entry)
    except (AttributeError, ValueError):
        raise GramfoldError(f"{path} is damaged: restore it, so that releases can be counted") from None


def note(state: str | Path, **entry: Any) -> None:
    """Add a line. What cannot be written down is not sent."""
    line = wire.sealed_line({"time": datetime.now(UTC).isoformat(timespec="seconds"), **entry})
    try:
        Path(state).mkdir(parents=True, exist_ok=True)
        with (Path(state) / SENT).open("ab") as file:
            file.write(line)
    except OSError as error:
        raise GramfoldError(f"cannot write {Path(state) / SENT}: {error.strerror}") from None
