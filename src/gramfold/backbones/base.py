"""What a backbone is: it prepares samples one by one and extracts their features a batch at a time."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import BackboneError, FileError, SamplesError
from gramfold.origin import BACKBONE, KnownRows, Origin, known_rows

IMAGES, TEXTS = "images", "texts"
BATCH = 32


class UnreadableSampleError(SamplesError):
    """A sample that cannot be decoded; whoever knows its name says it."""

    code = "data.unreadable"


class Backbone(ABC):
    """A frozen network with its own preprocessing. `prepare` may be called in many threads, `extract` in one.

    Subclasses set `name`, `pooling` and `fingerprint` (of weights, preprocessing and pooling).
    """

    kind: str
    """What it takes: images, texts or series."""
    name: str
    pooling: str
    fingerprint: str
    batch: ClassVar[int] = BATCH

    @property
    def origin(self) -> Origin:
        return Origin(BACKBONE, self.name, self.fingerprint, {"pooling": self.pooling, "kind": self.kind})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.kind}, pooling {self.pooling})"

    @abstractmethod
    def prepare(self, sample: Any) -> Any:
        """A sample as `extract` wants it: decoded, scaled, normalised."""

    @abstractmethod
    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        """float32 features, one row for each prepared sample."""

    def __call__(self, samples: Iterable[Any]) -> KnownRows:
        """float32 features of some samples, which know what made them."""
        prepared = [self.prepare(sample) for sample in samples]
        parts = [self.extract(prepared[i : i + self.batch]) for i in range(0, len(prepared), self.batch)]
        if not parts:
            raise BackboneError("no samples to extract features of")
        rows: KnownRows = known_rows(np.concatenate(parts), self.origin)
        return rows


def fingerprint(described: Any, weights: Iterable[bytes | memoryview]) -> str:
    """A hash of a description and of weights."""
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=str).encode())
    for piece in weights:
        digest.update(piece)
    return digest.hexdigest()[:16]


def file_pieces(path: Path) -> Iterable[bytes]:
    """A file, a few megabytes at a time."""
    try:
        with path.open("rb") as file:
            while piece := file.read(1 << 22):
                yield piece
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from None


def finished(rows: Any, expected: int, name: str) -> np.ndarray:
    """What a model gave, as float32 rows; raises unless it is one row of finite numbers for each sample."""
    found = np.asarray(rows, dtype=np.float32)
    if found.ndim != 2 or len(found) != expected:
        raise BackboneError(f"backbone {name} gave an array of shape {found.shape} for {expected} samples; it must be n x d")
    if not np.isfinite(found).all():
        raise BackboneError(f"backbone {name} gave NaN or infinite features")
    return found
