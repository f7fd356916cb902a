"""The part file: the sum of some clients' uploads, what it answers, and whose samples are in it.

A part's id is a hash of its rows, whatever their file is called: the ids of all parts travel with their sum, so that none is
added twice, in whatever tree. Clients go by hashes of their names, eight bytes each: a client is in one part.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramfold import uploads, wire
from gramfold.errors import MALFORMED, GramfoldError, PartsError, shortened
from gramfold.files.reading import Part
from gramfold.wire import Packet

CLIENTS = "part.clients"
"""The array of clients' hashes, beside the upload's own."""


@dataclass(frozen=True)
class PartFile:
    """One part, or several that were merged. It holds its upload as the packet that came: what is only passed on is not made."""

    asked: Mapping[str, Any]
    parts: Mapping[str, Any]
    """Name, clients and samples of every part in it, by id."""
    clients: np.ndarray
    """Hashes of the names of all their clients, sorted."""
    packet: Packet
    """The upload."""

    @classmethod
    def of(cls, asked: Mapping[str, Any], name: str, part: Part, samples: int, upload: Any) -> "PartFile":
        about = {"name": name, "clients": len(part.clients), "samples": samples}
        return cls(asked, {part.id: about}, hashes(client.name for client in part.clients), upload.pack())

    @property
    def upload(self) -> Any:
        return uploads.unpack(self.packet, exact_counts=False)

    def __str__(self) -> str:
        many, samples = len(self.parts), sum(part["samples"] for part in self.parts.values())
        return f"{samples} samples of {_clients(len(self.clients))} in {many} {'part' if many == 1 else 'parts'}"

    # --- as a file ---

    def save(self, path: Path) -> None:
        meta = {"asked": dict(self.asked), "parts": dict(self.parts), "upload": dict(self.packet.meta)}
        arrays = {**self.packet.arrays, CLIENTS: self.clients}
        wire.write_atomically(path, *Packet(arrays, meta, self.packet.triangular).pieces())

    @classmethod
    def load(cls, path: Path) -> "PartFile":
        packet = _packet(path)
        try:
            meta: Any = packet.meta
            arrays = dict(packet.arrays)
            clients = np.asarray(arrays.pop(CLIENTS))
            parts = {str(part): _about(about) for part, about in meta["parts"].items()}
            if clients.dtype != np.uint64 or clients.ndim != 1 or (np.diff(clients) == 0).any():
                raise ValueError("its clients are no hashes")
            if not parts or sum(about["clients"] for about in parts.values()) != len(clients):
                raise ValueError("its parts are not those of its clients")
            return cls(dict(meta["asked"]), parts, np.sort(clients), Packet(arrays, dict(meta["upload"]), packet.triangular))
        except MALFORMED as error:
            raise PartsError(f"{path} is no part file: {error!r}; write it with gramfold fold") from None


def _packet(path: Path) -> Packet:
    try:
        return Packet.from_bytes(wire.read(path))
    except GramfoldError as error:
        raise type(error)(f"{path}: {error}") from None


def _about(fields: Any) -> dict[str, Any]:
    about = {"name": str(fields["name"]), "clients": fields["clients"], "samples": fields["samples"]}
    if not all(type(about[key]) is int and about[key] >= 0 for key in ("clients", "samples")):
        raise ValueError("numbers of clients and samples must be whole")
    return about


def hashes(names: Iterable[str]) -> np.ndarray:
    found = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") for name in names]
    return np.unique(np.array(found, dtype=np.uint64))


# --- merging ---


def merge(paths: Sequence[Path], onto: Path | None = None) -> PartFile:
    """The sum of part files. `onto`, the file that it is for, may be among them: it is added to, unless all that it holds is in
    the others; then it is what an earlier merge of them left, and is made anew."""
    if not paths:
        raise PartsError("no part file to merge; make some with gramfold fold")
    others = [path for path in paths if onto is None or path.absolute() != onto.absolute()]
    total = _Total()
    for path in others:
        total.add(path, PartFile.load(path))
    if len(others) < len(paths) and onto is not None:
        before = PartFile.load(onto)
        if not before.parts.keys() <= total.held.keys():
            total.add(onto, before)
    return total.file()


class _Total:
    """A sum of part files in the making."""

    def __init__(self) -> None:
        self.held: dict[str, Path] = {}
        """Which file each part came in."""
        self._first: tuple[Path, PartFile] | None = None
        self._parts: dict[str, Any] = {}
        self._clients = np.empty(0, dtype=np.uint64)
        self._upload: Any = None

    def add(self, path: Path, part: PartFile) -> None:
        if self._first is not None:
            require_same_question(part.asked, self._first[1].asked, str(path), str(self._first[0]))
        twice = next((each for each in part.parts if each in self.held), None)
        if twice is not None:
            raise PartsError(
                f"{path} and {self.held[twice]} both hold part {part.parts[twice]['name']} ({twice[:8]}), which would count "
                "twice; leave one of them out"
            )
        both = np.intersect1d(self._clients, part.clients, assume_unique=True)
        if len(both):
            raise PartsError(
                f"{_clients(len(both))} of {path} {'is' if len(both) == 1 else 'are'} in another part already, with other "
                "samples; a client's rows belong in one part: fold them anew"
            )
        upload = part.upload
        try:
            self._upload = upload if self._upload is None else self._upload.__iadd__(upload)
        except GramfoldError as error:
            raise type(error)(f"{path} cannot be added to the others: {error}") from None
        self._first = self._first or (path, part)
        self._parts |= part.parts
        self.held |= dict.fromkeys(part.parts, path)
        self._clients = np.union1d(self._clients, part.clients)

    def file(self) -> PartFile:
        assert self._first is not None
        return PartFile(self._first[1].asked, dict(sorted(self._parts.items())), self._clients, self._upload.settle().pack())


def require_same_question(one: Mapping[str, Any], other: Mapping[str, Any], mine: str, theirs: str) -> None:
    """Raise, with a word on what differs, unless two files belong to the same round of the same run."""
    for key in other:
        if one.get(key) == other[key]:
            continue
        left, right = one.get(key), other[key]
        what = key
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            name = next((name for name in right if left.get(name) != right[name]), "")
            left, right, what = left.get(name), right.get(name), f"{key}: {name}" if name else key
        one_value, other_value = (shortened(value, 40) for value in (left, right))
        raise PartsError(
            f"{mine} and {theirs} do not add up: they differ in their {what} ({one_value} and {other_value}); fold both "
            "under one task file"
        )


def _clients(many: int) -> str:
    return "1 client" if many == 1 else f"{many} clients"
