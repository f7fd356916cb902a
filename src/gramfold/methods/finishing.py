"""A head as its client gets it: it knows what makes its inputs, how sure it may be, and what training samples look like."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gramfold.federation import Task
from gramfold.heads import Head, Novelty, unforeseen_after
from gramfold.heads.novelty import REFERENCE, Root, directions, root_of
from gramfold.methods.protocol import ClientData, Method
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.sources.targets import ORDERED


class SharedRoot:
    """What novelty is told by where a broadcast has the factor of all clients' samples: solved once for all clients that are
    sent the same."""

    def __init__(self) -> None:
        self._found: tuple[Any, Root | None] | None = None
        self._lock = threading.Lock()

    def of(self, broadcast: Any, dim: int, like: Array) -> Root | None:
        """Of features in a space of so many dimensions; None where the broadcast has no factor."""
        ask = getattr(broadcast, "pooled_root", None)
        if ask is None:
            return None
        with self._lock:
            if self._found is None or self._found[0] is not broadcast:
                along = ask(arrays.like(directions(dim), like))
                self._found = broadcast, None if along is None else Root(along)
            return self._found[1]

    def kept(self, broadcast: Any) -> Array | None:
        """The root as heads in the broadcast's space have it."""
        root = self.of(broadcast, broadcast.space.map.dim, np.zeros(0)) if hasattr(broadcast, "pooled_root") else None
        return None if root is None else root.kept


def finished(head: Head, method: Method, client: ClientData, broadcast: Any, task: Task, root: SharedRoot | None = None) -> Head:
    """A client's own head, from what it was sent."""
    return all_finished([head], method, [client], [broadcast], task, root=root)[0]


def all_finished(
    heads: Sequence[Head],
    method: Method,
    clients: Sequence[ClientData],
    broadcasts: Sequence[Any],
    task: Task,
    kept: bool = True,
    root: SharedRoot | None = None,
) -> list[Head]:
    """The heads of several clients. `kept`: whether they are for more than being scored; `root`: what the heads of a run have in
    common."""
    made = []
    for head, client in zip(heads, clients, strict=True):
        samples = client.train.n if method.rounds == 0 else max(task.samples or 0, client.train.n)
        made.append(_with_floor(_in_order(head, task), samples))
    if not kept:
        return made
    familiar = _novelties(made, clients, broadcasts, root or SharedRoot())
    return [replace(head.with_origin(task.origin), familiar=each) for head, each in zip(made, familiar, strict=True)]


def shared_head(method: Method, broadcast: Any, task: Task) -> Head | None:
    """The head of all clients, where there is one."""
    head = method.global_head(broadcast)
    return None if head is None else _with_floor(_in_order(head, task), task.samples or 0).with_origin(task.origin)


def _in_order(head: Head, task: Task) -> Head:
    """The head, which knows that its classes have an order where they have one."""
    return replace(head, ordered=True) if task.targets == ORDERED else head


def _with_floor(head: Head, samples: int) -> Head:
    return replace(head, unforeseen=unforeseen_after(samples)) if head.probabilistic and samples else head


def _novelties(
    heads: Sequence[Head], clients: Sequence[ClientData], broadcasts: Sequence[Any], root: SharedRoot
) -> list[Novelty | None]:
    """What is usual at each client: at once where all have the same map and were sent the same."""
    first = heads[0].streams[0].map if heads[0].streams else None
    alike = all(head.streams and head.streams[0].map is first for head in heads) and all(b is broadcasts[0] for b in broadcasts)
    if first is None or not alike:
        return [_novelty(*each, root) for each in zip(heads, clients, broadcasts, strict=True)]
    samples = [_reference(client) for client in clients]
    rows = first(arrays.concatenate(samples))
    parts = np.split(np.arange(len(rows)), np.cumsum([part.shape[0] for part in samples])[:-1])
    pooled = root.of(broadcasts[0], first.dim, rows)
    if pooled is None:
        return [Novelty.of(root_of(own), own, True) for own in (rows[part[0] : part[-1] + 1] for part in parts)]
    leverages = pooled.leverages(rows)
    return [Novelty.of_leverages(pooled, leverages[part], c.contributed) for part, c in zip(parts, clients, strict=True)]


def _novelty(head: Head, client: ClientData, broadcast: Any, root: SharedRoot) -> Novelty | None:
    return _novelties([head], [client], [broadcast], root)[0] if head.streams else None


def _reference(client: ClientData) -> Array:
    """Some of its samples, evenly, whatever they are sorted by."""
    inputs = client.train.inputs
    return inputs[:: -(-inputs.shape[0] // REFERENCE)]
