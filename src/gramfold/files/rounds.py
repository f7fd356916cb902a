"""The steps of a run as files, from a method's name to every client's head."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gramfold.engines.driver import Driver, State
from gramfold.engines.inprocess import InProcess
from gramfold.engines.options import RunOptions
from gramfold.engines.share import Share
from gramfold.engines.transport import Fold
from gramfold.errors import PartsError
from gramfold.federation import Client, Federation, Task
from gramfold.files.description import Description
from gramfold.files.parts import PartFile, require_same_question
from gramfold.files.reading import Reading
from gramfold.files.tasks import TaskFile
from gramfold.methods import ClientData, Method, Tunable, make_method, spec_of
from gramfold.numerics import threads
from gramfold.remote.tasks import agreed_task
from gramfold.results.result import Result
from gramfold.wire.record import plain


def begin(method: Method, reading: Reading, seed: int = 0, data: Sequence[Path] = ()) -> TaskFile:
    """The first task file of a run: parts are asked to describe their data, unless `data`, all of it, is here."""
    if method.has_round_models:
        raise PartsError(f"{method.name} trains over many rounds with a memory at every client; use gramfold run for it")
    unset = method.undecided if isinstance(method, Tunable) else ()
    if unset:
        raise PartsError(f"{method.name} would tune {unset[0]} by trial runs, which files do not have; set it with --set")
    begun = TaskFile.begun(method, spec_of(method), reading, seed)
    total: Description | None = None
    for path in data:
        said = reading.describe([path], seed)[0]
        total = said if total is None else total.__iadd__(said)
    return begun if total is None else _first(begun, total)


def fold(asked: TaskFile, paths: Sequence[Path], device: str = "cpu", before: PartFile | None = None) -> PartFile:
    """A part's answer to a task file. `before`: what was answered earlier, which is given back if it is that."""
    if asked.finished:
        raise PartsError("this run is finished; gramfold personal makes every client's head")
    name, reading = ", ".join(path.stem for path in paths), asked.known_reading()
    if asked.task is None:
        said, part = reading.describe(paths, asked.seed, device)
        return PartFile.of(asked.asked, name, part, said.n, said)
    task, method, broadcast = asked.known_task(), asked.known_method(), asked.broadcast
    assert broadcast is not None
    part = reading.part(paths, task, device)
    if before is not None and before.asked == asked.asked and list(before.parts) == [part.id]:
        return before
    names = [client.name for client in part.clients]
    if list(method.participants(asked.round, names, task.seed)) != names:
        raise PartsError(f"{method.name} asks some clients in each round, and no part knows which; use gramfold run for it")
    upload = Share(method, part.clients, task, device=device).fold(asked.round, broadcast).upload
    return PartFile.of(asked.asked, name, part, sum(client.train().n for client in part.clients), upload)


def following(asked: TaskFile, answer: PartFile) -> TaskFile:
    """The task file of the round after this one; of the end, where this was the last."""
    if asked.finished:
        raise PartsError("this run is finished; gramfold personal makes every client's head")
    require_same_question(answer.asked, asked.asked, "the parts", "the task file")
    upload = answer.upload
    if asked.task is None:
        if not isinstance(upload, Description):
            raise PartsError(f"the task file asks for descriptions, and these are {upload.kind}")
        return _first(asked, upload)
    method, broadcast = asked.known_method(), asked.broadcast
    method.asked(broadcast).check_packet(answer.packet)  # a sum may be more than `check` allows one client
    with threads.engine():
        after = method.broadcast_after(upload.settle(), broadcast)
    return replace(
        asked, broadcast=after, round=asked.round + 1, finished=method.is_last(asked.round, broadcast), parts=dict(answer.parts),
        earlier=sorted({*asked.earlier, *answer.parts}),
    )  # fmt: skip


def _first(asked: TaskFile, said: Description) -> TaskFile:
    """The task file of the first round, now that the data is known."""
    task = agreed_task({"all parts": said.said}, asked.seed)
    method = RunOptions().prepared(make_method(asked.method, **asked.given), task)
    begun = replace(asked.with_task(task), parameters=plain(dict(method.parameters())))
    with threads.engine():
        return replace(begun, broadcast=method.begin(task), finished=method.rounds == 0)


# --- every client's own model ---


class _Recomputed(Fold):
    """The uploads of a part's clients, made again from their samples: for methods whose server answers each by its own."""

    def __init__(self, method: Method, clients: Sequence[Client], task: Task, broadcast: Any, contributed: bool) -> None:
        super().__init__()
        self._by_name = {client.name: client for client in clients}
        revisable = method.revisable(broadcast)
        if revisable is None:
            raise PartsError(
                f"{method.name} answers each client from its upload, which files do not keep; {method.remedy('sums')}"
            )
        self._method, self._asked = method, revisable.again(task)
        self.contributed = set(self._by_name) if contributed else set()

    def upload_of(self, client: str) -> Any:
        return self._method.sent(ClientData(client, self._by_name[client].train()), self._asked)


def personal(model: TaskFile, paths: Sequence[Path], device: str = "cpu") -> Result:
    """The heads and figures of a part's clients: of those whose samples are in the model, or of newcomers."""
    if not model.finished:
        raise PartsError(f"the run is not finished ({model}); fold, merge and gramfold next before")
    task, method = model.known_task(), model.known_method()
    assert model.broadcast is not None
    part = model.known_reading().part(paths, task, device)
    clients, contributed = part.clients, part.id in model.parts
    if not contributed and part.id in model.earlier:
        raise PartsError(
            f"{paths[0]} had a say in earlier rounds and is not in the last sum, so nothing of it can be left out; "
            "fold it there too"
        )
    transport = InProcess(method, Federation(clients, task), RunOptions(device=device))
    names = frozenset(client.name for client in clients) if contributed else frozenset()
    state = State(model.broadcast, model.round, contributed=names, finished=True)
    with threads.engine():
        driver = Driver(method, transport, RunOptions(device=device), state)
        if method.answer is not None:
            driver.fold = _Recomputed(method, clients, task, model.broadcast, contributed)
        result = driver.result(make_method(model.method, **model.given))
    # whose samples are in the sum, this part's clients know of themselves alone
    return replace(result, run=replace(result.run, samples={}))
