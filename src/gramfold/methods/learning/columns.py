"""Where the columns of all samples lie and how far they spread, from counts that add up: a sample counts once in every column,
however large its numbers, so that no client has more say than it has samples.

    client   how many of its samples lie in each bin of each column; first bins are half an octave of floating-point numbers wide
    server   the bins that the quartiles lie in; within them, narrower bins
    ...      until the distance between the two is known to a few per cent
    server   centre = median, scale = that distance, in the units of a normal distribution

Whoever has less than a quarter of all samples cannot move the quartiles far. Where they are one and the same number, as in
columns that are nearly always zero, smaller shares on either side are taken: the largest that differ. Both are narrowed down at a
time, so that it takes two or three rounds, and rarely more.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from gramfold.errors import MethodError
from gramfold.federation import Samples
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.numerics import arrays
from gramfold.uploads import NamedSums
from gramfold.wire.record import Record

COARSE, FINE = 1024, 514
"""Bins in the first round, and for either share in later ones; of these the first and the last are all that lies below and
above."""
ENOUGH = 48
"""So many narrow bins between the two ends measure a column well enough."""
TAILS = (0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.005, 0.001)
"""Shares of samples on either side: the quartiles', and those for columns that are nearly always the same."""
NARROWEST, SMALLEST = 2e-6, 1e-30
"""Ends as close as that, relative to the column's numbers or absolutely, are one number."""
ROUNDS = 6
"""Rounds of counting, at most."""
COUNTS = "counts"


@dataclass(frozen=True)
class Columns(Record, kind="columns"):
    """What is known of the columns, one number each; without `low`, nothing."""

    inputs: int
    low: np.ndarray | None = None
    """Where the narrow bins begin, those of the quartiles and those of the smaller share (2 x inputs)."""
    high: np.ndarray | None = None
    """Where they end."""
    smaller: np.ndarray | None = None
    """The share of samples on either side that is taken where the quartiles are one number."""
    centre: np.ndarray | None = None
    """Once a column is measured; NaN before."""
    scale: np.ndarray | None = None

    def __post_init__(self) -> None:
        shapes = {"low": (2, self.inputs), "high": (2, self.inputs), "smaller": (self.inputs,)}
        for name, shape in shapes.items():
            part = getattr(self, name)
            if (part is None) != (self.low is None) or (
                part is not None and (part.shape != shape or not np.isfinite(part).all())
            ):
                raise MethodError(f"bins of {self.inputs} columns need {name} of shape {shape}")

    @property
    def bins(self) -> int:
        return COARSE if self.low is None else 2 * FINE

    @property
    def measured(self) -> bool:
        """Whether there is nothing left to count."""
        return self.centre is not None and not np.isnan(self.centre).any()

    @property
    def alike(self) -> bool:
        """Whether the columns may be in the same unit, so that the length of a row means something: unless a few of them, in a
        table of many, make up nearly all of it."""
        assert self.centre is not None
        assert self.scale is not None
        squares = self.centre**2 + self.scale**2
        return bool(squares.sum() ** 2 >= (1 + (self.inputs - 1) / 4) * (squares**2).sum())

    @property
    def standardised(self) -> bool:
        """Whether most columns lie about zero and spread alike: somebody has made them so, as is done with tables."""
        assert self.centre is not None
        assert self.scale is not None
        usual = float(np.median(self.scale))
        alike = (self.scale >= usual / 2) & (self.scale <= 2 * usual)
        return bool((alike & (abs(self.centre) <= self.scale / 2)).mean() > 0.5)

    # --- the client ---

    def count(self, train: Samples) -> NamedSums:
        """The samples in each bin of each column."""
        if self.inputs != train.inputs.shape[1]:
            raise MethodError(f"asked for the counts of {self.inputs} columns, the samples have {train.inputs.shape[1]}")
        counts = np.zeros((self.inputs, self.bins))
        for block in arrays.blocks(train.n, self.inputs):
            weights = None if train.weights is None else arrays.to_numpy(train.weights[block])
            for places in self._bins_of(arrays.to_numpy(arrays.float64(train.inputs[block]))):
                for column, inside in enumerate(places.T):
                    counts[column] += np.bincount(inside, weights, self.bins)
        exact = train.weights is None and train.n < 2**24
        return NamedSums({COUNTS: counts.astype(np.float32) if exact else counts})

    def _bins_of(self, rows: np.ndarray) -> list[np.ndarray]:
        if self.low is None or self.high is None:
            return [_half_octaves(rows)]
        places = []
        for at, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            width = (high - low) / (FINE - 2)
            with np.errstate(over="ignore"):  # far outside narrow bins
                inside = np.floor((rows - low) / np.where(width > 0, width, 1.0)) + 1
            places.append(at * FINE + np.asarray(inside.clip(0, FINE - 1), np.int64))
        return places

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {COUNTS: (self.inputs, self.bins)}

    def check(self, upload: NamedSums) -> None:
        """Raise unless these are the counts of some samples."""
        upload.require_shapes(self.shapes)
        counts = arrays.to_numpy(upload[COUNTS])
        each = counts.reshape(-1, COARSE if self.low is None else FINE).sum(1)
        require_counts(counts, each)
        if not (abs(each - each[0]) <= 1e-6 * each[0]).all():
            raise MethodError(f"its columns hold from {each.min():g} to {each.max():g} samples; all must hold the same")

    # --- the server ---

    def after(self, total: NamedSums) -> "Columns":
        """What is known once the counts of all samples are."""
        counts = arrays.to_numpy(total[COUNTS])
        if not counts[0].sum() > 0:
            raise MethodError("no samples to measure the columns by")
        if self.low is None or self.high is None or self.smaller is None:
            return self._narrowed(counts)
        low, high = self.low.copy(), self.high.copy()
        centre, scale = _copy_or_nan(self.centre, self.inputs), _copy_or_nan(self.scale, self.inputs)
        for column in np.flatnonzero(np.isnan(centre)):
            looks = [
                _Look.at(counts[column, at * FINE : (at + 1) * FINE], low[at, column], high[at, column], share)
                for at, share in enumerate((TAILS[0], self.smaller[column]))
            ]
            low[:, column], high[:, column] = [look.low for look in looks], [look.high for look in looks]
            best = looks[1] if looks[0].one_number else looks[0]
            if best.scale is not None:
                centre[column], scale[column] = best.centre, best.scale
            elif best.one_number:  # the same for all but the rarest samples
                centre[column], scale[column] = (best.low + best.high) / 2, 1.0
        return replace(self, low=low, high=high, centre=centre, scale=scale)

    def _narrowed(self, counts: np.ndarray) -> "Columns":
        """After the first counts."""
        edges = _edges()
        ends = np.array([[_ends(column, tail) for column in counts] for tail in TAILS])  # tails x inputs x 2
        apart = ends[1:, :, 0] != ends[1:, :, 1]
        smaller = np.where(apart.any(0), apart.argmax(0), len(TAILS) - 2) + 1
        both = np.stack([ends[0], ends[smaller, np.arange(self.inputs)]])  # shares x inputs x 2
        return replace(self, low=edges[both[:, :, 0]], high=edges[both[:, :, 1] + 1], smaller=np.array(TAILS)[smaller])


@dataclass(frozen=True)
class _Look:
    """What a column's bins say of one share: where narrower bins lie, and, once they are narrow enough, centre and scale."""

    low: float
    high: float
    centre: float = 0.0
    scale: float | None = None

    @classmethod
    def at(cls, counts: np.ndarray, low: float, high: float, share: float) -> "_Look":
        edges = np.linspace(low, high, FINE - 1)
        first, last = _ends(counts, share)
        if last - first >= ENOUGH:
            below, middle, above = (_quantile(counts, edges, part) for part in (share, 0.5, 1 - share))
            return cls(low, high, middle, (above - below) / float(-2 * ndtri(share)))
        return cls(float(edges[max(first - 1, 0)]), float(edges[min(last, FINE - 2)]))

    @property
    def one_number(self) -> bool:
        """Whether there is nothing between the two ends."""
        return self.scale is None and self.high - self.low <= max(NARROWEST * max(abs(self.low), abs(self.high)), SMALLEST)


def require_counts(counts: np.ndarray, samples: np.ndarray) -> None:
    """Raise unless these are counts, of so many `samples` in each column."""
    if not (np.isfinite(counts).all() and counts.min() >= 0 and samples.max() <= MOST_SAMPLES):
        raise MethodError("the counts of samples in its columns are not counts")


def _half_octaves(rows: np.ndarray) -> np.ndarray:
    """The leading ten bits of float32 numbers, in the numbers' order."""
    largest = np.finfo(np.float32).max
    bits = np.ascontiguousarray(np.clip(rows, -largest, largest).astype(np.float32)).view(np.uint32)
    ordered = np.where(bits >> np.uint32(31), ~bits, bits | np.uint32(1 << 31))
    return (ordered >> np.uint32(22)).astype(np.int64)


def _edges() -> np.ndarray:
    """Where the first round's bins begin, and the last one ends."""
    ordered = np.arange(COARSE, dtype=np.uint32) << np.uint32(22)
    bits = np.where(ordered >> np.uint32(31), ordered & np.uint32(2**31 - 1), ~ordered)
    largest = float(np.finfo(np.float32).max)
    numbers = np.nan_to_num(bits.view(np.float32), nan=largest, posinf=largest, neginf=-largest).astype(np.float64)
    return np.append(numbers, largest)


def _ends(counts: np.ndarray, tail: float) -> tuple[int, int]:
    """The bins that the samples after the first, and before the last, `tail` of all begin and end in."""
    below = np.cumsum(counts)
    n = below[-1]
    return int(np.searchsorted(below, tail * n, side="right")), int(np.searchsorted(below, (1 - tail) * n, side="left"))


def _quantile(counts: np.ndarray, edges: np.ndarray, share: float) -> float:
    """Where that share of the samples lies below; samples lie evenly in their bin, those outside at its ends."""
    below = np.cumsum(counts)[:-1]
    return float(np.interp(share * counts.sum(), below, edges))


def _copy_or_nan(known: np.ndarray | None, inputs: int) -> np.ndarray:
    return np.full(inputs, np.nan) if known is None else known.copy()
