"""The one round loop: participants, the sum of uploads, broadcasts, personal models, and the result."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gramfold import evaluation
from gramfold.engines.deliveries import Deliveries
from gramfold.engines.options import RunOptions
from gramfold.engines.transport import PHASES, TUNING, Final, Finished, Fold, Round, Transport
from gramfold.errors import GramfoldError, OptionError, RemoteError
from gramfold.heads import Head
from gramfold.methods import Method
from gramfold.methods.finishing import shared_head
from gramfold.methods.protocol import reported
from gramfold.results.by_name import ByName
from gramfold.results.figures import ClientResult
from gramfold.results.folded import Run, Summed, in_memory, worth_keeping
from gramfold.results.result import Result
from gramfold.wire.record import Record


@dataclass
class State:
    """Where a run stands between two rounds."""

    broadcast: Record
    round: int = 0
    uplink: dict[str, int] = field(default_factory=dict)
    contributed: frozenset[str] = frozenset()
    """The clients whose samples are in the last sum."""
    deliveries: Deliveries = field(default_factory=Deliveries)
    history: list[dict[str, Any]] = field(default_factory=list)
    tuned: dict[str, Any] = field(default_factory=dict)
    """The parameters chosen by trial runs before the first round."""
    finished: bool = False
    """Whether there is no round left."""


class Driver:
    """One run of one method over a transport."""

    def __init__(self, method: Method, transport: Transport, options: RunOptions, state: State | None = None) -> None:
        """`method`: as the options have prepared it."""
        self.method, self.transport, self.options = method, transport, options
        self.state = state if state is not None else State(self._begin())
        self.state.deliveries.precision = method.precision
        self.fold = Fold()
        self.rounding = 0.0
        """How far numbers that travelled in few bits may have moved an entry of a sum."""
        self.total: Summed | None = None
        """The last sum, where the result is to hold it."""
        elapsed = self.state.history[-1]["seconds"] if self.state.history else 0.0
        self._begun = time.perf_counter() - elapsed

    def _begin(self) -> Record:
        return self.transport.at_server("aggregate", lambda: self.method.begin(self.transport.task))

    @property
    def finished(self) -> bool:
        return self.state.finished or self.method.rounds == 0

    # --- rounds ---

    def run(self, given: Method, keep_heads: bool = True) -> Result:
        """All rounds that are left, and the result."""
        while not self.finished:
            self.step()
        return self.result(given, keep_heads)

    def step(self) -> None:
        """Run one round; the state changes only at its end."""
        method, state, transport = self.method, self.state, self.transport
        deliveries = state.deliveries.copy()
        deliveries.announce(state.broadcast)
        transport.prepare(state.round)
        names = method.participants(state.round, transport.clients(), transport.task.seed)
        last = method.is_last(state.round, state.broadcast)
        keep = last and (method.answer is not None or self._keeps_clients(method))
        request = Round(method, state.round, names, state.broadcast, keep, deliveries)
        fold = transport.fold(request)
        uplink = dict(state.uplink)
        for contribution in transport.uploads(request):
            if self._accepted(contribution, request, fold):
                uplink |= {name: uplink.get(name, 0) + sent for name, sent in contribution.bytes.items()}
            del contribution  # frees its memory before the next, which may be as large
        if fold.total is None:
            raise RemoteError("no client sent an upload")
        size = getattr(fold.total, "dim", math.inf)
        broadcast = transport.at_server("aggregate", lambda: self._aggregate(fold), size)
        deliveries.announce(broadcast)  # so that a resumed run knows what is new in it
        after = replace(
            state,
            broadcast=broadcast,
            round=state.round + 1,
            uplink=uplink,
            deliveries=deliveries,
            contributed=frozenset(fold.contributed),
            finished=last,
        )
        # no calls in between: after an interrupt either all three are updated or none is
        self.fold, transport.memories, self.state = fold, transport.staged, after
        self.state.history.append(self._entry())

    def _aggregate(self, fold: Fold) -> Record:
        total = self.transport.release(fold.take_total(), len(fold.contributed))
        self.rounding = max(self.rounding, getattr(total, "rounding", 0.0))
        self.total = total if worth_keeping(self.method, self.state.broadcast, total, self.options.holds_total) else None
        return self.method.broadcast_after(total, self.state.broadcast)

    def _accepted(self, contribution: Any, request: Round, fold: Fold) -> bool:
        """Add a contribution to the sum; if a remote one is invalid, exclude its sender."""
        if self.transport.trusted:
            fold.add(contribution)
            return True
        try:
            self.transport.check(request, contribution.upload)
            fold.add(contribution)
        except Exception as error:  # a bad upload must not stop the other clients
            reason = str(error) if isinstance(error, GramfoldError) else f"its upload cannot be read: {error!r}"
            for name in contribution.bytes:
                self.transport.exclude(name, reason)
            return False
        return True

    def _entry(self) -> dict[str, Any]:
        """The round's entry in the history. Testing clients between rounds is for the report only; its time does not count."""
        state = self.state
        entry: dict[str, Any] = {
            "round": state.round,
            "seconds": time.perf_counter() - self._begun,
            "uplink_bytes": sum(state.uplink.values()),
            "downlink_bytes": sum(state.deliveries.bytes.values()),
            **reported(state.broadcast, "noted"),
        }
        every = self.options.evaluate_every
        due = self.method.has_round_models and every and state.round % every == 0
        if due and not self.finished:
            paused = time.perf_counter()
            scores = [done.scored for done in self.transport.heads(self._final(None, False, Deliveries()))]
            classification = self.transport.task.labels is not None
            values = [score.accuracy if classification else score.rmse for score in scores]
            mean = evaluation.mean([value for value in values if value is not None])
            entry["mean_accuracy" if classification else "mean_rmse"] = mean
            self._begun += time.perf_counter() - paused
        return entry

    # --- every client's own model ---

    def _final(self, shared: Head | None, keep_heads: bool, deliveries: Deliveries) -> Final:
        method, broadcast, fold = self.method, self.state.broadcast, self.fold

        def reply(client: str) -> Record:
            if method.answer is None:
                return broadcast
            return method.answer(fold.upload_of(client) if client in fold.contributed else None, broadcast)

        deliveries.announce(broadcast)
        return Final(
            method, self.transport.clients(), broadcast, reply, self.state.contributed, shared, keep_heads, deliveries,
            self.transport.task,
        )  # fmt: skip

    def _client_result(self, done: Finished) -> ClientResult:
        sent, received = self.state.uplink.get(done.name, 0), self.state.deliveries.bytes.get(done.name, 0)
        return ClientResult(done.name, done.train, done.scored, done.shared, sent, received, done.chosen)

    def _keeps_clients(self, method: Method) -> bool:
        """Whether the last round's uploads are to stay with the result; raises where they add up to nothing one can take from."""
        if self.options.keep_clients and method.revisable(self.state.broadcast) is None:
            raise OptionError(f"keep_clients is for methods of one sum of moments, which {method.name} is not as it runs here")
        return self.options.keep_clients

    def _kept(self) -> dict[str, Summed]:
        """What each client sent, where that was asked for."""
        if not self.options.keep_clients:
            return {}
        return {name: in_memory(self.fold.upload_of(name)) for name in sorted(self.state.contributed)}

    def result(self, given: Method, keep_heads: bool = True) -> Result:
        """The result of a finished run; `given` is the method before tuning."""
        method, state, transport = self.method, self.state, self.transport
        shared, order = shared_head(method, state.broadcast, transport.task), transport.clients()
        done: dict[str, Finished] = {}
        for finished in transport.heads(self._final(shared, keep_heads, state.deliveries)):
            done[finished.name] = finished
        names = [name for name in order if name in done]
        total = None if self.total is None else in_memory(self.total)
        counted = {name: done[name].train for name in names if name in state.contributed}
        return Result(
            method=method.name,
            parameters=given.parameters(),
            rounds=state.round,
            clients=ByName({name: self._client_result(done[name]) for name in names}),
            heads=ByName({name: head for name in names if (head := done[name].head) is not None}),
            global_head=shared,
            seconds=_by_phase(transport.seconds),
            run=Run(method, transport.task, state.broadcast, total, counted, self._kept()),
            chosen={
                **state.tuned,
                **reported(state.broadcast, "chosen"),
                **({"rounding": self.rounding} if self.rounding else {}),
            },
            history=state.history,
            privacy=transport.statement,
        ).with_final_figures()


def _by_phase(seconds: Mapping[str, float]) -> dict[str, float]:
    tuning = {TUNING: seconds[TUNING]} if seconds.get(TUNING) else {}
    return tuning | {phase: seconds.get(phase, 0.0) for phase in PHASES}
