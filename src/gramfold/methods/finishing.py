"""A head as its client gets it: it knows what makes its inputs, how sure it may be, and what training samples look like."""

import threading
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


def finished(
    head: Head,
    method: Method,
    client: ClientData,
    broadcast: Any,
    task: Task,
    kept: bool = True,
    root: SharedRoot | None = None,
) -> Head:
    """A client's own head. `kept`: whether it is for more than being scored; `root`: what the heads of a run have in common."""
    head = _in_order(head, task)
    head = _with_floor(head, client.train.n if method.rounds == 0 else max(task.samples or 0, client.train.n))
    if not kept:
        return head
    return replace(head.with_origin(task.origin), familiar=_novelty(head, client, broadcast, root or SharedRoot()))


def shared_head(method: Method, broadcast: Any, task: Task) -> Head | None:
    """The head of all clients, where there is one."""
    head = method.global_head(broadcast)
    return None if head is None else _with_floor(_in_order(head, task), task.samples or 0).with_origin(task.origin)


def _in_order(head: Head, task: Task) -> Head:
    """The head, which knows that its classes have an order where they have one."""
    return replace(head, ordered=True) if task.targets == ORDERED else head


def _with_floor(head: Head, samples: int) -> Head:
    return replace(head, unforeseen=unforeseen_after(samples)) if head.probabilistic and samples else head


def _novelty(head: Head, client: ClientData, broadcast: Any, root: SharedRoot) -> Novelty | None:
    """By the factor of all clients' samples where the broadcast has it, else by the client's own samples."""
    if not head.streams:
        return None
    map = head.streams[0].map
    inputs = client.train.inputs
    rows = map(inputs[:: -(-inputs.shape[0] // REFERENCE)])  # evenly, whatever they are sorted by
    pooled = root.of(broadcast, map.dim, rows)
    if pooled is not None:
        return Novelty.of(pooled, rows, client.contributed)
    return Novelty.of(root_of(rows), rows, True)
