"""Which of its uploads a site may still need, and where: a server's sum can hold one that a later message has to replace.

A sum has an id of its own, so a trial with another `out` disturbs nothing, and of every sum the last few uploads are kept: a
server that was restored from a backup may count one that was replaced since.
"""

from collections.abc import Collection
from pathlib import Path

from gramfold import wire

PLACES = "places.json"
UPLOADS, SUMS = 4, 32
"""How many uploads are kept for a sum beside the one that counts, and for how many sums: those heard of last."""
UNKNOWN = ""
"""Stands for the sums of uploads of which nothing is written down."""


def needed(folder: Path, ledger: str, upload: str, counted: Collection[str], kept: Collection[str]) -> set[str]:
    """Note that an upload is sent to a sum that counts others; returns those of the kept ones that may still be needed."""
    places = _read(folder / PLACES)
    if places is None:
        places = {UNKNOWN: sorted(kept)}
    before = [name for name in places.pop(ledger, []) if name != upload]
    recent = before[-UPLOADS:]
    places[ledger] = [name for name in before if name in counted and name not in recent] + [*recent, upload]
    places = dict(list(places.items())[-SUMS:])
    wire.write_sealed(folder / PLACES, {"sums": list(places.items())})
    return {name for names in places.values() for name in names} | (set(kept) & set(counted))


def _read(path: Path) -> dict[str, list[str]] | None:
    """The uploads by sum, the sum heard of last at the end; None where that is not known."""
    if not path.exists():
        return None
    try:
        sums = wire.read_sealed(path)["sums"]
        return {str(ledger): [str(name) for name in names] for ledger, names in sums}
    except (KeyError, TypeError, ValueError):
        return None
