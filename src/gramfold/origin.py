"""Origin: what turned raw samples into the numbers that a head was made for."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from gramfold.errors import MALFORMED, GramfoldError, OriginError

BACKBONE, TABLE = "backbone", "table"
SERIES = "series"
"""What a backbone takes, as its options say (`kind`)."""


def is_series(values: Any) -> bool:
    """Whether these are series, and not rows of numbers: an array of three dimensions, or a list of arrays of two."""
    if isinstance(values, list | tuple):
        return bool(values) and all(getattr(one, "ndim", 0) == 2 for one in values)
    return getattr(values, "ndim", 0) == 3


_REMEDY = {BACKBONE: "extract with that one", TABLE: "give it the raw rows, which it encodes itself"}


@dataclass(frozen=True)
class Origin:
    """A backbone, or the encoder of a table. Two that have the same fingerprint give the same numbers for the same samples.

    >>> dino = Origin("backbone", "dinov2s", "5f1c", {"pooling": "both"})
    >>> Origin.from_json(dino.to_json()) == dino
    True
    """

    kind: str
    name: str
    """As on the command line."""
    fingerprint: str
    """A hash of weights, preprocessing and pooling, or of the encoder's statistics."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What it takes besides the name to make it again."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.fingerprint[:8]})"

    def __hash__(self) -> int:
        return hash((self.kind, self.fingerprint))

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str, whose: str = "a file") -> "Origin":
        try:
            return cls.from_dict(json.loads(text))
        except (GramfoldError, *MALFORMED) as error:
            raise OriginError(f"{whose} does not say where its features come from: {error}") from None

    @classmethod
    def from_dict(cls, fields: Any) -> "Origin":
        """The origin with these fields, which may come from elsewhere."""
        try:
            made = cls(**fields)
            if made.kind not in (BACKBONE, TABLE) or not isinstance(made.options, Mapping):
                raise ValueError(f"unknown kind {made.kind!r}")
            if not all(isinstance(part, str) for part in (made.name, made.fingerprint)):
                raise ValueError("its name and fingerprint must be text")
        except MALFORMED as error:
            raise OriginError(f"cannot read where features come from: {error}") from None
        return made

    def require(self, other: "Origin | None", whose: str) -> None:
        """Raise where samples are known to come from elsewhere; numbers of unknown origin are taken on trust."""
        if other is not None and other.fingerprint != self.fingerprint:
            raise OriginError(f"{whose} comes from {other}, but this head was made for {self}; {_REMEDY[self.kind]}")


class KnownRows(np.ndarray[Any, Any]):
    """Rows of numbers that know what made them. Whatever is computed from them is plain; rows of them know it still."""

    origin: Origin | None

    def __array_finalize__(self, parent: Any) -> None:
        self.origin = getattr(parent, "origin", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if out is not None:
            options["out"] = tuple(_plain(part) for part in out)
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else _plain(array)


def _plain(values: Any) -> Any:
    return np.asarray(values) if isinstance(values, KnownRows) else values


def known_rows(rows: Any, origin: Origin | None) -> Any:
    """The rows, which know their origin from now on if they are an array in memory and it is known."""
    if origin is None or not isinstance(rows, np.ndarray):
        return rows
    known = rows.view(KnownRows)
    known.origin = origin
    return known
