"""The heads of a batch of clients, as they are kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramfold.errors import OptionError
from gramfold.federation import Samples, Task
from gramfold.federation.streams import ClientBatch
from gramfold.heads import Head
from gramfold.heads.records import HeadRecord, InCommon
from gramfold.methods import ClientData, Method
from gramfold.methods.finishing import SharedRoot, all_finished
from gramfold.results.shards import Kept, in_common
from gramfold.wire.record import Record


@dataclass
class Personal:
    """What it takes to make clients' heads: `memory` is what every client remembers."""

    method: Method
    task: Task
    broadcast: Record
    memory: dict[str, Any]
    root: SharedRoot = field(default_factory=SharedRoot)

    def __post_init__(self) -> None:
        self.common: InCommon = in_common(self.broadcast, self.root)

    def kept(self, batch: ClientBatch) -> list[Kept]:
        clients = clients_of(batch, self.memory, contributed=self.method.rounds > 0)
        made, sent = self.method.small_heads(clients, self.broadcast), [self.broadcast] * len(clients)
        heads = all_finished(made, self.method, clients, sent, self.task, root=self.root)
        return [
            self._one(client, head, batch.samples(k, testing=True))
            for k, (client, head) in enumerate(zip(clients, heads, strict=True))
        ]

    def _one(self, client: ClientData, head: Head, test: Samples) -> Kept:
        if head.familiar is not None and head.familiar.root is not self.root.kept(self.broadcast):
            head = replace(head, familiar=None)  # a root of its own would be more than all the rest
        record = self.common.written(replace(head, origin=None))
        if not test.n:
            return Kept(client.name, record, client.train.n)
        return Kept(client.name, record, client.train.n, test.n, self._score(record, test))

    def _score(self, record: HeadRecord, test: Samples) -> float:
        """Of what is on disk: accuracy, or root mean square error."""
        scores = self.common.read(record, lambda weights: self.method.weights_of(weights, self.broadcast)).forward(test.inputs)
        if self.task.labels is not None:
            return float((scores.argmax(1) == test.targets).mean())
        return float(np.sqrt(((scores - test.targets) ** 2).sum(1).mean()))


def clients_of(batch: ClientBatch, memory: dict[str, Any], contributed: bool = False) -> list[ClientData]:
    """The clients of a batch as methods see them."""
    return [
        ClientData(name, batch.samples(k, testing=False), dict(memory), contributed) for k, name in enumerate(batch.names)
    ]  # fmt: skip


def remembered(clients: Sequence[ClientData], before: dict[str, Any], method: str) -> dict[str, Any]:
    """What all clients remember after a round: the same, or their memories would be as large as their data."""
    for client in clients:
        kept = client.memory
        if kept.keys() != clients[0].memory.keys() or any(not np.array_equal(kept[key], clients[0].memory[key]) for key in kept):
            raise OptionError(f"{method} has each client remember something else between rounds; use gf.run, or another method")
    return {**before, **clients[0].memory}
