"""All clients in this process: uploads are folded as they are computed, then dropped."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gramfold.engines.checkpoint import SAVE_EVERY_SECONDS, Checkpoint, Saved
from gramfold.engines.driver import Driver
from gramfold.engines.events import Event, Progress
from gramfold.engines.options import RunOptions
from gramfold.engines.secured import SecuredRound
from gramfold.engines.transport import TUNING, Contribution, Final, Finished, Out, Round, Transport
from gramfold.engines.workers import Workers, cpu_count
from gramfold.federation import Federation, Samples
from gramfold.heads import Head
from gramfold.methods import Batched, ClientData, Method, Tunable
from gramfold.numerics import arrays, stopwatch, threads
from gramfold.numerics.buckets import MOST, ON_CPU, ON_DEVICE, buckets
from gramfold.results.result import Result

USUAL = RunOptions()
Enough = Callable[[Sequence[Mapping[str, Any]]], bool]
"""Asked after each round, of the history so far."""


def run_inprocess(
    method: Method,
    federation: Federation,
    options: RunOptions = USUAL,
    *,
    progress: Progress | None = None,
    keep_heads: bool = True,
    until: Enough | None = None,
) -> Result:
    """Run a method over a federation, clients in parallel threads (one after another on an accelerator). `until` may end a method
    that has a model after each round before its last one."""
    arrays.check_device(options.device)
    options.check(method, federation.task)
    saved = found = None
    if options.checkpoint is not None:
        saved = Checkpoint(options.checkpoint, method, federation, options.privacy.statement())
        found = saved.load()
    given = method
    tuned: dict[str, Any] = {}
    spent = 0.0
    if found is not None:
        fields = set(method.parameters())
        method = replace(method, **{name: value for name, value in found.state.tuned.items() if name in fields})
    elif isinstance(method, Tunable):

        def score(candidate: Method, trial: Federation) -> float:
            trying = RunOptions(device=options.device, keep_total=False)
            outcome = run_inprocess(candidate, trial, trying, progress=_trial(progress), keep_heads=False)
            if outcome.classification:
                return outcome.mean_accuracy or 0.0
            return -math.inf if outcome.mean_rmse is None else -outcome.mean_rmse

        begun = time.perf_counter()
        method, chosen = method.tune(federation, score)
        tuned = dict(chosen)
        spent = time.perf_counter() - begun if tuned else 0.0
    with threads.engine():
        method = options.prepared(method, federation.task)
        transport = InProcess(method, federation, options, progress)
        transport.seconds[TUNING] = spent
        if found is not None:
            transport.memories = found.memories
            transport.seconds |= found.seconds
        driver = Driver(method, transport, options, None if found is None else found.state)
        driver.state.tuned = tuned or driver.state.tuned
        _run_rounds(driver, saved, until)
        return driver.result(given, keep_heads)


def _trial(progress: Progress | None) -> Progress | None:
    """What a trial run calls: its phases go by that name."""
    return None if progress is None else lambda event: progress(replace(event, phase=f"trial runs, {event.phase}"))


def _run_rounds(driver: Driver, saved: Checkpoint | None, until: Enough | None = None) -> None:
    """Run the remaining rounds. Even if interrupted, the checkpoint holds the last finished one."""

    def save() -> None:
        if saved is not None:
            saved.save(Saved(driver.state, driver.transport.memories, driver.transport.seconds))

    written = time.monotonic()
    try:
        while not driver.finished:
            driver.step()
            if time.monotonic() - written > SAVE_EVERY_SECONDS:
                save()
                written = time.monotonic()
            if until is not None and driver.method.has_round_models and until(driver.state.history):
                break
    finally:
        # kept uploads are not saved: a method that needs them repeats its last round
        if not (driver.method.answer is not None and driver.finished):
            save()


@dataclass
class _Share:
    """One worker's partial sum of a round."""

    total: Any = None
    bytes: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, data: ClientData, upload: Any, keep: bool) -> None:
        self.bytes[data.name] = upload.wire_bytes
        if data.memory:
            self.memories[data.name] = data.memory
        if keep:
            self.kept[data.name] = upload
        with stopwatch.phase("aggregate"):
            if self.total is None:
                self.total = upload.copy() if keep else upload
            else:
                self.total += upload


class InProcess(Transport):
    """The clients of a federation, in threads; each worker sums the uploads of its clients before handing them on."""

    def __init__(
        self,
        method: Method,
        federation: Federation,
        options: RunOptions = USUAL,
        progress: Progress | None = None,
        *,
        workers: int | None = None,
    ) -> None:
        """`workers`: threads, by default one for each core."""
        super().__init__()
        self.privacy, device = options.privacy, options.device
        self._round: Round | None = None
        self.federation, self.task, self.device, self.progress = federation, federation.task, device, progress
        self._by_name = {client.name: client for client in federation}
        self._method, self._keep_loaded = method, method.rounds > 1 or device != "cpu"
        at_once = (workers or cpu_count()) if device == "cpu" and method.threaded else 1
        self._workers = Workers(at_once, progress, self.seconds)
        self._loaded: dict[str, Samples] = {}
        self._sizes: dict[str, int] = {}
        self._secured: SecuredRound | None = None

    def clients(self) -> Sequence[str]:
        return list(self._by_name)

    def at_server(self, phase: str, work: Callable[[], Out], size: float = math.inf) -> Out:
        return self._workers.server(phase, work, size)

    def _load(self, name: str, contributed: bool = False) -> ClientData:
        """A client's data and a copy of its memory; with several rounds, and on an accelerator, its samples stay loaded."""
        samples = self._loaded.get(name)
        if samples is None:
            samples = on_device(self._by_name[name].train(), self.device)
            self._method.check_weights(samples)
            self._sizes[name] = samples.n
            if self._keep_loaded:
                self._loaded[name] = samples
        return ClientData(name, samples, dict(self.memories.get(name, {})), contributed)

    # --- rounds ---

    def uploads(self, round_: Round) -> Iterator[Contribution]:
        method, self._round, secure = round_.method, round_, self.privacy.secure
        self._secured = None if secure is None else SecuredRound(round_.clients, secure, method, round_.number, round_.broadcast)
        if isinstance(method, Batched) and method.prefers_batching(round_.broadcast):
            shares = [self._workers.server("local", lambda: self._batched(method, round_))]
            if self.progress:
                self.progress(Event("rounds", round_.number + 1, method.rounds))
        else:
            shares = self._workers.each(round_.title, round_.clients, partial(self._one_client, round_), _Share)
        for name in round_.clients:
            round_.deliveries.delivered(name, round_.deliveries.packet(name, round_.broadcast))
        self.staged = dict(self.memories)
        for share in shares:
            self.staged |= share.memories
            if share.total is not None:
                yield Contribution(share.total, share.bytes, share.kept)
        if self._secured is not None:
            total = self.at_server("aggregate", self._secured.total)
            for name, received in self._secured.down.items():
                round_.deliveries.bytes[name] += received
            yield Contribution(total, self._secured.up)

    def release(self, total: Any, summed: int) -> Any:
        assert self._round is not None
        implied = self._round.method.asked(self._round.broadcast).implied
        return self.privacy.release(total, implied, len(self._round.clients), summed)

    @property
    def statement(self) -> dict[str, Any]:
        return self.privacy.statement()

    def _one_client(self, round_: Round, share: _Share, name: str) -> None:
        with stopwatch.phase("local"):
            data = self._load(name)
            upload = round_.method.sent(data, round_.broadcast)
        self._add(round_, share, data, upload)

    def _add(self, round_: Round, share: _Share, data: ClientData, upload: Any) -> None:
        """Pass an upload on: to the worker's sum, or masked to the secure one."""
        if self.privacy.dp is not None:
            implied = round_.method.asked(round_.broadcast).implied
            upload = self.privacy.noisy(upload, implied, len(round_.clients), data.train.weights)
        if self._secured is None:
            share.add(data, upload, round_.keep)
            return
        if data.memory:
            share.memories[data.name] = data.memory
        with stopwatch.phase("aggregate"):
            self._secured.add(data.name, upload)

    def _batched(self, method: Batched, round_: Round) -> _Share:
        share, cohort = _Share(), [self._load(name) for name in round_.clients]
        for data, upload in zip(cohort, method.local_many(cohort, round_.broadcast), strict=True):
            self._add(round_, share, data, method.narrowed(upload))
        return share

    # --- every client's own model ---

    def heads(self, final: Final) -> Iterator[Finished]:
        method, broadcast = final.method, final.broadcast
        made: dict[str, Head] = {}
        if isinstance(method, Batched) and method.prefers_batching(broadcast):
            cohort = [self._load(name) for name in final.clients]
            heads = self._workers.server("personalize", lambda: method.personalize_many(cohort, broadcast))
            made = {data.name: head for data, head in zip(cohort, heads, strict=True)}
        finish = partial(self._finish, final, made)
        for done in self._workers.each("personalize", self._together(final), finish, list, size=len):
            yield from done

    def _together(self, final: Final) -> list[list[str]]:
        """The clients whose heads are computed together: those of about as many samples, as far as sizes are known."""
        method, names = final.method, list(final.clients)
        width = method.numbers_per_sample(final.broadcast)
        if width is None or method.answer is not None or not all(name in self._sizes for name in names):
            return [[name] for name in names]
        room = ON_CPU if self.device == "cpu" else ON_DEVICE
        most = MOST if self._workers.count == 1 else -(-len(names) // (4 * self._workers.count))  # for all threads to have some
        found = buckets([self._sizes[name] for name in names], width, room, most=most)
        return [[names[i] for i in sorted(bucket)] for bucket in found]

    def _finish(self, final: Final, made: dict[str, Head], done: list[Finished], names: list[str]) -> None:
        clients = [self._load(name, name in final.contributed) for name in names]
        replies = []
        for name in names:
            with stopwatch.phase("aggregate"):
                replies.append(final.reply(name))
                final.deliveries.delivered(name, final.deliveries.packet(name, replies[-1]))
        if len(names) > 1:
            with stopwatch.phase("personalize"):
                made |= zip(names, final.method.personalize_many(clients, final.broadcast), strict=True)
        tests = partial(self._tests, names)
        done += final.all_finished(clients, tests, replies, {name: made.pop(name) for name in names if name in made}, self.device)

    def _tests(self, names: Sequence[str]) -> list[Samples]:
        return [self._by_name[name].test() for name in names]


def on_device(samples: Samples, device: str) -> Samples:
    """The samples on the given device."""
    if device == "cpu":
        return samples
    return Samples(arrays.to_device(samples.inputs, device), arrays.to_device(samples.targets, device), samples.weights,
                   samples.blocks)  # fmt: skip
