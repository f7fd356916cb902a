"""The work that one message asks of a site, and the session's files on its disk."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.federation import Client, Samples, Task
from gramfold.methods import Method
from gramfold.numerics.arrays import Array
from gramfold.remote import places
from gramfold.remote.state import made
from gramfold.wire import Packet
from gramfold.wire.record import Record


@dataclass
class Work:
    """The work for one message: the method, and the session's files on disk."""

    method: Method
    state: Path
    folder: Path
    """The session's files."""
    run: str
    task: Task
    client: Client
    packet: Packet
    memory: dict[str, Array] = field(default_factory=dict)
    memory_of: str = ""
    """The id of the upload that the memory belongs to."""
    broadcast: Record = field(init=False)

    def __post_init__(self) -> None:
        made(self.folder)
        remembered = self._load("memory")
        if remembered is not None:
            self.memory, self.memory_of = dict(remembered.arrays), str(remembered.meta["upload"])
        if self.method.rounds > 1:
            received = self._load("received")
            self.packet = self.packet.completed(received.arrays if received is not None else {})
            self._save("received", self.packet.arrays)
        self.broadcast = Record.unpack(self.packet)

    def upload_id(self, name: str, round_number: int, train: Samples) -> str:
        """What the site calls an upload: equal for the same samples and the same question, however often it is asked, and for
        nothing else. The server's names for runs make more of them, never fewer."""
        after = self.memory_of if self.method.rounds > 1 else ""
        identity = json.dumps([name, self.folder.name, self.run, round_number, train.digest(), self.asked(), after])
        return hashlib.sha256(identity.encode()).hexdigest()[:32]

    def asked(self) -> str:
        """A hash of the broadcast, whatever of it came in earlier messages."""
        return Packet(self.packet.arrays, self.packet.meta, self.packet.triangular).digest()

    def remember(self, upload: str, memory: Mapping[str, Array]) -> None:
        self._save("memory", memory, upload=upload)
        self.memory, self.memory_of = dict(memory), upload

    def swap_upload(self, name: str, packed: Packet, counted: list[str], ledger: str) -> tuple[str, Packet] | None:
        """Keep the new upload; return the earlier, counted one, for the server to subtract. None is deleted that any server's
        sum may hold."""
        kept = {path.stem.removeprefix("upload-"): path for path in self.folder.glob("upload-*.safetensors")}
        wire.write_atomically(self.folder / f"upload-{name}.safetensors", *packed.pieces())
        for other in kept.keys() - places.needed(self.folder, ledger, name, counted, kept) - {name}:
            kept[other].unlink(missing_ok=True)
        earlier = next((other for other in sorted(kept.keys() - {name}) if other in counted), None)
        return None if earlier is None else (earlier, Packet.from_bytes(wire.read(kept[earlier])))

    def _load(self, what: str) -> Packet | None:
        """The file of an earlier message of this run; None if it is from another run."""
        path = self.folder / f"{what}.safetensors"
        if not path.exists():
            return None
        packet = Packet.from_bytes(wire.read(path))
        return packet if packet.meta.get("run") == self.run else None

    def _save(self, what: str, arrays: Mapping[str, Array], **meta: Any) -> None:
        wire.write_atomically(self.folder / f"{what}.safetensors", Packet(arrays, {"run": self.run, **meta}).to_bytes())
