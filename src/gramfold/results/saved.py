"""A run on disk: all that it takes to go on with it after a restart.

run.safetensors    the method, the task, what clients were sent last, the sum behind it, and every client's figures in full
shared.safetensors the shared head
heads/             every client's head, by name
*.card.json, .md   beside every head, what it is and how good
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gramfold import uploads, wire
from gramfold.errors import MALFORMED, FileError, GramfoldError, ResultError
from gramfold.federation import Task
from gramfold.heads import Head, load_head
from gramfold.methods import check_from_file, saved_method, spec_of
from gramfold.origin import Origin
from gramfold.report import card_files, write_card
from gramfold.results.folded import Run
from gramfold.wire import Packet
from gramfold.wire.record import Record, plain

FORMAT = 3
"""Of run.safetensors. 1 had no sum of moments, 2 none of each client's own."""
RUN, SHARED, HEADS = "run.safetensors", "shared.safetensors", "heads"


@dataclass(frozen=True)
class SavedRun(Record, kind="run"):
    """What run.safetensors holds."""

    method: str
    parameters: Mapping[str, Any]
    given: Mapping[str, Any]
    """The parameters before anything was chosen by trial."""
    task: Mapping[str, Any]
    broadcast: Record
    clients: Sequence[Mapping[str, Any]]
    seconds: Mapping[str, float]
    chosen: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    format: int = 1
    total: Mapping[str, Any] | None = None
    samples: Mapping[str, int] = field(default_factory=dict)
    privacy: Mapping[str, Any] = field(default_factory=dict)
    uploads: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, **figures: Any) -> "SavedRun":
        """A run, with its `given` parameters, `clients`, `seconds`, `chosen` and `history`."""
        total = None if run.total is None else _packed(run.total)
        kept = {name: _packed(upload) for name, upload in run.uploads.items()}
        return cls(
            method=spec_of(run.method), parameters=plain(dict(run.method.parameters())), task=plain(asdict(run.task)),
            broadcast=run.broadcast, format=FORMAT, total=total, samples=dict(run.samples), uploads=kept,
            **{name: plain(value) for name, value in figures.items()},
        )  # fmt: skip

    def run(self, allow_code: bool = False) -> Run:
        try:
            check_from_file(self.method, allow_code)
            total = None if self.total is None else _unpacked(self.total)
            kept = {str(name): _unpacked(upload) for name, upload in self.uploads.items()}
            method = saved_method(self.method, self.parameters)
            samples = {str(name): int(n) for name, n in self.samples.items()}
            return Run(method, task_from_dict(self.task), self.broadcast, total, samples, kept)
        except MALFORMED as error:
            raise ResultError(f"not a readable run: {error!r}") from None


def _packed(upload: Any) -> dict[str, Any]:
    packed = upload.pack()
    return {"arrays": dict(packed.arrays), "meta": dict(packed.meta)}


def _unpacked(fields: Mapping[str, Any]) -> Any:
    return uploads.unpack(Packet(fields["arrays"], fields["meta"]), exact_counts=False)


def write(
    folder: Path, saved: SavedRun, shared: Head | None, heads: Mapping[str, Head], cards: Mapping[str | None, Mapping[str, Any]]
) -> None:
    """Write a run, its heads and their cards; heads of an earlier one that was saved here are removed."""
    make_folder(folder)
    files = {head_file(folder, name): (head, cards[name]) for name, head in heads.items()}
    if shared is not None:
        files[folder / SHARED] = shared, cards[None]
    for path in {folder / SHARED, *_saved_heads(folder)} - set(files):
        for gone in (path, *card_files(path)):
            gone.unlink(missing_ok=True)
    if heads:
        make_folder(folder / HEADS)
    for path, (head, card) in files.items():
        head.save(path)
        write_card(path, card)
    wire.write_atomically(folder / RUN, *saved.pack().pieces())


def read(folder: Path) -> tuple[SavedRun, Head | None, dict[str, Head]]:
    """What `write` wrote, with the heads that are there."""
    path = folder / RUN
    packet = Packet.from_bytes(wire.read(path))
    fields: Any = packet.meta.get("fields")
    tagged = fields.get("format") if isinstance(fields, dict) else None
    written = tagged.get("value", 1) if isinstance(tagged, dict) else 1
    if not isinstance(written, int) or written > FORMAT:
        raise FileError(f"{path} was written by a newer gramfold (format {written}, this reads {FORMAT}); upgrade")
    saved = SavedRun.unpack(packet)
    try:
        files = {str(client["name"]): head_file(folder, str(client["name"])) for client in saved.clients}
    except MALFORMED as error:
        raise FileError(f"{path} is damaged: {error!r}") from None
    shared = load_head(folder / SHARED) if (folder / SHARED).exists() else None
    return saved, shared, {name: load_head(file) for name, file in files.items() if file.exists()}


def _saved_heads(folder: Path) -> set[Path]:
    """The files of heads that the run saved here has; what else lies there is not ours."""
    try:
        clients = SavedRun.unpack(Packet.from_bytes(wire.read(folder / RUN))).clients
        return {head_file(folder, client["name"]) for client in clients}
    except (GramfoldError, *MALFORMED):
        return set()


def head_file(folder: Path, name: str) -> Path:
    return folder / HEADS / f"{wire.file_name(name)}.safetensors"


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make folder {folder}: {error.strerror}") from None


def task_from_dict(fields: Mapping[str, Any]) -> Task:
    labels = None if fields["labels"] is None else tuple(fields["labels"])
    origin = None if fields.get("origin") is None else Origin.from_dict(fields["origin"])
    return Task(**{**fields, "labels": labels, "shape": tuple(fields["shape"]), "origin": origin})
