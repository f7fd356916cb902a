"""A site's state folder: one site's for ever, and one message's at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gramfold import wire
from gramfold.errors import GramfoldError

OWNER = "site.json"
PATIENCE = 60.0
"""Seconds that a message waits for the one before it, of another run perhaps."""


@contextmanager
def held(state: Path, site: str) -> Iterator[None]:
    """The folder for one message. A second site with the same folder is refused: their memories are not each other's."""
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GramfoldError(f"cannot make {state}: {error.strerror}") from None
    busy = f"{state} is in use by another message or another site; give every site its own `state-dir`"
    with wire.locked(state, busy, PATIENCE):
        owner = _owner(state / OWNER)
        if owner is None:
            wire.write_sealed(state / OWNER, {"site": site})
        elif owner != site:
            raise GramfoldError(f"{state} belongs to site {owner!r}; give every site its own `state-dir`")
        yield


def _owner(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        return str(wire.read_sealed(path)["site"])
    except (KeyError, TypeError, ValueError):
        raise GramfoldError(f"{path} is damaged; remove it, if this folder is this site's alone") from None
