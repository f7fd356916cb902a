"""What runs on workers: the sums of partitions, their merges, heads. A task changes no argument: it may run again."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle

from gramfold import uploads, wire
from gramfold.engines.share import Share, announced
from gramfold.engines.transport import Final, Finished, Memories
from gramfold.evaluation import Evaluation
from gramfold.federation import Client, Samples, Task
from gramfold.heads import Head
from gramfold.methods import Method
from gramfold.report import make_card, write_card
from gramfold.results.saved import make_folder
from gramfold.version import __version__
from gramfold.wire import Packet
from gramfold.wire.record import Record

REFERENCE = 2**20
"""Bytes up to which a partition's clients travel in their task, which can run again anywhere; above, samples travel apart."""


@dataclass(frozen=True)
class Sum:
    """The uploads of some partitions, added up. It travels as the packet that an upload is everywhere."""

    partitions: frozenset[int]
    bytes: Mapping[str, int]
    """Bytes that each client would send."""
    upload: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        packed = None if self.upload is None else self.upload.pack().to_bytes()
        return _received, (self.partitions, self.bytes, packed)

    def __sizeof__(self) -> int:
        return 0 if self.upload is None else int(self.upload.wire_bytes)

    def __add__(self, other: "Sum") -> "Sum":
        twice = self.partitions & other.partitions
        if twice:
            raise AssertionError(f"partitions {sorted(twice)} would count twice")
        total = self.upload
        if total is None:
            total = other.upload
        elif other.upload is not None:
            total = total.copy()  # a task's result is not changed: it may be needed again
            total += other.upload
        return Sum(self.partitions | other.partitions, {**self.bytes, **other.bytes}, total)


def _received(partitions: frozenset[int], sent: Mapping[str, int], packed: bytes | None) -> Sum:
    return Sum(partitions, sent, None if packed is None else uploads.unpack(Packet.from_bytes(packed), exact_counts=False))


@dataclass(frozen=True)
class State:
    """What stays on a worker between rounds: what clients remember, and what they sent where the server's reply needs it."""

    memories: Memories = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """What a round asks of all partitions."""

    method: Method
    task: Task
    device: str
    number: int = 0
    keep: bool = False

    def share(self, clients: Sequence[Client], state: State) -> Share:
        # a worker's own threads work on several partitions at once
        return Share(self.method, clients, self.task, state.memories, device=self.device, workers=1)


def fold(
    place: int, clients: Sequence[Client], names: Sequence[str], asked: Asked, broadcast: bytes, state: State
) -> tuple[Sum, State]:
    if not names:
        return Sum(frozenset({place}), {}), state
    folded = asked.share(clients, state).fold(asked.number, _record(broadcast), asked.keep, names)
    return Sum(frozenset({place}), folded.bytes, folded.upload), State(folded.memories, folded.kept)


def sum_of(folded: tuple[Sum, State]) -> Sum:
    return folded[0]


def state_of(folded: tuple[Sum, State]) -> State:
    return folded[1]


def merge(*sums: Sum) -> Sum:
    total = sums[0]
    for other in sums[1:]:
        total += other
    return total


@dataclass(frozen=True)
class Ending:
    """What the end of a run asks of all partitions."""

    asked: Asked
    contributed: frozenset[str]
    keep_heads: bool
    folder: Path | None
    """Where workers write the heads that are kept; None: they go to where the run is."""
    card: Mapping[str, Any]
    """What the cards of all heads have in common."""


def finish(
    clients: Sequence[Client],
    ending: Ending,
    shared: Head | None,
    broadcast: bytes,
    known: Sequence[frozenset[str]],
    state: State,
) -> list[tuple[Finished, int]]:
    """Every client's figures, and its head unless that is written; and how many bytes it would be sent."""
    record, asked, names = _record(broadcast), ending.asked, [client.name for client in clients]
    share = asked.share(clients, state)
    replies = {name: _reply(asked.method, state, name, record) for name in names}
    final = Final(
        asked.method, names, record, replies.__getitem__, ending.contributed, shared, ending.keep_heads,
        announced(record, asked.method.precision), asked.task,
    )  # fmt: skip
    done = {each.name: each for each in share.finish(final)}
    if ending.folder is not None:
        make_folder(ending.folder)
        for name, each in done.items():
            _write(ending, each)
            done[name] = replace(each, head=None)
    has = dict(zip(names, known, strict=True))
    return [(done[name], _size(replies[name], record, has[name])) for name in names if name in done]


def _write(ending: Ending, done: Finished) -> None:
    """A client's head and its card."""
    assert ending.folder is not None
    assert done.head is not None
    path = ending.folder / f"{wire.file_name(done.name)}.safetensors"
    done.head.save(path)
    sizes = {"training_samples": done.train, "test_samples": done.scored.n, "training_samples_of_all": ending.asked.task.samples}
    figures = Evaluation.of(done.scored, ending.asked.task.labels is not None).for_card()
    write_card(path, make_card(done.head, whose=f"client {done.name}", data=sizes, figures=figures, federation=ending.card))


def _reply(method: Method, state: State, name: str, broadcast: Record) -> Record:
    return broadcast if method.answer is None else method.answer(state.kept.get(name), broadcast)


def _size(reply: Record, broadcast: Record, has: frozenset[str]) -> int:
    """Bytes of a reply to a client that has these arrays of the broadcast."""
    packed, ours = reply.pack(), broadcast.pack().arrays
    known = frozenset(name for name in has if name in packed.arrays and packed.arrays[name] is ours.get(name))
    return Packet(packed.arrays, packed.meta, packed.triangular, known).wire_bytes


def _record(packed: bytes) -> Record:
    return Record.unpack(Packet.from_bytes(packed))


# --- clients as they travel ---


class _TooLargeError(Exception):
    """Of what was to travel in a task."""


class _Bounded(io.RawIOBase):
    """Takes so many bytes, and keeps none."""

    def __init__(self) -> None:
        self.taken = 0

    def write(self, data: Any) -> int:
        self.taken += memoryview(data).nbytes
        if self.taken > REFERENCE:
            raise _TooLargeError
        return memoryview(data).nbytes


def is_light(clients: Sequence[Client]) -> bool:
    """Whether clients are references, such as paths and functions, or small: then they can travel in a task."""
    try:
        cloudpickle.dump(clients, _Bounded())
    except Exception:  # what cannot travel at all is no reference either
        return False
    return True


def loaded(client: Client) -> Client:
    """The client with its samples: those of its own, and nothing of what they were cut from."""
    return Client(client.name, partial(_same, client.train()), partial(_same, client.test()))


def _same(samples: Samples) -> Samples:
    return samples


def version() -> str:
    return __version__
