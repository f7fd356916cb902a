"""A site's own record of what left it: `sent.jsonl` in its `state-dir`, one dated line for every upload and every refusal."""

import json
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
        entries = [wire.read_json(line) for line in wire.read(path).splitlines() if line.strip()]
        return frozenset(str(entry["upload"]) for entry in entries if entry.get("bytes") and "upload" in entry)
    except (AttributeError, ValueError):
        raise GramfoldError(f"{path} is damaged: repair the line that is no JSON, so that releases can be counted") from None


def note(state: str | Path, **entry: Any) -> None:
    """Add a line. What cannot be written down is not sent."""
    line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="seconds"), **entry})
    try:
        Path(state).mkdir(parents=True, exist_ok=True)
        with (Path(state) / SENT).open("a") as file:
            file.write(line + "\n")
    except OSError as error:
        raise GramfoldError(f"cannot write {Path(state) / SENT}: {error.strerror}") from None
