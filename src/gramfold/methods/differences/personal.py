"""The metric that clients' own functions share: what a client says of it, and when it is kept (`solve/personal_metric.py`)."""

from dataclasses import dataclass

import numpy as np

from gramfold.errors import MethodError
from gramfold.features import MetricMap
from gramfold.federation import Samples
from gramfold.methods.differences.found import Found, personal_maps
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.personal_metric import importance, next_root, say, unit_spread
from gramfold.uploads import NamedSums
from gramfold.wire.record import Record

MOST_COLUMNS = 256
"""Inputs up to which it is learned: it takes so many squared numbers, and many columns are pixels."""
SETTLED = 0.15
"""Of how much columns matter: a pass that moves less of it is the last."""
CLEARLY = 0.05
"""By so many nats a sample left-out samples must be likelier in the metric of the first pass than without any."""


@dataclass(frozen=True)
class Personal(Record, kind="differences/personal"):
    """Where its learning stands: the metric's root so far, and how unlikely that of the pass before left all samples (nats a
    sample; None: there was none)."""

    root: Array
    before: float | None = None
    first: float | None = None
    """The same for the first pass, in which no column is preferred."""
    settled: bool = False
    """Whether another pass would change little."""

    @classmethod
    def begin(cls, inputs: int) -> "Personal":
        return cls(np.eye(inputs))

    def upload(self, map: MetricMap, train: Samples, classes: int | None) -> NamedSums:
        """A client's, of samples that the metric may see."""
        rows = arrays.to_numpy(map.comparable(train.inputs)) if train.n else np.zeros((0, map.inputs))
        targets = arrays.to_numpy(train.targets)
        targets = np.eye(classes)[targets] if classes is not None else targets.astype(float)
        said = say(rows, targets, arrays.to_numpy(self.root), train.weights)
        sizes = np.array([said.loss, said.n])
        return NamedSums({"products": said.products, "within": said.within, "sizes": sizes})

    def after(self, total: NamedSums) -> "Personal | None":
        """The next pass; None where there is nothing to go on."""
        products, within, loss, n = read(total)
        if not n > 0 or not np.trace(products) > 0:
            return None
        if self.before is not None and not loss / n < self.before - CLEARLY:
            return None
        root, told = next_root(products, within, n), loss / n
        moved = 0.5 * np.abs(importance(root, within) - importance(arrays.to_numpy(self.root), within)).sum()
        return Personal(root, told, told if self.first is None else self.first, self.before is not None and moved < SETTLED)

    def found(self, within: np.ndarray, n: float, map: MetricMap, seed: int) -> Found:
        """What its metric comes to."""
        columns = map.columns
        assert columns is not None
        root = arrays.to_numpy(self.root)
        maps = personal_maps(unit_spread(root @ root, within, n), columns, seed)
        return Found(None, maps, importance(root, within), self.gain)

    @property
    def gain(self) -> float:
        """Of the metric on no preference, in nats a sample: none before there was a second pass."""
        return 0.0 if self.first is None or self.before is None else self.first - self.before

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        square = tuple(self.root.shape)
        return {"products": square, "within": square, "sizes": (2,)}


def check_said(upload: NamedSums) -> None:
    """Raise unless these can be a client's: none has more of a say than it has samples."""
    products, within, _, n = read(upload)
    diagonal = np.diagonal(products)
    if not 0 <= n <= MOST_SAMPLES or diagonal.min() < 0 or diagonal.sum() > n * (1 + 1e-6) or np.diagonal(within).min() < 0:
        raise MethodError("what it says of the personal metric is nothing that samples can say")


def read(total: NamedSums) -> tuple[np.ndarray, np.ndarray, float, float]:
    loss, n = (float(each) for each in arrays.to_numpy(total["sizes"]))
    return arrays.to_numpy(total["products"]), arrays.to_numpy(total["within"]), loss, n
