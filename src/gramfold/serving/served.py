"""A head that answers: from features, from an uploaded image, from a text or a table's row."""

import io
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gramfold.backbones import IMAGES, TEXTS, Backbone, reopen
from gramfold.errors import GramfoldError, ServingError
from gramfold.heads import Head
from gramfold.imports import require
from gramfold.numerics.arrays import to_numpy
from gramfold.origin import BACKBONE, TABLE, Origin
from gramfold.sources import TableEncoder, encoded_with_remark

MOST_SAMPLES = 10_000
"""Samples of one question."""
MOST_PARTS, DEEPEST = 2_000_000, 64
"""Numbers and words of one question, and lists within lists: JSON takes twenty times its length in memory."""
MOST_PIXELS = 40_000_000
"""Of one image: a file of some kilobytes can hold any number."""
AT_ONCE = 2**22
"""Features of samples that are mapped together."""


class Served:
    """One head by its name. Its backbone is opened once, when it is first needed, and shared with other heads of that origin."""

    def __init__(self, name: str, head: Head, backbones: "Backbones") -> None:
        self.name, self.head, self._backbones = name, head, backbones

    def about(self) -> dict[str, Any]:
        """What a client of this head must know."""
        origin = self.head.origin
        return {
            "name": self.name,
            "method": self.head.method,
            "inputs": list(self.head.shape),
            "labels": None if self.head.labels is None else list(self.head.labels),
            "probabilities": self.head.probabilistic,
            "novelty": self.head.familiar is not None,
            "takes": self.takes,
            "origin": None if origin is None else {"name": origin.name, "fingerprint": origin.fingerprint},
        }

    @property
    def takes(self) -> list[str]:
        """The keys that a question may have."""
        origin = self.head.origin
        if origin is None:
            return ["features"]
        if origin.kind == TABLE:
            return ["features", "rows"]
        return ["features", "image" if origin.options.get("kind") == IMAGES else "texts"]

    def answer(self, question: Mapping[str, Any], novelty: bool = False) -> dict[str, Any]:
        """Predictions for `features` (rows of numbers), `rows` (of a table, by column) or `texts`; and a remark where a table's
        rows lack columns, or have words that the head does not know."""
        given = [key for key in ("features", "rows", "texts") if key in question]
        if len(given) != 1 or given[0] not in self.takes:
            raise ServingError(f"{self.name} takes one of: {', '.join(self.takes)}")
        origin = question.get("origin")
        if origin is not None and self.head.origin is not None:
            self.head.origin.require(Origin(BACKBONE, "these features", str(origin)), "the question")
        values = question[given[0]]
        if not isinstance(values, list) or not values or len(values) > MOST_SAMPLES:
            raise ServingError(f"`{given[0]}` must be a list of 1 to {MOST_SAMPLES} samples")
        if given[0] == "features":
            return {"predictions": self._predicted(np.asarray(values, dtype=np.float64) if _even(values) else values, novelty)}
        if given[0] == "texts":
            return {"predictions": self._predicted(self._extracted(TEXTS, values), novelty)}
        encoded, remark = self._encoded(values)
        return {"predictions": self._predicted(encoded, novelty), **({"remark": remark} if remark else {})}

    def see(self, image: bytes, novelty: bool = False) -> dict[str, Any]:
        """The prediction for an image's file."""
        if "image" not in self.takes:
            raise ServingError(f"{self.name} takes {', '.join(self.takes)}, no image")
        try:
            check_pixels(image)
            return {"predictions": self._predicted(self._extracted(IMAGES, [image]), novelty)}
        except GramfoldError as error:
            raise ServingError(f"the image {error}" if str(error).startswith("cannot be read") else str(error)) from None

    def _extracted(self, kind: str, samples: list[Any]) -> np.ndarray:
        assert self.head.origin is not None
        backbone = self._backbones.of(self.head.origin)
        if backbone.kind != kind:
            raise ServingError(f"{self.name} takes {backbone.kind}, not {kind}")
        with self._backbones.lock:
            return backbone(samples)

    def _encoded(self, rows: list[Any]) -> tuple[np.ndarray, str]:
        assert self.head.origin is not None
        if not all(isinstance(row, Mapping) for row in rows):
            names = TableEncoder.reopen(self.head.origin).names
            raise ServingError(f"`rows` must be objects with the columns {', '.join(names)}")
        return encoded_with_remark(self.head.origin, rows, "the question")

    def _predicted(self, rows: Any, novelty: bool) -> list[dict[str, Any]]:
        answers = self._told(rows)
        if novelty:
            for answer, share in zip(answers, self._in_parts(rows, self.head.novelty).tolist(), strict=True):
                answer["novelty"] = share
        return answers

    def _told(self, rows: Any) -> list[dict[str, Any]]:
        head = self.head
        try:
            scores = self._in_parts(rows, self.head.scores)
        except (OverflowError, RecursionError):
            raise ServingError("the samples hold a number that is none, such as one of 400 digits") from None
        if head.labels is None:
            return [{"values": values} for values in scores.tolist()]
        best = scores.argmax(1)
        answers: list[dict[str, Any]] = [{"class": head.labels[code]} for code in best]
        if head.probabilistic:
            names = [str(label) for label in head.labels]
            for answer, shares, code in zip(answers, head.probabilities(scores).tolist(), best, strict=True):
                answer["probability"] = shares[code]
                answer["probabilities"] = dict(zip(names, shares, strict=True))
        return answers

    def _in_parts(self, rows: Any, of: Callable[[Any], Any]) -> np.ndarray:
        """What the head says of samples, some at a time: their features may take far more than they do."""
        streams = (*self.head.streams, *self.head.refinement)
        step = max(1, AT_ONCE // max([1, *(stream.map.dim for stream in streams)]))
        return np.concatenate([to_numpy(of(rows[i : i + step])) for i in range(0, len(rows), step)])


def check_pixels(image: bytes) -> None:
    """Raise for an image that is too large, by its header alone."""
    images = require("PIL.Image", "images", "reading images")
    try:
        with images.open(io.BytesIO(image)) as opened:
            width, height = opened.size
    except Exception as error:  # decoders of many formats raise what they like
        raise ServingError(f"cannot be read as an image: {type(error).__name__}: {error}") from None
    if width * height > MOST_PIXELS:
        raise ServingError(f"cannot be read as an image: {width} x {height} pixels are more than {MOST_PIXELS // 10**6} million")


def _even(values: list[Any]) -> bool:
    """Whether rows are lists of numbers of one length; what else they are, the head's own check says."""
    try:
        return np.asarray(values, dtype=np.float64).ndim > 0
    except (OverflowError, TypeError, ValueError):
        return False


class Backbones:
    """The backbones of all heads that are served, each opened once."""

    def __init__(self, device: str = "cpu", name: str | None = None) -> None:
        self.lock, self._device, self._name = threading.Lock(), device, name
        self._opened: dict[str, Backbone] = {}

    def of(self, origin: Origin) -> Backbone:
        with self.lock:
            if origin.fingerprint not in self._opened:
                self._opened[origin.fingerprint] = reopen(origin, self._device, self._name)
            return self._opened[origin.fingerprint]


def read_question(body: bytes) -> Mapping[str, Any]:
    check_parts(body)
    try:
        question = json.loads(body)
    except (ValueError, RecursionError):
        raise ServingError('the question is no JSON; write for example {"features": [[...]]}') from None
    if not isinstance(question, dict):
        raise ServingError('the question must be a JSON object, such as {"features": [[...]]}')
    return question


def check_parts(body: bytes) -> None:
    """Raise for JSON of more parts, or nested deeper, than any question is: before it is parsed, from its bytes alone."""
    if sum(map(body.count, (b",", b"[", b"{"))) > MOST_PARTS:
        raise ServingError(f"the question has more than {MOST_PARTS} numbers and words; ask for fewer samples at once")
    letters = np.frombuffer(body, np.uint8)
    marks = letters[(letters == 91) | (letters == 93) | (letters == 123) | (letters == 125)]  # [ ] { }
    depth = np.cumsum(np.where((marks == 91) | (marks == 123), 1, -1), dtype=np.int32)
    if len(depth) and depth.max() > DEEPEST:
        raise ServingError(f"the question is nested deeper than {DEEPEST} lists, or is no JSON")
