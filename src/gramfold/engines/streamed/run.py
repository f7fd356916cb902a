"""A run over a stream of clients, pass by pass."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from gramfold import uploads, wire
from gramfold.engines.events import Event, Progress, reported
from gramfold.engines.options import RunOptions
from gramfold.engines.streamed import workers
from gramfold.engines.streamed.personal import Personal, clients_of, remembered
from gramfold.engines.workers import cpu_count
from gramfold.errors import FileError, GramfoldError, OptionError
from gramfold.federation import Federation
from gramfold.federation.generated import Clients
from gramfold.federation.streams import ClientStream
from gramfold.methods import Method, Tunable, make_method
from gramfold.numerics import threads
from gramfold.progress import spoken
from gramfold.results.shards import INDEX, RUN, Streamed, StreamedRun, shard_file, write_index, write_shard
from gramfold.wire import Packet

FEW = 4
"""Batches that are worth a process of their own."""
BATCHES = 64
"""Batches that are folded between two times that the sum is written down."""


def run_streamed(
    method: Method | str,
    clients: Federation | Clients,
    folder: str | PathLike[str],
    *,
    processes: int | None = None,
    progress: Progress | bool = True,
) -> Streamed:
    """Run a method over clients that are read a batch at a time, and leave every client's head in a folder.

    `clients` is a federation made by `gf.Federation.from_stream` or `from_parquet`, or what the former takes: a function that
    yields (name, X, y), or an iterable of those. They are read once for every round of the method, and once more for the heads;
    in memory are a batch of them, the sum, and their names. What comes back, and `gf.load_streamed(folder)`, reads any head:
    it predicts what the head that `gf.run` makes predicts.

    `processes` is how many make heads side by side; None: one for each core, or this one alone where clients are few. `progress`:
    as in `gf.run`. A run that was stopped goes on where it was when it is called again with the same method, clients and folder.
    """
    if isinstance(method, str):
        method = make_method(method)
    federation = clients if isinstance(clients, Federation) else Federation.from_stream(clients)
    if federation.stream is None:
        raise OptionError(
            "run_streamed reads clients a batch at a time: make them with gf.Federation.from_stream or from_parquet"
        )
    with reported(progress, method.name) as report, threads.engine():
        run = _Run(method, federation, federation.stream, Path(folder), processes, report)
        run.fold()
        run.personalize()
    return Streamed.load(Path(folder), allow_code=True)


class _Run:
    """One run in a folder; whatever of it is there is not done again."""

    def __init__(
        self,
        given: Method,
        federation: Federation,
        stream: ClientStream,
        folder: Path,
        processes: int | None,
        report: Progress | None,
    ) -> None:
        self.task, self.stream, self.folder, self.report = federation.task, stream, folder, report
        self.processes = processes
        self.method = _prepared(given, federation)
        self.state = self._state(given)

    def _state(self, given: Method) -> StreamedRun:
        """The run as it stands in the folder, or its beginning."""
        contents = self.stream.contents
        about = [type(given).__qualname__, dict(given.parameters()), contents.digest, self.task.seed]
        run = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:32]
        if (self.folder / RUN).exists():
            found = StreamedRun.load(self.folder)
            if found.run != run:
                raise FileError(f"{self.folder} holds a run with other clients or settings; remove it or choose another folder")
            return found
        if self.folder.exists() and any(self.folder.iterdir()):
            raise FileError(f"{self.folder} holds something else than a streamed run; choose an empty folder, or a new one")
        wire.private_folder(self.folder)
        begun = self.method.begin(self.task)
        batches = len(contents.batches) - 1
        return StreamedRun.begun(run, given, self.method, self.task, begun, contents.clients, batches)

    # --- rounds ---

    def fold(self) -> None:
        """All rounds that are left."""
        while not self.state.finished:
            self._round()
        self.state.save(self.folder)

    def _round(self) -> None:
        state, method, begun = self.state, self.method, time.perf_counter()
        broadcast, memory = state.broadcast, dict(state.memory)
        total = None if state.total is None else uploads.unpack(_packet(state.total), exact_counts=False)
        show = self._pass(f"folding, round {state.round + 1}" if method.rounds > 1 else "folding", state.done)
        spent, done = dict(state.seconds), state.done
        after = memory
        for batch in self.stream.read(done):
            clients = clients_of(batch, memory)
            part = method.sum_of(clients, broadcast)
            after = remembered(clients, after, method.name)
            total = part if total is None else total.__iadd__(part)
            done += 1
            show(done)
            if done % BATCHES == 0 and done < state.batches:
                self._note(total, done, spent, begun)
        spent["fold"] = spent.get("fold", 0.0) + time.perf_counter() - begun
        assert total is not None
        last = method.is_last(state.round, broadcast)
        sent = method.broadcast_after(total.settle(), broadcast)
        self.state = replace(
            state, broadcast=sent, round=state.round + 1, done=0, total=None, memory=after, finished=last, seconds=spent
        )
        self.state.save(self.folder)

    def _note(self, total: Any, done: int, spent: dict[str, float], begun: float) -> None:
        """Write down how far the sum is."""
        packed = total.pack()
        seconds = {**spent, "fold": spent.get("fold", 0.0) + time.perf_counter() - begun}
        kept = {"arrays": dict(packed.arrays), "meta": dict(packed.meta)}
        replace(self.state, done=done, total=kept, seconds=seconds).save(self.folder)

    # --- every client's own head ---

    def personalize(self) -> None:
        """The heads of all batches that have no file yet, and where each is."""
        state, begun = self.state, time.perf_counter()
        if (self.folder / INDEX).exists():
            return
        missing = [batch for batch in range(state.batches) if not shard_file(self.folder, batch).exists()]
        wire.private_folder(shard_file(self.folder, 0).parent)
        show, done = self._pass("personalizing", state.batches - len(missing)), state.batches - len(missing)

        def finished(batch: int) -> None:
            nonlocal done
            done += 1
            show(done)

        self._heads(missing, finished)
        spent = {**state.seconds, "personalize": state.seconds.get("personalize", 0.0) + time.perf_counter() - begun}
        self.state = replace(state, seconds=spent)
        self.state.save(self.folder)
        write_index(self.folder, state.batches)

    def _heads(self, missing: Sequence[int], finished: Callable[[int], None]) -> None:
        """Make the heads of these batches, in this process or in some beside it."""
        wanted = set(missing)
        batches = (
            ((i, batch) for i, batch in enumerate(self.stream.read(missing[0]), missing[0]) if i in wanted) if missing else ()
        )
        count = min(self.processes, len(missing)) if self.processes else min(cpu_count(), len(missing) // FEW)
        if count > 1 and self._known_elsewhere:
            workers.personalize(self.folder, batches, count, finished)
            return
        personal = Personal(self.method, self.task, self.state.broadcast, dict(self.state.memory))
        for number, batch in batches:
            write_shard(shard_file(self.folder, number), personal.kept(batch))
            finished(number)

    @property
    def _known_elsewhere(self) -> bool:
        """Whether another process can make the method from its name and parameters."""
        try:
            return self.state.known_method() == self.method
        except GramfoldError:
            return False

    # --- how far it is ---

    def _pass(self, phase: str, before: int) -> Callable[[int], None]:
        """What to call with how many batches of a pass are done, of which some were `before` it began."""
        begun, begins = time.perf_counter(), self.stream.contents.batches

        def show(done: int) -> None:
            if self.report is not None:
                seconds = (time.perf_counter() - begun) / (done - before) * (len(begins) - 1 - done)
                left = f", about {spoken(seconds)} left" if seconds >= 1 else ""
                self.report(Event(phase + left, begins[done], begins[-1]))

        return show


def _prepared(given: Method, federation: Federation) -> Method:
    """The method as it runs; raises where it needs more of clients than one batch after another has."""
    unset = given.undecided if isinstance(given, Tunable) else ()
    if unset:
        raise OptionError(
            f"{given.name} would tune {unset[0]} by trial runs, which run_streamed does not; set it: "
            f"{type(given).__name__}({unset[0]}=...)"
        )
    method = RunOptions().prepared(given, federation.task)
    some = ["0", "1"]
    if method.answer is not None or list(method.participants(0, some, federation.task.seed)) != some or method.has_round_models:
        raise OptionError(f"{method.name} keeps something of each client between rounds; use gf.run, or another method")
    return method


def _packet(fields: Any) -> Packet:
    return Packet(fields["arrays"], fields["meta"])
