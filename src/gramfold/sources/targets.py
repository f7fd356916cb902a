"""What a sample's target is: a class, a value, one of several ordered classes, any number of labels, or a count.

    classes     one of several; `labels` names them                                the default
    ordered     one of several that have an order, the least first                 an ordered categorical, or labels= in order
    labels      any number of several                                              rows of 0 and 1, or lists of labels
    counts      a whole number from 0 up                                           targets="counts"
    values      numbers                                                            regression=True

Classes are told by their codes; several labels by a row of 0 and 1 for each sample; counts and values by numbers.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gramfold.errors import LabelsError
from gramfold.numerics import arrays
from gramfold.numerics import inputs as check
from gramfold.sources.reading import is_frame

CLASSES, VALUES, SEVERAL, ORDERED, COUNTS = "classes", "values", "labels", "ordered", "counts"
TARGETS = (CLASSES, VALUES, SEVERAL, ORDERED, COUNTS)
SURVIVAL = (
    "survival times (an event and a time) are not served yet; predict whether the event comes within a given time, as two "
    "classes, from the samples that were followed for that long"
)
NO_ORDER = (
    "ordered classes that are words need their order: labels=['low', 'mid', 'high'] (--labels low,mid,high), or an ordered "
    "categorical of pandas"
)
Labels = tuple[int | str, ...]


class Targets(NamedTuple):
    """Targets as methods see them."""

    values: np.ndarray
    """Class codes (n); else numbers (n x outputs)."""
    labels: Labels | None
    """The classes; None for anything else."""
    kind: str = ""
    """As in `Task.targets`: empty for classes and values."""
    names: Labels = ()
    """Of several labels: what they are called."""


def kind_of(y: Any, kind: str | None = None, regression: bool = False) -> str:
    """What targets are: as said, or as they look."""
    if kind == "survival":
        raise LabelsError(SURVIVAL)
    if kind is not None and kind not in TARGETS:
        raise LabelsError(f"targets is one of {', '.join(TARGETS)}, not {kind!r}")
    if regression and kind not in (None, VALUES):
        raise LabelsError(f"regression=True predicts values, and targets={kind!r} says something else; leave one out")
    if kind is not None or regression:
        return kind or VALUES
    if order_of(y) is not None:
        return ORDERED
    return SEVERAL if _are_sets(y) or _are_rows(y) else CLASSES


def read_targets(
    y: Any, n: int, whose: str, kind: str | None = None, labels: Sequence[int | str] | None = None, regression: bool = False
) -> Targets:
    """Targets of n samples. `labels`: all classes, in their order where they have one; or all labels of which a sample may have
    several.

    >>> read_targets([["rock", "loud"], [], ["loud"]], 3, "songs").names
    ('loud', 'rock')
    >>> read_targets(["mid", "low", "high"], 3, "doses", "ordered", ["low", "mid", "high"]).values.tolist()
    [1, 0, 2]
    """
    refuse_survival(y, whose)
    kind = kind_of(y, kind, regression)
    if kind == SEVERAL:
        names = tuple(labels) if labels is not None else names_of(y, whose)
        return Targets(read_several(y, n, whose, names), None, SEVERAL, names)
    if kind == COUNTS:
        return Targets(read_counts(y, n, whose), None, COUNTS)
    if kind == VALUES:
        return Targets(check.values(y, n, None, whose), None)
    order = tuple(labels) if labels is not None else order_of(y)
    found = check.labels(y, n, whose)
    if kind == ORDERED and order is None:
        if found.dtype.kind == "U":
            raise LabelsError(f"{whose}: {NO_ORDER}")
        return Targets(*check.encode(found), ORDERED)
    if order is None:
        return Targets(*check.encode(found))
    return Targets(codes_among(found, order, whose), order, ORDERED if kind == ORDERED else "")


def codes_among(found: np.ndarray, order: Labels, whose: str) -> np.ndarray:
    """The place of each label among all."""
    places, listed = {label: place for place, label in enumerate(order)}, found.tolist()
    unknown = next((i for i, label in enumerate(listed) if label not in places), None)
    if unknown is not None:
        raise LabelsError(f"{whose} has label {listed[unknown]!r} (sample {unknown}), which is not among labels={list(order)}")
    return np.array([places[label] for label in listed], dtype=np.int64)


def order_of(y: Any) -> Labels | None:
    """The classes of an ordered categorical of pandas, the least first; None for anything else."""
    dtype = getattr(y, "dtype", None)
    if dtype is None or not getattr(dtype, "ordered", False):
        return None
    return tuple(label.item() if isinstance(label, np.generic) else label for label in dtype.categories)


def names_of(y: Any, whose: str) -> Labels:
    """What the labels are called of which a sample may have several: a frame's columns, what sets hold, or numbers."""
    if is_frame(y):
        return tuple(map(str, y.columns))
    if not _are_sets(y):
        found = np.asarray(arrays.to_numpy(y))
        return tuple(range(found.shape[1] if found.ndim == 2 else 1))
    held = {_plain(label) for labels in y for label in labels}
    if len({type(label) for label in held}) > 1:
        raise LabelsError(f"{whose} mixes label numbers and label names; use one or the other")
    return tuple(sorted(held))


def read_several(y: Any, n: int, whose: str, names: Labels) -> np.ndarray:
    """n rows of 0 and 1, a column for each label, of such rows or of lists of labels."""
    if _are_sets(y):
        if len(y) != n:
            raise LabelsError(f"{whose} has {n} samples but {len(y)} lists of labels")
        places, found = {name: place for place, name in enumerate(names)}, np.zeros((n, len(names)))
        for i, labels in enumerate(y):
            for label in map(_plain, labels):
                if label not in places:
                    raise LabelsError(
                        f"{whose} has label {label!r} (sample {i}), which is not among {', '.join(map(str, names))}"
                    )
                found[i, places[label]] = 1.0
        return found
    found = check.values(y.to_numpy() if is_frame(y) else y, n, None, whose)
    if found.shape[1] != len(names):
        raise LabelsError(
            f"{whose} has {found.shape[1]} columns of labels, and names for {len(names)}; several labels are columns of 0 and 1, "
            "in a table --label-column a,b,c"
        )
    wrong = np.argwhere((found != 0) & (found != 1))
    if len(wrong):
        i, j = wrong[0]
        raise LabelsError(f"{whose}: sample {i} has {found[i, j]:g} for label {names[j]!r}; several labels are rows of 0 and 1")
    return found


def read_counts(y: Any, n: int, whose: str) -> np.ndarray:
    """n x 1 whole numbers from 0 up."""
    found = check.values(y, n, 1, whose)
    wrong = np.flatnonzero((found[:, 0] < 0) | (found[:, 0] != np.rint(found[:, 0])))
    if len(wrong):
        raise LabelsError(
            f"{whose}: counts are whole numbers from 0 up, and sample {wrong[0]} has {found[wrong[0], 0]:g}; for others use "
            "regression=True"
        )
    return found


def refuse_survival(y: Any, whose: str) -> None:
    """Raise for events and their times: a structured array, or a frame of two such columns."""
    titles = getattr(getattr(y, "dtype", None), "names", None) or (list(y.columns) if is_frame(y) else ())
    refuse_survival_names(titles, whose, structured=not is_frame(y))


def refuse_survival_names(titles: Iterable[Any], whose: str, structured: bool = False) -> None:
    """The same by the names of what was given as labels."""
    words = [str(title).lower() for title in titles]
    timed = any("time" in word for word in words) and any(word in ("event", "status", "death", "died") for word in words)
    if words and (structured or (len(words) == 2 and timed)):
        raise LabelsError(f"{whose}: {SURVIVAL}")


def listed(y: Any) -> Any:
    """Targets as an array: of lists of labels one of tuples, since a list of them need be no table."""
    if arrays.is_torch(y):
        return y
    if _are_sets(y):
        found = np.empty(len(y), dtype=object)
        found[:] = [tuple(map(_plain, labels)) for labels in y]
        return found
    return np.asarray(y)


def _are_sets(y: Any) -> bool:
    """Whether every sample has a set, or a list, of labels."""
    if isinstance(y, np.ndarray) and y.dtype != object:
        return False
    if not isinstance(y, Sequence | np.ndarray) or isinstance(y, str) or not len(y):
        return False
    if not all(isinstance(one, set | frozenset | list | tuple) for one in y):
        return False
    held = [label for one in y for label in one]
    rows = len({len(one) for one in y}) == 1 and not any(isinstance(one, set | frozenset) for one in y)
    return not (rows and held and all(isinstance(label, int | float | np.number) for label in held))


def _are_rows(y: Any) -> bool:
    """Whether it is rows of 0 and 1 of which some hold none or several: where each holds exactly one, they name a class."""
    if isinstance(y, Sequence) and len(y) and not isinstance(y[0], list | tuple):
        return False
    found = np.asarray(arrays.to_numpy(y)) if not is_frame(y) else y.to_numpy()
    if found.ndim != 2 or found.shape[1] < 2 or found.dtype.kind not in "iubf":
        return False
    return bool(np.isin(found, (0, 1)).all() and (found.sum(1) != 1).any())


def _plain(label: Any) -> int | str:
    found: int | str = label.item() if isinstance(label, np.generic) else label
    return found
