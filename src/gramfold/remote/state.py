"""A site's state folder: one site's for ever, one message's at a time, and nobody else's to read."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gramfold import wire
from gramfold.errors import GramfoldError
from gramfold.remote.outside import SiteError

OWNER, SECRET = "site.json", "site.key"
PATIENCE = 60.0
"""Seconds that a message waits for the one before it, of another run perhaps."""


def made(folder: Path) -> Path:
    """The folder, made where there is none, for its owner alone."""
    try:
        wire.private_folder(folder)
    except OSError as error:
        raise SiteError(f"cannot make its state folder: {error.strerror}") from None
    return folder


@contextmanager
def held(state: Path, site: str) -> Iterator[None]:
    """The folder for one message. A second site with the same folder is refused: their memories are not each other's."""
    made(state)
    busy = "its state folder is in use by another message or another site; give every site its own `state-dir`"
    with ExitStack() as lock:
        try:
            lock.enter_context(wire.locked(state, busy, PATIENCE))
        except GramfoldError:
            raise SiteError(busy) from None
        owner = _owner(state / OWNER)
        if owner is None:
            wire.write_sealed(state / OWNER, {"site": site})
        elif owner != site:
            raise SiteError(f"its state folder belongs to site {owner!r}; give every site its own `state-dir`")
        with suppress(OSError):  # one of an earlier gramfold, which everybody could read
            state.chmod(0o700)
        yield


def secret(state: Path) -> bytes:
    """The site's own random number, made where there is none: what it draws from it no server can foresee."""
    file = state / SECRET
    if not file.exists():
        made(state)
        wire.write_atomically(file, secrets.token_bytes(32))
    return wire.read(file)


def _owner(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        return str(wire.read_sealed(path)["site"])
    except (KeyError, TypeError, ValueError):
        raise SiteError(f"{path.name} in its state folder is damaged; remove it, if this folder is this site's alone") from None
