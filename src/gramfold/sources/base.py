"""Source: samples before any backbone has seen them, with their labels and owners where these are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.federation import Dataset
from gramfold.numerics import inputs as check
from gramfold.numerics.arrays import Array
from gramfold.origin import Origin

IMAGES, TEXTS, COLUMNS = "images", "texts", "columns"
TRAINING, TESTING = ("train", "training"), ("test", "testing", "val", "valid", "validation")


@dataclass(frozen=True)
class Columns:
    """Which column of a table is what; None: the first of the usual names that is there.

    `path` names files of images, `text` holds texts; a table with neither is one of numbers and categories, and `only` lists
    those of its columns that are used, by default all that are nothing else.
    """

    label: str | None = None
    client: str | None = None
    path: str | None = None
    text: str | None = None
    split: str | None = None
    only: tuple[str, ...] = ()
    regression: bool = False
    """Labels are continuous values, not classes."""
    labelled: bool = True
    """False: labels, clients and splits are not looked at, as for samples whose class is to be predicted."""


@dataclass(frozen=True)
class Source:
    """`items` are paths or images, texts, or (`kind` "columns") the one table they all are rows of."""

    name: str
    kind: str
    items: Any
    labels: np.ndarray | None = None
    client: np.ndarray | None = None
    train: np.ndarray | None = None
    regression: bool = False
    """Whether labels are continuous values."""
    wanted: tuple[str, ...] = ()
    """Columns that were asked for by name."""

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {self.n} samples of {self.kind})"

    def __post_init__(self) -> None:
        if not self.n:
            raise GramfoldError(f"{self.name} holds no samples")
        if self.labels is not None:
            values = check.values(self.labels, self.n, None, self.name) if self.regression else None
            object.__setattr__(self, "labels", check.labels(self.labels, self.n, self.name) if values is None else values)
        if self.client is not None:
            object.__setattr__(self, "client", check.names(self.client, self.n, "client", self.name))

    @property
    def n(self) -> int:
        return len(next(iter(self.items.values()), ())) if isinstance(self.items, Mapping) else len(self.items)

    def called(self, i: int) -> str:
        """A sample's name for messages."""
        item = None if isinstance(self.items, Mapping) else self.items[i]
        return str(item) if hasattr(item, "__fspath__") else f"sample {i} of {self.name}"

    def dataset(self, rows: Array, origin: Origin | None, kept: np.ndarray | None = None, whole: bool = True) -> Dataset:
        """The samples as numbers: `rows` are their features, those `kept` of them (None: all)."""
        if self.labels is None:
            raise GramfoldError(
                f"{self.name} has no labels; name the column with --label-column, or put images in a folder per class"
            )
        chosen = slice(None) if kept is None else kept
        targets, labels = (self.labels[chosen], None) if self.regression else check.encode(self.labels[chosen])
        train = None if self.train is None else self.train[chosen]
        if train is not None and (train.all() or not train.any()):
            train = None
        client = None if self.client is None else self.client[chosen]
        return Dataset(self.name, rows, targets, labels, train, client, whole, origin)


def split_of(words: Sequence[Any], whose: str) -> np.ndarray:
    """True for training samples, from a column or folder of words (train, test, ...), or of truth values."""
    found = [str(word).strip().lower() for word in words]
    known = {**dict.fromkeys((*TRAINING, "true", "1"), True), **dict.fromkeys((*TESTING, "false", "0"), False)}
    wrong = next((word for word in found if word not in known), None)
    if wrong is not None:
        raise GramfoldError(f"{whose}: the split of a sample is train or test, found {wrong!r}")
    return np.array([known[word] for word in found], dtype=bool)
