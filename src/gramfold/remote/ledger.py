"""The server's ledger: the sum of uploads and the list of those in it, in one file that is written atomically.

So an upload counts once, even across restarts: it is either in both the sum and the list, or in neither. Uploads that are kept
one by one lie in files named by their id: a new one is there before the list names it, an old one until the list no longer does.
This is the place for a durable ledger that also records the history of the sum.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramfold import uploads, wire
from gramfold.engines.transport import Contribution, Fold
from gramfold.errors import MALFORMED, RemoteError
from gramfold.moments import Moments
from gramfold.uploads import GroupedMoments
from gramfold.wire import Packet

LEDGER, KEPT = "fold.safetensors", "uploads"
"""Its file, and the folder of single uploads, in a run's folder."""
SUBTRACTABLE = (Moments, GroupedMoments)
"""Uploads that can be taken out of a sum again."""
KEPT_FILE = re.compile(r"upload-[0-9a-f]{32}\.safetensors")


@dataclass
class SentUpload(Contribution):
    """A site's upload, its id and the hash of what came, and the earlier upload that it replaces, as sent again by the site."""

    site: str = ""
    upload_id: str = ""
    digest: str = ""
    replaced: Any = None


class Ledger(Fold):
    """A sum of uploads. `kept` is the folder for individual uploads, where the method needs them again."""

    def __init__(self, total: Any = None, counted: Mapping[str, str] | None = None, kept: Path | None = None) -> None:
        super().__init__()
        self.total, self.kept = total, kept
        self.counted: dict[str, str] = dict(counted or {})
        """The id of the upload that counts, by site."""
        self.digests: dict[str, str] = {}
        """The hash of what each site sent: nothing else is subtracted in its name."""
        self.samples: dict[str, int] = {}
        """How many samples a site's upload has, where it says."""
        self.id = secrets.token_hex(16)
        """Of this sum: sites keep what they sent to it apart from what they sent to others."""
        self.contributed = set(self.counted)

    def add(self, contribution: Contribution) -> None:
        """Add a site's upload; one that is already in the sum must be replaced. What is refused changes nothing."""
        assert isinstance(contribution, SentUpload)
        site, upload, total = contribution.site, contribution.upload, self.total
        if site in self.counted:
            total = self._without(site, upload, contribution.replaced)
        if self.kept is not None:
            wire.write_atomically(self._kept_file(site, contribution.upload_id), *upload.pack().pieces())
        samples = upload.n if isinstance(upload, SUBTRACTABLE) else None
        if total is None:
            self.total = upload
        else:
            total += upload
            self.total = total
        self.counted[site], self.digests[site] = contribution.upload_id, contribution.digest
        if samples is not None:
            self.samples[site] = samples
        self.contributed.add(site)

    def earlier(self, site: str, packet: Packet) -> Any:
        """The upload that a site wants subtracted, unpacked. Raises unless it is what the site sent: with anything else it could
        take other sites' samples out of the sum."""
        if packet.digest() != self.digests.get(site):
            raise RemoteError("what it wants subtracted is not what it sent before; start over in another folder")
        return uploads.unpack(packet)

    def _without(self, site: str, upload: Any, replaced: Any) -> Any:
        """The sum without what a site sent before, which its new upload replaces."""
        if replaced is None:
            raise RemoteError("its data has changed and its previous upload is gone; start over in another folder")
        if self.kept is not None:
            replaced = self.upload_of(site)
        if not (isinstance(replaced, SUBTRACTABLE) and isinstance(upload, SUBTRACTABLE)):
            raise RemoteError("only moments can be subtracted from a sum; start over in another folder")
        upload.require_same_space(self.total)
        return self.total - replaced

    def forget(self, site: str) -> bool:
        """Take a site out; saving removes its file. Whether the sum was made anew from the other uploads: if not, it is gone."""
        del self.counted[site]
        self.digests.pop(site, None)
        self.samples.pop(site, None)
        self.contributed.discard(site)
        self.total = None
        if self.kept is None or not all(self._kept_file(*entry).exists() for entry in self.counted.items()):
            return False
        for other in self.counted:
            upload = self.upload_of(other)
            if self.total is None:
                self.total = upload
            else:
                self.total += upload
        return True

    def upload_of(self, client: str) -> Any:
        """A site's upload, for methods that keep them."""
        return uploads.unpack(Packet.from_bytes(wire.read(self._kept_file(client, self.counted[client]))))

    def _kept_file(self, site: str, upload_id: str) -> Path:
        """Of this site and this upload: a site that names another's id cannot touch the other's file."""
        assert self.kept is not None
        return self.kept / f"upload-{hashlib.sha256(f'{upload_id} {site}'.encode()).hexdigest()[:32]}.safetensors"

    def sweep(self) -> None:
        """Remove the kept uploads that do not count, and nothing else that may lie in the folder."""
        if self.kept is None:
            return
        counted = {self._kept_file(site, upload_id) for site, upload_id in self.counted.items()}
        for path in self.kept.iterdir():
            if path not in counted and (KEPT_FILE.fullmatch(path.name) or wire.is_temporary(path)):
                path.unlink(missing_ok=True)

    def save(self, path: Path, session: str, task: str) -> None:
        packed: Packet = self.total.pack()
        sites = {"counted": self.counted, "digests": self.digests, "samples": self.samples}
        meta = {"session": session, "task": task, "ledger": self.id, **sites, "upload": dict(packed.meta)}
        wire.write_atomically(path, *Packet(packed.arrays, meta, packed.triangular).pieces())
        self.sweep()

    @classmethod
    def load(cls, path: Path, session: str, kept: Path | None) -> "Ledger":
        """The saved ledger; an empty one if there is no file."""
        if not path.exists():
            return cls(kept=kept)
        ledger, about = cls.open(path, kept)
        if about["session"] != session:
            raise RemoteError(f"{path.parent} holds folded uploads of another method, parameters or task; choose another folder")
        return ledger

    @classmethod
    def open(cls, path: Path, kept: Path | None) -> tuple["Ledger", dict[str, str]]:
        """The saved ledger, whichever session it is of; and `session` and `task`, to save it again."""
        packet = Packet.from_bytes(wire.read(path))
        meta: Any = packet.meta
        try:
            total = uploads.unpack(Packet(packet.arrays, dict(meta["upload"]), packet.triangular))
            ledger = cls(total, _texts(meta["counted"]), kept)
            ledger.digests, ledger.id = _texts(meta["digests"]), str(meta["ledger"])
            ledger.samples = {str(site): int(n) for site, n in dict(meta["samples"]).items()}
            return ledger, {"session": str(meta["session"]), "task": str(meta["task"])}
        except MALFORMED as error:
            raise RemoteError(f"{path} is no ledger of uploads: {error!r}") from None


def _texts(found: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in dict(found).items()}


def saved_task(path: Path) -> str | None:
    """The task of the uploads folded there, as JSON; None if there is no file."""
    return Ledger.open(path, None)[1]["task"] if path.exists() else None
