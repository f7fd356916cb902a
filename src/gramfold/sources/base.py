"""Source: samples before any backbone has seen them, with their labels and owners where these are known."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramfold.errors import ColumnsError, LabelsError, SamplesError
from gramfold.numerics import inputs as check
from gramfold.sources.targets import COUNTS, SEVERAL, read_counts, read_several

IMAGES, TEXTS, COLUMNS, NUMBERS = "images", "texts", "columns", "numbers"
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
    block: str | None = None
    only: tuple[str, ...] = ()
    regression: bool = False
    """Labels are continuous values, not classes."""
    several: bool = False
    """This is one of several tables: of `only` it may lack what another has."""
    targets: str | None = None
    """What labels are: one of `targets.TARGETS`; None: classes, or what they look like."""
    names: tuple[int | str, ...] = ()
    """All classes, in their order where they have one; or all labels of which a sample may have several."""
    labelled: bool = True
    """False: labels, clients and splits are not looked at, as for samples whose class is to be predicted."""

    @classmethod
    def of(cls, columns: "Sequence[str] | Columns | None" = None, **named: Any) -> "Columns":
        """From the arguments of functions, which are called as on the command line: `label_column`, `client_column`, ..., and
        `columns`, those to use. What used to be given in their place, all in one, is taken for another release."""
        if isinstance(columns, Columns):
            warnings.warn(
                "columns=gf.Columns(label=..., client=...) is going: write label_column=..., client_column=..., and "
                "columns=[...] for those to use",
                FutureWarning,
                stacklevel=3,
            )
            return columns
        if isinstance(columns, str):
            raise ColumnsError(f"columns= lists those to use; for {columns!r} alone write columns=[{columns!r}]")
        listed = next(
            (name for name, column in named.items() if name.endswith("_column") and isinstance(column, list | tuple)), None
        )
        if listed is not None:
            written = ",".join(map(str, named[listed]))
            raise ColumnsError(f"{listed}= is one text; of several columns of labels write label_column={written!r}")
        roles = {name.removesuffix("_column"): column for name, column in named.items()}
        return cls(**roles, only=tuple(columns or ()))


@dataclass(frozen=True)
class Source:
    """`items` are paths or images, texts, an array of "numbers", or (`kind` "columns") the one table they all are rows of."""

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

    block: np.ndarray | None = None
    """What each sample is part of, such as a recording."""
    starts: Mapping[str, int] | None = None
    """Where several files lie one behind the other: each one's first sample, by its name."""
    targets: str = ""
    """What labels are where they are more than a class or a value."""
    names: tuple[int | str, ...] = ()
    """All classes in their order, or all labels of which a sample may have several."""

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {self.n} samples of {self.kind})"

    def __post_init__(self) -> None:
        if not self.n:
            raise SamplesError(f"{self.name} holds no samples; leave it out")
        if self.labels is not None:
            object.__setattr__(self, "labels", self._checked(self.labels))
        if self.client is not None:
            object.__setattr__(self, "client", check.names(self.client, self.n, "client", self.name))

    def _checked(self, labels: np.ndarray) -> np.ndarray:
        if self.regression:
            return check.values(labels, self.n, None, self.name)
        if self.targets == SEVERAL:
            return read_several(labels, self.n, self.name, self.names)
        return read_counts(labels, self.n, self.name) if self.targets == COUNTS else check.labels(labels, self.n, self.name)

    @property
    def n(self) -> int:
        if isinstance(self.items, Mapping):
            return len(next(iter(self.items.values()), ()))
        return int(self.items.shape[0]) if hasattr(self.items, "shape") else len(self.items)

    def known_labels(self) -> np.ndarray:
        """The labels; raises where there are none."""
        if self.labels is None:
            columns = f"; its columns: {', '.join(list(self.items)[:12])}" if isinstance(self.items, Mapping) else ""
            raise LabelsError(
                f"{self.name} has no labels; name the column with --label-column (in Python label_column=), or put images in a "
                f"folder per class{columns}"
            )
        return self.labels

    def called(self, i: int) -> str:
        """A sample's name for messages."""
        item = self.items[i] if isinstance(self.items, list) else None
        if hasattr(item, "__fspath__"):
            return str(item)
        whose, first = max(((name, start) for name, start in (self.starts or {self.name: 0}).items() if start <= i), key=_second)
        return f"sample {i - first} of {whose}"


def _second(pair: tuple[str, int]) -> int:
    return pair[1]


def split_of(words: Sequence[Any], whose: str) -> np.ndarray:
    """True for training samples, from a column or folder of words (train, test, ...), or of truth values."""
    found = [str(word).strip().lower() for word in words]
    known = {**dict.fromkeys((*TRAINING, "true", "1"), True), **dict.fromkeys((*TESTING, "false", "0"), False)}
    wrong = next((word for word in found if word not in known), None)
    if wrong is not None:
        raise SamplesError(f"{whose}: the split of a sample is train or test, found {wrong!r}")
    return np.array([known[word] for word in found], dtype=bool)
