"""A site's own record of what left it: `sent.jsonl` in its `state-dir`, one dated line for every upload and every refusal."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.errors import GramfoldError

SENT = "sent.jsonl"


def lines(state: str | Path) -> list[dict[str, Any]]:
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
        raise GramfoldError(f"{path} is damaged: restore it, so that releases can be counted") from None


def released(state: str | Path) -> frozenset[str]:
    """The ids of all uploads that have left the site."""
    return frozenset(str(entry["upload"]) for entry in lines(state) if entry.get("bytes") and "upload" in entry)


def note(state: str | Path, **entry: Any) -> None:
    """Add a line. What cannot be written down is not sent."""
    line = wire.sealed_line({"time": datetime.now(UTC).isoformat(timespec="seconds"), **entry})
    try:
        Path(state).mkdir(parents=True, exist_ok=True)
        with (Path(state) / SENT).open("ab") as file:
            file.write(line)
    except OSError as error:
        raise GramfoldError(f"cannot write {Path(state) / SENT}: {error.strerror}") from None
