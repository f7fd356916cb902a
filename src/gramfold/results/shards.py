"""Heads of very many clients: records in a few files, any of them read without the others.

streamed.safetensors    the method, its task, and what all clients were sent last
heads/000000.heads      the heads of a batch of clients
index.safetensors       in which file, and where, each client's is
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gramfold import wire
from gramfold.errors import FileError, ResultError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.heads.records import HeadRecord, InCommon
from gramfold.methods import Method, check_from_file, on_targets, saved_method, spec_of
from gramfold.methods.finishing import SharedRoot, shared_head
from gramfold.numerics import lots
from gramfold.results.saved import task_from_dict
from gramfold.wire import Packet
from gramfold.wire.record import Record, plain

FORMAT = 1
RUN, INDEX, HEADS, SUFFIX = "streamed.safetensors", "index.safetensors", "heads", ".heads"
ROOT = "novelty.root"
"""What heads' novelty has in common, among the arrays that they share."""


@dataclass(frozen=True)
class StreamedRun(Record, kind="streamed"):
    """A run over a stream of clients, and where it stands between two batches."""

    run: str
    """Equal for runs with equal results."""
    method: str
    parameters: Mapping[str, Any]
    given: Mapping[str, Any]
    """The parameters as they were given; `parameters` as they follow from the task."""
    task: Mapping[str, Any]
    broadcast: Record
    clients: int
    batches: int
    round: int = 0
    done: int = 0
    """Batches of the round that are in `total`."""
    total: Mapping[str, Any] | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)
    """What every client remembers of the rounds."""
    finished: bool = False
    """Whether there is no round left."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    format: int = FORMAT

    @classmethod
    def begun(
        cls, run: str, given: Method, method: Method, task: Task, broadcast: Record, clients: int, batches: int
    ) -> "StreamedRun":
        settled, plainly = (plain(dict(each.parameters())) for each in (method, given))
        finished = not method.rounds
        return cls(
            run, spec_of(method), settled, plainly, plain(asdict(task)), broadcast, clients, batches, finished=finished
        )  # fmt: skip

    def save(self, folder: Path) -> None:
        wire.write_atomically(folder / RUN, *self.pack().pieces())

    @classmethod
    def load(cls, folder: Path) -> "StreamedRun":
        path = folder / RUN
        found = cls.unpack(Packet.from_bytes(wire.read(path)))
        if found.format > FORMAT:
            raise FileError(f"{path} was written by a newer gramfold (format {found.format}, this reads {FORMAT}); upgrade")
        return found

    def known_task(self) -> Task:
        return task_from_dict(self.task)

    def known_method(self, allow_code: bool = False) -> Method:
        check_from_file(self.method, allow_code)
        return on_targets(saved_method(self.method, self.parameters), self.known_task())


@dataclass(frozen=True)
class Kept:
    """What is kept of a client: its head's record, and how that did on its test samples."""

    name: str
    record: HeadRecord
    train: int
    test: int = 0
    score: float = float("nan")
    """Accuracy, or root mean square error."""


def shard_file(folder: Path, batch: int) -> Path:
    return folder / HEADS / f"{batch:06d}{SUFFIX}"


def write_shard(path: Path, clients: Sequence[Kept]) -> None:
    """Write the heads of a batch, whole or not at all."""
    layouts = {each.record.layout: i for i, each in reversed(list(enumerate(clients)))}
    places = {layout: i for i, layout in enumerate(sorted(layouts, key=layouts.__getitem__))}
    contents, names = [each.record.content for each in clients], [each.name.encode() for each in clients]
    texts = [layout.encode() for layout in places]
    arrays = {
        "layout": np.array([places[each.record.layout] for each in clients], np.uint32),
        "checksum": np.array([zlib.crc32(content) for content in contents], np.uint32),
        "train": np.array([each.train for each in clients], np.uint32),
        "test": np.array([each.test for each in clients], np.uint32),
        "score": np.array([each.score for each in clients]),
    }
    for name, parts in (("contents", contents), ("names", names), ("layouts", texts)):
        arrays |= joined(name, parts)
    wire.write_atomically(path, *Packet(arrays, {"format": FORMAT}).pieces())


def joined(name: str, parts: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Bytes one after another, and where each part ends, as arrays of a packet."""
    return {name: np.frombuffer(b"".join(parts), np.uint8), f"{name}.ends": np.cumsum([len(part) for part in parts])}


def taken_apart(name: str, arrays: Mapping[str, np.ndarray]) -> list[bytes]:
    """The parts that `joined` has joined."""
    content, ends = arrays[name].tobytes(), arrays[f"{name}.ends"].tolist()
    return [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]


class Shard:
    """The heads of a batch, read where they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self._arrays = path, wire.mapped(path)

    @property
    def names(self) -> list[str]:
        return [name.decode() for name in taken_apart("names", self._arrays)]

    @property
    def figures(self) -> dict[str, np.ndarray]:
        """Of every client: how many samples it has for training and testing, and how it did on the latter."""
        return {name: np.array(self._arrays[name]) for name in ("train", "test", "score")}

    @property
    def content_bytes(self) -> int:
        return int(self.path.stat().st_size)

    def name(self, row: int) -> str:
        return self._part("names", row).decode()

    def record(self, row: int) -> HeadRecord:
        content = self._part("contents", row)
        if zlib.crc32(content) != int(self._arrays["checksum"][row]):
            raise FileError(f"{self.path} is damaged: the head of client {self.name(row)!r} is not as it was written")
        return HeadRecord(self._part("layouts", int(self._arrays["layout"][row])).decode(), content)

    def _part(self, name: str, row: int) -> bytes:
        ends = self._arrays[f"{name}.ends"]
        start = int(ends[row - 1]) if row else 0
        return self._arrays[name][start : int(ends[row])].tobytes()


def write_index(folder: Path, batches: int) -> None:
    """Write where every client's head is."""
    found, shards, rows = [], [], []
    for batch in range(batches):
        names = Shard(shard_file(folder, batch)).names
        found.append(lots.of_names(0, names))
        shards.append(np.full(len(names), batch, np.uint32))
        rows.append(np.arange(len(names), dtype=np.uint32))
    words = np.concatenate(found)
    order = np.argsort(words, kind="stable")
    arrays = {"words": words[order], "shards": np.concatenate(shards)[order], "rows": np.concatenate(rows)[order]}
    wire.write_atomically(folder / INDEX, *Packet(arrays).pieces())


class Streamed:
    """The heads that `gf.run_streamed` has left in a folder.

    `head(name)` reads a client's; `task`, `method`, `chosen` and `seconds` are the run's, `shared` is the head of all clients.
    """

    def __init__(self, folder: Path, run: StreamedRun, allow_code: bool = False) -> None:
        self.folder, self._run = folder, run
        self.method, self.task = run.known_method(allow_code), run.known_task()
        self.seconds = dict(run.seconds)
        self._index = wire.mapped(folder / INDEX)
        self._shards: dict[int, Shard] = {}
        self._root = SharedRoot()

    @classmethod
    def load(cls, folder: Path, allow_code: bool = False) -> "Streamed":
        if not (folder / RUN).exists():
            raise FileError(f"{folder} holds no streamed run; make one with gf.run_streamed(method, clients, {str(folder)!r})")
        if not (folder / INDEX).exists():
            raise ResultError(f"the run in {folder} is not finished; call gf.run_streamed again, and it goes on where it stopped")
        return cls(folder, StreamedRun.load(folder), allow_code)

    def __len__(self) -> int:
        return len(self._index["words"])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._place(name) is not None

    def __iter__(self) -> Iterator[str]:
        """The clients' names, in the order of the stream."""
        for batch in range(self._run.batches):
            yield from self._shard(batch).names

    def __repr__(self) -> str:
        return f"Streamed({len(self)} heads of {self.method.name} in {self.folder})"

    def head(self, name: str) -> Head:
        """A client's own head."""
        place = self._place(name)
        if place is None:
            raise ResultError(f"there is no client {name!r} in {self.folder}; it has {len(self)}, list(...) names them")
        shard, row = place
        return self._common.read(shard.record(row), self._solve).with_origin(self.task.origin)

    @property
    def shared(self) -> Head | None:
        """The head of all clients, where the method has one."""
        return shared_head(self.method, self._run.broadcast, self.task)

    @property
    def chosen(self) -> Mapping[str, Any]:
        """What the server selected."""
        return getattr(self._run.broadcast, "chosen", None) or {}

    @cached_property
    def figures(self) -> dict[str, np.ndarray]:
        """Of every client, in the order of the stream: `train` and `test`, how many samples, and `score`, the accuracy (or root
        mean square error) on the latter; NaN where there are none."""
        parts = [self._shard(batch).figures for batch in range(self._run.batches)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @property
    def mean_score(self) -> float | None:
        """Over clients with test samples."""
        scores = self.figures["score"]
        return float(np.nanmean(scores)) if np.isfinite(scores).any() else None

    @property
    def bytes_per_head(self) -> float:
        """On disk, everything counted."""
        shards = sum(self._shard(batch).content_bytes for batch in range(self._run.batches))
        others = sum((self.folder / name).stat().st_size for name in (RUN, INDEX))
        return (shards + others) / len(self)

    # --- reading ---

    def _shard(self, batch: int) -> Shard:
        if batch not in self._shards:
            self._shards[batch] = Shard(shard_file(self.folder, batch))
        return self._shards[batch]

    def _place(self, name: str) -> tuple[Shard, int] | None:
        word = lots.of_names(0, [name])[0]
        words = self._index["words"]
        for at in range(int(np.searchsorted(words, word)), len(words)):
            if words[at] != word:
                break
            shard, row = self._shard(int(self._index["shards"][at])), int(self._index["rows"][at])
            if shard.name(row) == name:
                return shard, row
        return None

    @cached_property
    def _common(self) -> InCommon:
        return in_common(self._run.broadcast, self._root)

    def _solve(self, weights: Any) -> Any:
        return self.method.weights_of(weights, self._run.broadcast)


def in_common(broadcast: Record, root: SharedRoot) -> InCommon:
    """What heads of a run share."""
    kept = root.kept(broadcast)
    return InCommon(broadcast, {} if kept is None else {ROOT: kept})


def load_streamed(folder: str | PathLike[str], allow_code: bool = False) -> Streamed:
    """The heads that `gf.run_streamed` has left in a folder: `.head(client)` reads one of them, and nothing else. `allow_code`:
    whether the class of a method that is not gramfold's own may be imported because the file names it."""
    return Streamed.load(Path(folder), allow_code)
