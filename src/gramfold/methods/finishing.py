"""A head as its client gets it: it knows what makes its inputs, how sure it may be, and what training samples look like."""

from dataclasses import replace
from typing import Any

from gramfold.federation import Task
from gramfold.heads import Head, Novelty, unforeseen_after
from gramfold.heads.novelty import REFERENCE, directions, root_of
from gramfold.methods.protocol import ClientData, Method
from gramfold.numerics import arrays


def finished(head: Head, method: Method, client: ClientData, broadcast: Any, task: Task, kept: bool = True) -> Head:
    """A client's own head. `kept`: whether it is for more than being scored."""
    head = _with_floor(head, client.train.n if method.rounds == 0 else max(task.samples or 0, client.train.n))
    return replace(head.with_origin(task.origin), familiar=_novelty(head, method, client, broadcast)) if kept else head


def shared_head(method: Method, broadcast: Any, task: Task) -> Head | None:
    """The head of all clients, where there is one."""
    head = method.global_head(broadcast)
    return None if head is None else _with_floor(head, task.samples or 0).with_origin(task.origin)


def _with_floor(head: Head, samples: int) -> Head:
    return replace(head, unforeseen=unforeseen_after(samples)) if head.probabilistic and samples else head


def _novelty(head: Head, method: Method, client: ClientData, broadcast: Any) -> Novelty | None:
    """By the factor of all clients' samples where the broadcast has it, else by the client's own samples."""
    if not head.streams:
        return None
    map = head.streams[0].map
    inputs = client.train.inputs
    rows = map(inputs[:: -(-inputs.shape[0] // REFERENCE)])  # evenly, whatever they are sorted by
    root = getattr(broadcast, "pooled_root", None)
    pooled = None if root is None else root(arrays.like(directions(map.dim), rows))
    if pooled is not None:
        return Novelty.of(pooled, rows, client.contributed)
    return Novelty.of(root_of(rows), rows, True)
