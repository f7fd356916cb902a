"""All clients in this process: uploads are folded as they come and then dropped."""

from dataclasses import dataclass, field
from typing import Any

from gramfold import arrays, stopwatch
from gramfold.engines.result import ClientResult, Result, Run
from gramfold.engines.workers import Progress, Workers, cpu_count
from gramfold.errors import GramfoldError
from gramfold.evaluation import score_head
from gramfold.federation import Client, Federation, Samples
from gramfold.heads import Head
from gramfold.methods import ClientData, Method
from gramfold.wire import Packet

PHASES = ("features", "local", "aggregate", "personalize", "evaluate")


@dataclass
class _Fold:
    """What one worker has added up in a round."""

    total: Any = None
    uplink: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)


def run_inprocess(
    method: Method, federation: Federation, *, device: str = "cpu", progress: Progress | None = None, keep_heads: bool = True
) -> Result:
    """Run a method over a federation, clients in parallel threads (one after another on an accelerator)."""
    arrays.check_device(device)
    workers = Workers(cpu_count() if device == "cpu" else 1, progress)
    clients = federation.clients
    memories: dict[str, dict[str, Any]] = {}
    uplink: dict[str, int] = {}
    kept: dict[str, Any] = {}

    def load(client: Client) -> ClientData:
        return ClientData(client.name, on_device(client.train(), device), memories.get(client.name, {}))

    broadcast = method.begin(federation.task)
    downlink = broadcast.wire_bytes
    for round_number in range(method.rounds):
        last = round_number == method.rounds - 1
        keep = method.keeps_uploads and last

        def local(fold: _Fold, client: Client, broadcast: Packet = broadcast, keep: bool = keep) -> None:
            with stopwatch.phase("local"):
                data = load(client)
                upload = method.local(data, broadcast)
                if data.memory:
                    memories[client.name] = data.memory
            fold.uplink[client.name] = upload.wire_bytes
            if keep:
                fold.kept[client.name] = upload
            with stopwatch.phase("aggregate"):
                if fold.total is None:
                    fold.total = upload.copy() if keep else upload
                else:
                    fold.total += upload

        folds = workers.each(f"round {round_number + 1}" if method.rounds > 1 else "local", clients, local, _Fold)

        def aggregate(folds: list[_Fold] = folds, broadcast: Packet = broadcast) -> Packet:
            total = folds[0].total
            for fold in folds[1:]:
                if fold.total is not None:
                    total += fold.total
            return method.aggregate(total, broadcast)

        for fold in folds:
            kept |= fold.kept
            for name, size in fold.uplink.items():
                uplink[name] = uplink.get(name, 0) + size
        broadcast = workers.server("aggregate", aggregate)
        if not last:
            downlink += broadcast.wire_bytes

    shared = method.global_head(broadcast)
    shared_bytes = broadcast.wire_bytes if method.rounds else 0

    def personalize(done: dict[str, tuple[Head, ClientResult]], client: Client) -> None:
        data = load(client)
        reply, received = broadcast, shared_bytes
        if method.keeps_uploads:
            with stopwatch.phase("aggregate"):
                reply = method.reply(kept[client.name], broadcast)
                received = reply.wire_bytes
        with stopwatch.phase("personalize"):
            if not data.train.n:
                raise GramfoldError(f"client {client.name!r} has no training samples; leave it out")
            head = method.personalize(data, reply)
        with stopwatch.phase("evaluate"):
            test = on_device(client.test(), device)
            scored = score_head(head, test)
            scored_shared = score_head(shared, test) if shared is not None else None
        result = ClientResult(
            client.name, data.train.n, scored, scored_shared, uplink.get(client.name, 0), downlink + received, head.chosen
        )
        done[client.name] = (head, result) if keep_heads else (None, result)  # type: ignore[assignment]

    finished: dict[str, tuple[Head, ClientResult]] = {}
    for part in workers.each("personalize", clients, personalize, dict):
        finished |= part
    names = [client.name for client in clients]
    return Result(
        method=method.name,
        parameters=method.parameters(),
        rounds=method.rounds,
        clients={name: finished[name][1] for name in names},
        heads={name: finished[name][0] for name in names} if keep_heads else {},
        global_head=shared,
        seconds={phase: workers.seconds.get(phase, 0.0) for phase in PHASES},
        run=Run(method, federation.task, broadcast),
        chosen=broadcast.meta.get("chosen", {}),
    )


def on_device(samples: Samples, device: str) -> Samples:
    """The samples where the work is done."""
    if device == "cpu":
        return samples
    return Samples(arrays.to_device(samples.inputs, device), arrays.to_device(samples.targets, device))
