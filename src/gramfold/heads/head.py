"""Head: what a client ends up with. It predicts, and it is a file."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gramfold import wire
from gramfold.errors import MALFORMED, GramfoldError, HeadError
from gramfold.heads.errors import Errors
from gramfold.heads.explaining import explain
from gramfold.heads.explanation import Explanation
from gramfold.heads.novelty import Novelty
from gramfold.heads.packing import packed, unpacked
from gramfold.heads.probabilities import floored, softmax
from gramfold.heads.soundness import require_sound
from gramfold.heads.streams import Mapped, Stream, summed
from gramfold.numerics import arrays, memory
from gramfold.numerics import inputs as check
from gramfold.numerics.arrays import Array
from gramfold.origin import SERIES, TABLE, KnownRows, Origin, is_series
from gramfold.solve.evidence import Evidence
from gramfold.sources import encoded, is_raw_table, places_of
from gramfold.wire import Packet

if TYPE_CHECKING:
    from torch import nn

KINDS = {
    "linear": (__name__, "Head"),
    "torch": ("gramfold.heads.torch_head", "TorchHead"),
    "labels": ("gramfold.heads.several", "SeveralLabels"),
    "ordered classes": ("gramfold.heads.ordered", "OrderedClasses"),
    "counts": ("gramfold.heads.counts", "Counts"),
}
"""The kinds of head a file may hold, and what reads each; a module is only imported for a file that needs it."""


@dataclass(frozen=True)
class Head:
    """A sum of linear streams over feature maps, perhaps turned into evidence, plus refinement streams and an offset per class.

    `labels` names the classes (None: a regressor). `probabilistic` says that the scores divided by `temperature` are
    log-probabilities up to a constant, so that their softmax is a calibrated distribution. `chosen` is what the method selected
    for this client.
    """

    kind: ClassVar[str] = "linear"

    streams: Sequence[Stream]
    labels: tuple[int | str, ...] | None
    evidence: Evidence | None = None
    refinement: Sequence[Stream] = ()
    offset: np.ndarray | None = None
    probabilistic: bool = False
    method: str = ""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    temperature: float = 1.0
    origin: Origin | None = None
    """What makes this head's inputs of raw samples; None: whoever gives them knows."""
    errors: Errors | None = None
    """How far a regressor was off its samples when they were left out."""
    bounds: np.ndarray | None = None
    """The least and the largest value that a regressor may give (outputs x 2): beyond what it has seen nobody knows."""
    unforeseen: float = 0.0
    """The part of every prediction that is spread over all classes: see `probabilities`."""
    familiar: Novelty | None = None
    """What training samples look like."""
    ordered: bool = False
    """Whether the classes have an order, the least first."""

    @property
    def inputs(self) -> int:
        return self.streams[0].map.inputs

    @property
    def shape(self) -> tuple[int, ...]:
        """A sample's: as many numbers, or height, width and channels of an image."""
        return tuple(getattr(self.streams[0].map, "shape", (self.inputs,)))

    def __repr__(self) -> str:
        what = "a regressor" if self.labels is None else f"{len(self.labels)} classes"
        count = len(self.streams) + len(self.refinement)
        streams = f"{count} stream{'s' * (count != 1)}" if self.streams else "a network"
        chosen = ", ".join(f"{key}={value:.3g}" for key, value in self.chosen.items() if isinstance(value, int | float))
        return f"Head({self.method or 'linear'}: {what}, {self.inputs} inputs, {streams}{'; ' + chosen if chosen else ''})"

    def scores(self, inputs: Array, mapped: Mapped | None = None) -> Array:
        """n x classes scores, before the argmax (for a regressor: the predictions).

        Inputs are rows of numbers, dense or sparse, or images, as the head was made for; a single sample may come as it is. For
        a head of a table they may be raw: a frame, a mapping of columns, the path of a CSV or Parquet file, a row or a list of
        rows by column; for one of series an array of series (n x steps x channels), or a list of them.
        `mapped` is for heads that score the same inputs one after another: given to all, it spares them each other's maps.
        """
        rows = self.rows(inputs)
        check.require_finite(rows, self.whose)
        widest = max((stream.map.dim for stream in self.streams), default=0)
        memory.ask(8 * rows.shape[0] * widest, f"{widest} features of {rows.shape[0]} samples", "predict them in parts")
        return self.forward(rows, mapped)

    @property
    def whose(self) -> str:
        """The input, as errors name it."""
        return f"the input of {self.method or 'this head'}"

    def rows(self, inputs: Array) -> Array:
        """The samples as this head takes them: raw rows of a table become numbers here, numbers are what they are; raises if
        their shape is another, or if they are known to come from elsewhere."""
        if self.origin is not None and self.origin.options.get("kind") == SERIES and is_series(inputs):
            from gramfold.backbones import reopen
            from gramfold.backbones.series import as_series, rows_of

            inputs = rows_of(reopen(self.origin), as_series(inputs, self.whose))
        elif self.origin is None or self.origin.kind != TABLE:
            self._refuse_raw(inputs)
        elif is_raw_table(inputs):
            inputs = encoded(self.origin, inputs, self.whose)
        if self.origin is not None and isinstance(inputs, KnownRows):
            self.origin.require(inputs.origin, self.whose)
        return check.fitting(inputs, self.shape, self.whose)

    def _refuse_raw(self, inputs: Any) -> None:
        if isinstance(inputs, str | PathLike | Mapping):
            maker = "no encoder of tables" if self.origin is None else f"{self.origin}, and no encoder of tables"
            raise HeadError(f"{self.whose}: this head takes {self._takes}; it knows {maker}")

    @property
    def _takes(self) -> str:
        return f"rows of {self.inputs} numbers" if len(self.shape) == 1 else f"images of shape {self.shape}"

    def forward(self, inputs: Array, mapped: Mapped | None = None) -> Array:
        """The scores of samples that are known to fit and to be finite."""
        mapped = {} if mapped is None else mapped
        total = summed(self.streams, inputs, mapped)
        if self.evidence is not None:
            total = self.evidence(total)
        if self.refinement:
            total += summed(self.refinement, inputs, mapped)
        total = total if self.offset is None else total + arrays.like(self.offset, inputs)
        if self.bounds is None:
            return total
        bounds = arrays.like(self.bounds, total)
        return total.clip(bounds[:, 0], bounds[:, 1])

    def decision_function(self, inputs: Array) -> np.ndarray:
        """As in scikit-learn: n x classes scores, of two classes the second's less the first's, n numbers."""
        if self.labels is None:
            raise HeadError("this head predicts values, not classes; see predict")
        scores = np.asarray(arrays.to_numpy(self.scores(inputs)))
        return scores[:, 1] - scores[:, 0] if len(self.labels) == 2 else scores

    def predict_codes(self, inputs: Array) -> np.ndarray:
        """The index of each sample's best class."""
        return np.asarray(arrays.to_numpy(self.scores(inputs).argmax(1)))

    def predict(self, inputs: Array) -> np.ndarray:
        """The label of each sample; for a regressor its value, or row of values."""
        if self.labels is None:
            values = arrays.to_numpy(self.scores(inputs))
            return np.asarray(values[:, 0] if values.shape[1] == 1 else values)
        labels: np.ndarray = np.asarray(self.labels)
        return np.take(labels, self.predict_codes(inputs))

    def predict_proba(self, inputs: Array) -> np.ndarray:
        """n x classes probabilities."""
        if self.labels is None:
            raise HeadError("this head predicts values, not classes; see predict and predict_interval")
        if not self.probabilistic:
            raise HeadError(f"the scores of {self.method or 'this head'} are not probabilities; PACE gives them")
        return self.probabilities(arrays.to_numpy(self.scores(inputs)))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """What scores of a probabilistic head say: their softmax at its temperature, no surer than its samples allow."""
        return floored(softmax(scores / self.temperature), self.unforeseen)

    def novelty(self, inputs: Array) -> np.ndarray:
        """How unlike all training data each sample is: the part of training samples that were less unusual, from 0 to almost 1.

        By the leverage f'A^-1 f of its features, with A the Gram matrix of the features of all clients' samples where the method
        sends them its factor (PACE), else of the client's own; the training samples it is compared with are the client's own,
        each left out. The head of all clients has none to compare with.
        """
        if self.familiar is None:
            raise HeadError(f"{self.whose.replace('the input of ', '')} does not know what training samples look like")
        rows = self.rows(inputs)
        check.require_finite(rows, self.whose)
        return self.familiar(self.streams[0].map(rows))

    def explain(self, inputs: Array, of: Any = None, baseline: Array | None = None) -> Explanation:
        """What every column adds to the prediction for each sample, against an average one: see `explaining`.

        `of`: the class whose log-odds are explained (None: the second of two, else each sample's own), or which of several
        values. `baseline`: samples whose mean is compared with; None: the mean of all training samples where the head's map knows
        it, else zeros.
        """
        rows = self.rows(inputs)
        check.require_finite(rows, self.whose)
        return explain(self, rows, of, None if baseline is None else self.rows(baseline), self.columns)

    @property
    def columns(self) -> dict[str, list[int]]:
        """The columns that inputs come from, and the places of their numbers: a table's column may be several."""
        if self.origin is not None and self.origin.kind == TABLE:
            return places_of(self.origin)
        return {f"input {place}": [place] for place in range(self.inputs)}

    def predict_interval(self, inputs: Array, coverage: float = 0.9) -> np.ndarray:
        """An interval for the value of each sample (n x 2; n x outputs x 2 where there are several): so large a part of new
        samples, `coverage`, lies within it. From the errors that left-out samples had, whatever their distribution; the shared
        head's, and that of a client with too few samples for it, takes them to be Gaussian."""
        if self.labels is not None:
            raise HeadError("this head predicts classes, not values; predict_proba says how sure it is")
        if self.errors is None:
            raise HeadError(f"{self.method or 'this head'} gives no intervals; PACE does, for regression")
        predicted, half = self.predict(inputs), self.errors.half_width(coverage)
        half = half[0] if predicted.ndim == 1 else half
        return np.stack([predicted - half, predicted + half], axis=-1)

    def score(self, inputs: Array, targets: Array) -> float:
        """As in scikit-learn: the accuracy, or for a regressor R2 (the mean of its outputs')."""
        predicted, wanted = self.predict(inputs), np.atleast_1d(arrays.to_numpy(targets))
        if len(predicted) != len(wanted) or not len(wanted):
            raise HeadError(f"{len(predicted)} samples but {len(wanted)} targets to score them by")
        if self.labels is not None:
            return float(np.mean(predicted == wanted))
        wanted = wanted.reshape(predicted.shape)
        left = ((wanted - predicted) ** 2).sum(0)
        spread = ((wanted - wanted.mean(0)) ** 2).sum(0)
        # a target that does not vary is explained wholly, or not at all
        explained = np.where(spread > 0, 1 - left / np.where(spread > 0, spread, 1.0), np.where(left > 0, 0.0, 1.0))
        return float(explained.mean())

    # --- as a file ---

    def pack(self) -> Packet:
        return packed(self)

    @classmethod
    def unpack(cls, packet: Packet) -> "Head":
        """The head in a packet, checked."""
        try:
            head = cls.assemble(packet)
            require_sound(head)
        except MALFORMED as error:
            raise HeadError(f"not a gramfold head: {error}") from None
        return head

    @classmethod
    def assemble(cls, packet: Packet) -> "Head":
        """The head in a packet of one's own, its arrays used as they are."""
        return cls(**unpacked(packet))

    def with_origin(self, origin: Origin | None) -> "Head":
        """The same head, which knows what makes its inputs."""
        return self if origin is None else replace(self, origin=origin)

    def to_torch(self) -> "nn.Module":
        """A module with the same scores for tensors; its weights are buffers, so that it moves and is saved like any other."""
        arrays.require_torch()
        module: nn.Module = importlib.import_module("gramfold.heads.torch_module").HeadModule(self)
        return module

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as safetensors."""
        wire.write_atomically(Path(path), self.pack().to_bytes())


def load_head(path: str | PathLike[str]) -> Head:
    """The head in a file that `Head.save` wrote."""
    content = wire.read(Path(path))
    try:
        packet = Packet.from_bytes(content)
    except GramfoldError as error:
        raise type(error)(f"{path}: {error}") from None
    if str(packet.meta.get("head", "")) not in KINDS:
        raise HeadError(f"{path} holds no head that this version can read")
    return head_of(packet)


def head_of(packet: Packet) -> Head:
    """The head in a packet of a known kind, checked."""
    module, name = KINDS[str(packet.meta["head"])]
    head: Head = getattr(importlib.import_module(module), name).unpack(packet)
    return head
