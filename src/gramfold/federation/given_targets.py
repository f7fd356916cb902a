"""What the targets of clients are that are given as arrays: as said, or as all of them look."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold.errors import LabelsError
from gramfold.federation.given import ClientSource, load_source
from gramfold.numerics import inputs as check
from gramfold.sources.reading import is_frame
from gramfold.sources.targets import (
    CLASSES,
    COUNTS,
    NO_ORDER,
    ORDERED,
    SEVERAL,
    VALUES,
    Labels,
    kind_of,
    names_of,
    order_of,
    refuse_survival,
)

Known = tuple[Labels | None, int, str, Labels]
"""The classes (None: there are none), how many targets, their kind, and what several labels are called."""


@dataclass(frozen=True)
class Said:
    """`kind`, one of `sources.targets`, and `labels`: all classes or labels, where somebody lists them."""

    kind: str
    labels: Labels | None

    def known(self, sources: Mapping[str, ClientSource], y: Any) -> Known:
        """What the task says; clients are loaded to learn their classes where nobody lists them. `y`: the first client's."""
        if self.kind == VALUES:
            return None, int(np.prod(np.shape(y)[1:], dtype=np.int64)), "", ()
        if self.kind == COUNTS:
            return None, 1, COUNTS, ()
        if self.kind == SEVERAL:
            names = self.labels if self.labels is not None else _labels_in(sources, _of_sets)
            return None, len(names), SEVERAL, names
        known = self.labels if self.labels is not None else _labels_in(sources, _of_classes)
        if self.kind == ORDERED and self.labels is None and isinstance(known[0], str):
            raise LabelsError(NO_ORDER)
        if len(known) < 2:
            raise LabelsError("only one class in the labels; classification needs at least two")
        return known, len(known), ORDERED if self.kind == ORDERED else "", ()


def said_targets(clients: Mapping[str, Any], kind: str | None, labels: Sequence[int | str] | None, regression: bool) -> Said:
    """What is said of the targets, or shows in how they were given: an ordered categorical, rows of 0 and 1, lists of labels."""
    known = None if labels is None else tuple(labels)
    ys = {name: source[1] for name, source in clients.items() if isinstance(source, tuple | list) and len(source) in (2, 4)}
    for name, y in ys.items():
        refuse_survival(y, f"client {name!r}")
    kinds = {name: kind_of(y, kind, regression) for name, y in ys.items()}
    found = kind_of((), kind, regression) if not kinds else next((k for k in kinds.values() if k != CLASSES), CLASSES)
    if found == ORDERED and known is None:
        known = _one_order({name: order_of(y) for name, y in ys.items()})
    if found == SEVERAL and known is None:
        known = next((names_of(y, name) for name, y in ys.items() if is_frame(y)), None)
    return Said(found, known)


def _one_order(orders: Mapping[str, Labels | None]) -> Labels | None:
    """The order of the classes, which all clients give alike; None where none gives any."""
    given = {name: order for name, order in orders.items() if order is not None}
    if not given:
        return None
    if len(given) < len(orders):
        raise LabelsError(NO_ORDER)
    name, order = next(iter(given.items()))
    other = next((one for one, its in given.items() if its != order), None)
    if other is not None:
        raise LabelsError(f"clients {name!r} and {other!r} order their classes differently: {order} and {given[other]}")
    return order


def _labels_in(sources: Mapping[str, ClientSource], of: Any) -> Labels:
    found: set[Any] = set()
    for name, source in sources.items():
        for y in load_source(str(name), source)[1::2]:
            found.update(of(y, f"client {name!r}"))
    if len({type(label) for label in found}) > 1:
        raise LabelsError("clients mix class numbers and class names; use one or the other")
    return tuple(sorted(found))


def _of_classes(y: Any, whose: str) -> Labels:
    return check.encode(check.labels(y, len(y), whose))[1]


_of_sets = names_of
