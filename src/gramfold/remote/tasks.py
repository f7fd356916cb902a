"""The task of a run: as JSON, as agreed on by sites, and the session id that identifies its uploads."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gramfold import wire
from gramfold.errors import OptionError, RemoteError, shortened
from gramfold.federation import Task
from gramfold.methods import Method, spec_of
from gramfold.origin import Origin
from gramfold.remote.raw import folded_origin
from gramfold.sources.targets import TARGETS

UNSAID = ("origin", "targets", "names")
"""Of a task: left out where there is nothing to say."""


def task_to_json(task: Task) -> str:
    """
    >>> task_from_json(task_to_json(Task(2, ("a", "b"), 2, seed=0)))
    Task(inputs=2, labels=('a', 'b'), outputs=2, seed=0, samples=None, shape=(), origin=None)
    """
    return json.dumps({key: value for key, value in asdict(task).items() if key not in UNSAID or value})


def task_from_json(text: str) -> Task:
    try:
        fields = wire.read_json(text)
        labels = None if fields["labels"] is None else tuple(fields["labels"])
        if labels is not None and (len(set(labels)) != len(labels) or not all(isinstance(label, int | str) for label in labels)):
            raise ValueError("labels must be numbers or names, each of them once")
        samples = None if fields.get("samples") is None else int(fields["samples"])
        shape = tuple(int(length) for length in fields.get("shape") or ())
        origin = None if fields.get("origin") is None else Origin.from_dict(fields["origin"])
        targets, names = str(fields.get("targets") or ""), tuple(fields.get("names") or ())
        if targets not in ("", *TARGETS) or not all(isinstance(name, int | str) for name in names):
            raise ValueError("targets are " + ", ".join(TARGETS))
        return Task(
            int(fields["inputs"]), labels, int(fields["outputs"]), int(fields["seed"]), samples, shape, origin, targets, names
        )  # fmt: skip
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise OptionError(f"cannot read the task: {error!r}; write inputs, labels (or null), outputs and seed as JSON") from None


def agreed_task(described: Mapping[str, Mapping[str, Any]], seed: int) -> Task:
    """The common task of sites, from their descriptions by name. Sites that list their classes must list the same ones."""
    names = sorted(described)
    first = described[names[0]]
    for name in names[1:]:
        for key, what in (("inputs", "numbers per sample"), ("shape", "sample shape"), ("outputs", "targets")):
            mine, theirs = first[key], described[name][key]
            free = first["labels"] is not None if key == "outputs" else key == "inputs" and "table" in first
            if mine != theirs and not free:  # tables are as many numbers as their encoder makes of them
                raise RemoteError(f"sites {names[0]!r} and {name!r} differ in their {what}: {mine} and {theirs}; give `task`")
        if (described[name]["labels"] is None) != (first["labels"] is None):
            raise RemoteError(f"sites {names[0]!r} and {name!r} differ: one has classes, the other continuous targets")
    samples = sum(site["samples"] for site in described.values())
    origin, inputs = folded_origin(described)
    if first["labels"] is None:
        labels, outputs = None, first["outputs"]
    else:
        labels = _agreed_labels(described)
        outputs = len(labels)
    return Task(inputs or first["inputs"], labels, outputs, seed, samples, tuple(first["shape"]), origin)


def _agreed_labels(described: Mapping[str, Mapping[str, Any]]) -> tuple[int | str, ...]:
    """The class list that sites declare, or the union of their labels."""
    declaring = sorted(name for name in described if described[name]["declared"])
    labels: tuple[int | str, ...] | None = None
    for name in declaring:
        listed = tuple(described[name]["labels"])
        if labels is not None and listed != labels:
            one, other = (shortened(", ".join(map(str, each))) for each in (labels, listed))
            raise RemoteError(
                f"sites {declaring[0]!r} and {name!r} list different classes: {one} and {other}; make the lists equal "
                "or give `task`"
            )
        labels = listed
    found = {label for site in described.values() for label in site["labels"]}
    if len({type(label) for label in found}) > 1:
        raise RemoteError("sites mix class numbers and class names; use one or the other, or give `task`")
    if labels is None:
        labels = tuple(sorted(found))
    if len(labels) < 2:
        raise RemoteError("only one class in the labels of all sites; classification needs at least two")
    return labels


def session_of(method: Method, task: Task) -> str:
    """Equal for runs that may share folded uploads: the same method, parameters and task."""
    identity = [spec_of(method), dict(method.parameters()), json.loads(task_to_json(task))]
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:32]
