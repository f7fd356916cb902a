"""The task file: what goes out to all parts before a round, and after the last one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gramfold import wire
from gramfold.errors import MALFORMED, GramfoldError, PartsError
from gramfold.federation import Task
from gramfold.files.reading import Reading
from gramfold.methods import Method, check_from_file, saved_method
from gramfold.remote.tasks import task_from_json, task_to_json
from gramfold.wire import Packet
from gramfold.wire.record import Record


@dataclass(frozen=True)
class TaskFile(Record, kind="task-file"):
    """Where a run stands between two rounds."""

    method: str
    given: Mapping[str, Any]
    """The method's parameters as they were given; `parameters` as they follow from the task."""
    parameters: Mapping[str, Any]
    reading: Mapping[str, Any]
    seed: int
    task: str | None = None
    """As JSON; None: parts are asked to describe their data first."""
    broadcast: Record | None = None
    round: int = 0
    finished: bool = False
    parts: Mapping[str, Any] = field(default_factory=dict)
    """The parts in the sum behind the broadcast, by id."""
    earlier: Sequence[str] = ()
    """The ids of all parts that had a say in the rounds before."""

    # --- what is in it ---

    def known_task(self) -> Task:
        if self.task is None:
            raise PartsError("this task file asks parts to describe their data; fold and merge them, then gramfold next")
        return task_from_json(self.task)

    def known_method(self) -> Method:
        return saved_method(self.method, self.parameters if self.task is not None else self.given)

    def known_reading(self) -> Reading:
        return Reading.of(self.reading)

    @property
    def asked(self) -> dict[str, Any]:
        """What a part file must answer to be added to another: in the order in which a difference is said."""
        fields = {} if self.task is None else json.loads(self.task)
        space = getattr(self.broadcast, "space", None)
        origin = fields.get("origin") or {}
        return {
            "method": self.method, "parameters": dict(self.parameters), "seed": self.seed, "data's columns": dict(self.reading),
            "classes": fields.get("labels"), "encoder or backbone": origin.get("fingerprint"),
            "feature map": None if space is None else space.map.fingerprint, "round": self.round,
            "task file": self.pack().digest(),
        }  # fmt: skip

    def __str__(self) -> str:
        if self.finished:
            return f"finished: {self.method} after {self.round} {'round' if self.round == 1 else 'rounds'}"
        if self.task is None:
            return f"{self.method}: parts describe their data"
        rounds = self.known_method().rounds
        return f"{self.method}: round {self.round + 1} of {'at most ' if rounds > 1 else ''}{rounds}"

    # --- as a file ---

    def save(self, path: Path) -> None:
        wire.write_atomically(path, *self.pack().pieces())

    @classmethod
    def load(cls, path: Path, allow_code: bool = False) -> "TaskFile":
        try:
            found = cls.unpack(Packet.from_bytes(wire.read(path)))
            check_from_file(found.method, allow_code)
            found.known_reading()
            _ = found.known_method(), None if found.task is None else found.known_task()
        except GramfoldError as error:
            raise type(error)(f"{path} is no task file that can be used: {error}") from None
        except MALFORMED as error:
            raise PartsError(f"{path} is no task file: {error!r}") from None
        return found

    @classmethod
    def begun(cls, method: Method, spec: str, reading: Reading, seed: int) -> "TaskFile":
        """The first of a run: parts are to describe their data."""
        given = json.loads(json.dumps(dict(method.parameters())))
        return cls(spec, given, given, json.loads(json.dumps(asdict(reading))), seed)

    def with_task(self, task: Task) -> "TaskFile":
        return TaskFile(self.method, self.given, self.parameters, self.reading, self.seed, task_to_json(task))
