"""What a server has folded: the sum, and which uploads are in it, in one file that is written all or nothing.

So an upload counts once, also across restarts: either it is in the sum and in the list, or in neither. This is the place for
a durable ledger that also keeps the way the sum came about.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramfold import uploads, wire
from gramfold.engines.transport import Contribution, Fold
from gramfold.errors import GramfoldError
from gramfold.moments import Moments
from gramfold.wire import Packet


@dataclass
class SentUpload(Contribution):
    """A site's upload, the id by which it counts, and the one that it replaces, as the site still has it."""

    site: str = ""
    upload_id: str = ""
    replaced: Any = None


class Ledger(Fold):
    """A sum of uploads. `kept` is a folder for methods whose server needs each upload again."""

    def __init__(self, total: Any = None, counted: Mapping[str, str] | None = None, kept: Path | None = None) -> None:
        super().__init__()
        self.total, self.kept = total, kept
        self.counted: dict[str, str] = dict(counted or {})
        """The id of the upload that counts, by site."""
        self.contributed = set(self.counted)

    def add(self, contribution: Contribution) -> None:
        """Add an upload of a site that has none in the sum, or has replaced it."""
        assert isinstance(contribution, SentUpload)
        site, upload = contribution.site, contribution.upload
        if contribution.replaced is not None:
            self._take_out(site, upload, contribution.replaced)
        if site in self.counted:
            raise GramfoldError("its data has changed and what it sent before is gone; start anew in another folder")
        if self.kept is not None:
            wire.write_atomically(self._kept_file(site), *upload.pack().pieces())
        if self.total is None:
            self.total = upload
        else:
            self.total += upload
        self.counted[site] = contribution.upload_id
        self.contributed.add(site)

    def _take_out(self, site: str, upload: Any, replaced: Any) -> None:
        if self.kept is not None:
            replaced = self.upload_of(site)
        if not (isinstance(replaced, Moments) and isinstance(upload, Moments)):
            raise GramfoldError("only moments can be taken out of a sum again; start anew in another folder")
        upload.require_same_space(self.total)
        self.total = self.total - replaced
        del self.counted[site]

    def upload_of(self, client: str) -> Any:
        """A site's upload again, for methods that keep them."""
        return uploads.unpack(Packet.from_bytes(wire.read(self._kept_file(client))))

    def _kept_file(self, site: str) -> Path:
        assert self.kept is not None
        return self.kept / f"{hashlib.sha256(site.encode()).hexdigest()[:32]}.safetensors"

    def save(self, path: Path, session: str, task: str) -> None:
        packed: Packet = self.total.pack()
        meta = {"session": session, "task": task, "counted": self.counted, "upload": dict(packed.meta)}
        wire.write_atomically(path, *Packet(packed.arrays, meta, packed.triangular).pieces())

    @classmethod
    def load(cls, path: Path, session: str, kept: Path | None) -> "Ledger":
        """What was saved there; nothing where there is nothing."""
        if not path.exists():
            return cls(kept=kept)
        packet = Packet.from_bytes(wire.read(path))
        if packet.meta.get("session") != session:
            raise GramfoldError(
                f"{path.parent} holds folded uploads of another method, parameters or task; choose another folder"
            )
        total = uploads.unpack(Packet(packet.arrays, packet.meta["upload"], packet.triangular))
        return cls(total, packet.meta["counted"], kept)


def saved_task(path: Path) -> str | None:
    """The task of what was folded there, as JSON."""
    return str(Packet.from_bytes(wire.read(path)).meta["task"]) if path.exists() else None
