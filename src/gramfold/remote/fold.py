"""What a server has folded: the sum, and which uploads are in it, in one file that is written all or nothing.

So an upload counts once, also across restarts: either it is in the sum and in the list, or in neither. This is the place for
a durable ledger that also keeps the way the sum came about.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramfold import uploads, wire
from gramfold.errors import GramfoldError
from gramfold.moments import Moments
from gramfold.wire import Packet


@dataclass
class Fold:
    """A sum of uploads. `kept` is a folder for methods whose server needs each upload again."""

    total: Any = None
    counted: dict[str, str] = field(default_factory=dict)
    """The id of the upload that counts, by site."""
    kept: Path | None = None

    def add(self, site: str, upload_id: str, upload: Any) -> None:
        """Add an upload of a site that has none in the sum."""
        if site in self.counted:
            raise GramfoldError("its data has changed and what it sent before is gone; start anew in another folder")
        if self.kept is not None:
            wire.write_atomically(self._kept_file(site), *upload.pack().pieces())
        if self.total is None:
            self.total = upload
        else:
            self.total += upload
        self.counted[site] = upload_id

    def replace(self, site: str, upload_id: str, upload: Any, replaced: Any) -> None:
        """Add a site's new upload and take out the one it replaces."""
        if self.kept is not None:
            replaced = self.upload_of(site)
        if not (isinstance(replaced, Moments) and isinstance(upload, Moments)):
            raise GramfoldError("only moments can be taken out of a sum again; start anew in another folder")
        upload.require_same_space(self.total)
        self.total = self.total - replaced
        del self.counted[site]
        self.add(site, upload_id, upload)

    def upload_of(self, site: str) -> Any:
        """A site's upload again, for methods that keep them."""
        return uploads.unpack(Packet.from_bytes(wire.read(self._kept_file(site))))

    def _kept_file(self, site: str) -> Path:
        assert self.kept is not None
        return self.kept / f"{hashlib.sha256(site.encode()).hexdigest()[:32]}.safetensors"

    def save(self, path: Path, session: str, task: str) -> None:
        packed: Packet = self.total.pack()
        meta = {"session": session, "task": task, "counted": self.counted, "upload": dict(packed.meta)}
        wire.write_atomically(path, *Packet(packed.arrays, meta, packed.triangular).pieces())

    @classmethod
    def load(cls, path: Path, session: str, kept: Path | None) -> "Fold":
        """What was saved there; nothing where there is nothing."""
        if not path.exists():
            return cls(kept=kept)
        packet = Packet.from_bytes(wire.read(path))
        if packet.meta.get("session") != session:
            raise GramfoldError(
                f"{path.parent} holds folded uploads of another method, parameters or task; choose another folder"
            )
        total = uploads.unpack(Packet(packet.arrays, packet.meta["upload"], packet.triangular))
        return cls(total, dict(packet.meta["counted"]), kept)


def saved_task(path: Path) -> str | None:
    """The task of what was folded there, as JSON."""
    return str(Packet.from_bytes(wire.read(path)).meta["task"]) if path.exists() else None
