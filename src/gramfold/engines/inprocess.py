"""All clients in this process: uploads are folded as they come and then dropped."""

import math
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gramfold import evaluation, stopwatch
from gramfold.engines.checkpoint import EVERY_SECONDS, Checkpoint, State
from gramfold.engines.result import ClientResult, Result, Run
from gramfold.engines.workers import Progress, Workers, cpu_count
from gramfold.errors import GramfoldError
from gramfold.evaluation import score_head
from gramfold.federation import Client, Federation, Samples
from gramfold.heads import Head
from gramfold.methods import ClientData, Method
from gramfold.numerics import arrays
from gramfold.wire import Packet

PHASES = ("features", "local", "aggregate", "personalize", "evaluate")


@dataclass
class _Fold:
    """What one worker has added up in a round."""

    total: Any = None
    uplink: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, data: ClientData, upload: Any, keep: bool) -> None:
        self.uplink[data.name] = upload.wire_bytes
        if data.memory:
            self.memories[data.name] = data.memory
        if keep:
            self.kept[data.name] = upload
        with stopwatch.phase("aggregate"):
            if self.total is None:
                self.total = upload.copy() if keep else upload
            else:
                self.total += upload


def run_inprocess(
    method: Method,
    federation: Federation,
    *,
    device: str = "cpu",
    progress: Progress | None = None,
    keep_heads: bool = True,
    checkpoint: Path | None = None,
    evaluate_every: int = 0,
) -> Result:
    """Run a method over a federation, clients in parallel threads (one after another on an accelerator)."""
    arrays.check_device(device)
    saved = Checkpoint(checkpoint, method, federation) if checkpoint is not None else None
    state = saved.load() if saved is not None else None
    given = method
    if state is None:

        def score(candidate: Method, trial: Federation) -> float:
            outcome = run_inprocess(candidate, trial, device=device, progress=progress, keep_heads=False)
            return outcome.mean_accuracy or 0.0

        method, chosen = method.tune(federation, score)
        state = State(method.begin(federation.task), tuned=dict(chosen))
    else:
        fields = set(method.parameters())
        method = replace(method, **{name: value for name, value in state.tuned.items() if name in fields})
    simulation = _Simulation(method, federation, state, device, progress, saved)
    simulation.run_rounds(evaluate_every)
    return simulation.result(given, keep_heads)


class _Simulation:
    """One run: the state between rounds, and what takes it from one to the next."""

    def __init__(
        self,
        method: Method,
        federation: Federation,
        state: State,
        device: str,
        progress: Progress | None,
        saved: Checkpoint | None,
    ) -> None:
        self.method, self.federation, self.state = method, federation, state
        self.device, self.progress, self.saved = device, progress, saved
        self.workers = Workers(cpu_count() if device == "cpu" and method.threaded else 1, progress)
        self.workers.seconds |= state.seconds
        self._loaded: dict[str, Samples] = {}
        self._kept: dict[str, Any] = {}

    def load(self, client: Client) -> ClientData:
        """A client's data with a memory of its own; samples that many rounds need stay loaded."""
        samples = self._loaded.get(client.name)
        if samples is None:
            samples = on_device(client.train(), self.device)
            if self.method.rounds > 1:
                self._loaded[client.name] = samples
        return ClientData(client.name, samples, dict(self.state.memories.get(client.name, {})))

    # --- rounds ---

    def run_rounds(self, evaluate_every: int) -> None:
        """All rounds that are left. However it ends, a checkpoint holds the last finished one."""
        written, begun = (
            time.monotonic(),
            time.perf_counter() - (self.state.history[-1]["seconds"] if self.state.history else 0.0),
        )
        try:
            while self.state.round < self.method.rounds:
                self._round()
                entry: dict[str, Any] = {
                    "round": self.state.round,
                    "seconds": time.perf_counter() - begun,
                    "uplink_bytes": sum(self.state.uplink.values()),
                    "downlink_bytes": sum(self.state.downlink.values()),
                }
                due = self.method.has_round_models and evaluate_every and self.state.round % evaluate_every == 0
                if due and self.state.round < self.method.rounds:
                    paused = time.perf_counter()
                    entry["mean_accuracy"] = self._mean_accuracy()
                    begun += time.perf_counter() - paused
                self.state.history.append(entry)
                self.state.seconds = dict(self.workers.seconds)
                if self.saved is not None and time.monotonic() - written > EVERY_SECONDS:
                    self.saved.save(self.state)
                    written = time.monotonic()
        finally:
            # what a server keeps of the last uploads is not saved: such a method does its last round again
            if self.saved is not None and not (self.method.keeps_uploads and self.state.round == self.method.rounds):
                self.saved.save(self.state)

    def _round(self) -> None:
        """One round; the state changes at its very end."""
        method, state = self.method, self.state
        by_name = {client.name: client for client in self.federation}
        names = method.participants(state.round, list(by_name), self.federation.task.seed)
        keep = method.keeps_uploads and state.round == method.rounds - 1
        title = f"round {state.round + 1}" if method.rounds > 1 else "local"
        if method.prefers_batching(state.broadcast):
            folds = [self.workers.server("local", lambda: self._side_by_side([by_name[name] for name in names], keep))]
            if self.progress:
                self.progress("rounds", state.round + 1, method.rounds)
        else:
            folds = self.workers.each(title, [by_name[name] for name in names], partial(self._alone, keep), _Fold)

        def aggregate() -> Packet:
            total = folds[0].total
            for fold in folds[1:]:
                if fold.total is not None:
                    total += fold.total
            return method.aggregate(total, state.broadcast)

        broadcast = self.workers.server("aggregate", aggregate, size=getattr(folds[0].total, "dim", math.inf))
        received = state.broadcast.wire_bytes
        memories, uplink, downlink = dict(state.memories), dict(state.uplink), dict(state.downlink)
        for fold in folds:
            self._kept |= fold.kept
            memories |= fold.memories
            for name, size in fold.uplink.items():
                uplink[name] = uplink.get(name, 0) + size
                downlink[name] = downlink.get(name, 0) + received
        self.state = replace(
            state, broadcast=broadcast, round=state.round + 1, memories=memories, uplink=uplink, downlink=downlink
        )

    def _alone(self, keep: bool, fold: _Fold, client: Client) -> None:
        with stopwatch.phase("local"):
            data = self.load(client)
            upload = self.method.local(data, self.state.broadcast)
        fold.add(data, upload, keep)

    def _side_by_side(self, clients: list[Client], keep: bool) -> _Fold:
        fold, cohort = _Fold(), [self.load(client) for client in clients]
        for data, upload in zip(cohort, self.method.local_many(cohort, self.state.broadcast), strict=True):
            fold.add(data, upload, keep)
        return fold

    # --- every client's own model ---

    def _finish(self, shared: Head | None, keep_heads: bool) -> dict[str, tuple[Head | None, ClientResult]]:
        """Every client's head as things stand now (if it is to be kept), and how it does on the client's test split."""
        method, broadcast = self.method, self.state.broadcast
        clients = self.federation.clients
        shared_bytes = broadcast.wire_bytes
        made: dict[str, Head] = {}
        if method.prefers_batching(broadcast):
            cohort = [self.load(client) for client in clients]
            heads = self.workers.server("personalize", lambda: method.personalize_many(cohort, broadcast))
            made = {data.name: head for data, head in zip(cohort, heads, strict=True)}

        def personalize(done: dict[str, tuple[Head | None, ClientResult]], client: Client) -> None:
            data = self.load(client)
            reply, received = broadcast, shared_bytes
            if method.keeps_uploads:
                with stopwatch.phase("aggregate"):
                    reply = method.reply(self._kept[client.name], broadcast)
                    received = reply.wire_bytes
            with stopwatch.phase("personalize"):
                if not data.train.n:
                    raise GramfoldError(f"client {client.name!r} has no training samples; leave it out")
                head = made.get(client.name) or method.personalize(data, reply)
            with stopwatch.phase("evaluate"):
                test = on_device(client.test(), self.device)
                scored = score_head(head, test)
                scored_shared = score_head(shared, test) if shared is not None else None
            up, down = self.state.uplink.get(client.name, 0), self.state.downlink.get(client.name, 0)
            result = ClientResult(client.name, data.train.n, scored, scored_shared, up, down + received, head.chosen)
            done[client.name] = (head if keep_heads else None, result)

        finished: dict[str, tuple[Head | None, ClientResult]] = {}
        for part in self.workers.each("personalize", clients, personalize, dict):
            finished |= part
        return finished

    def _mean_accuracy(self) -> float | None:
        """For the report only; nothing is chosen by it."""
        accuracies = [result.accuracy for _, result in self._finish(None, keep_heads=False).values()]
        return evaluation.mean([value for value in accuracies if value is not None])

    def result(self, given: Method, keep_heads: bool) -> Result:
        method, state = self.method, self.state
        shared = method.global_head(state.broadcast)
        finished = self._finish(shared, keep_heads)
        names = [client.name for client in self.federation.clients]
        return Result(
            method=method.name,
            parameters=given.parameters(),
            rounds=method.rounds,
            clients={name: finished[name][1] for name in names},
            heads={name: head for name in names if (head := finished[name][0]) is not None},
            global_head=shared,
            seconds={phase: self.workers.seconds.get(phase, 0.0) for phase in PHASES},
            run=Run(method, self.federation.task, state.broadcast),
            chosen={**state.tuned, **state.broadcast.meta.get("chosen", {})},
            history=state.history,
        ).with_final_figures()


def on_device(samples: Samples, device: str) -> Samples:
    """The samples where the work is done."""
    if device == "cpu":
        return samples
    return Samples(arrays.to_device(samples.inputs, device), arrays.to_device(samples.targets, device))
