"""Where the columns of all samples lie and how far they spread, from counts that add up: a sample counts once in every column,
however large its numbers, so that no client has more say than it has samples.

    client   how many of its samples lie in each bin of each column; first bins are half an octave of floating-point numbers wide
    server   the bins that the quartiles lie in; within them, narrower bins
    ...      until the distance between the two is known to a few per cent
    server   centre = median, scale = that distance, in the units of a normal distribution

Whoever has less than a quarter of all samples cannot move the quartiles far. Where they are one and the same number, as in
columns that are nearly always zero, smaller shares on either side are looked for: the largest that differ.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from gramfold.errors import GramfoldError
from gramfold.federation import Samples
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.numerics import arrays
from gramfold.uploads import NamedSums
from gramfold.wire.record import Record

COARSE, FINE = 1024, 258
"""Bins in the first round, and in later ones; of these the first and the last are all that lies below and above."""
ENOUGH = 48
"""So many narrow bins between the two ends measure a column well enough."""
TAILS = (0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04, 0.03, 0.02, 0.01, 0.005, 0.001)
"""Shares of samples on either side: the quartiles', and those for columns that are nearly always the same."""
NARROWEST, SMALLEST = 1e-6, 1e-30
"""Ends as close as that, relative to the column's numbers or absolutely, are one number."""
ROUNDS = 9
"""Rounds of counting, at most: enough to narrow down the bins for both tails."""
COUNTS = "counts"


@dataclass(frozen=True)
class Columns(Record, kind="columns"):
    """What is known of the columns, one number each; without `low`, nothing."""

    inputs: int
    low: np.ndarray | None = None
    """Where the narrow bins begin."""
    high: np.ndarray | None = None
    """Where they end."""
    tail: np.ndarray | None = None
    """The share of samples that lies on either side of what is looked for."""
    instead: np.ndarray | None = None
    """Where bins begin and end, and the share, if the quartiles turn out to be one number (3 x inputs)."""
    centre: np.ndarray | None = None
    """Once a column is measured; NaN before."""
    scale: np.ndarray | None = None

    @property
    def bins(self) -> int:
        return COARSE if self.low is None else FINE

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

    # --- the client ---

    def count(self, train: Samples) -> NamedSums:
        """The samples in each bin of each column."""
        counts = np.zeros((self.inputs, self.bins))
        for block in arrays.blocks(train.n, self.inputs):
            weights = None if train.weights is None else arrays.to_numpy(train.weights[block])
            places = self._bins_of(arrays.to_numpy(arrays.float64(train.inputs[block])))
            for column, inside in enumerate(places.T):
                counts[column] += np.bincount(inside, weights, self.bins)
        exact = train.weights is None and train.n < 2**24
        return NamedSums({COUNTS: counts.astype(np.float32) if exact else counts})

    def _bins_of(self, rows: np.ndarray) -> np.ndarray:
        if self.low is None or self.high is None:
            return _half_octaves(rows)
        width = (self.high - self.low) / (FINE - 2)
        with np.errstate(over="ignore"):  # far outside narrow bins
            places = np.floor((rows - self.low) / np.where(width > 0, width, 1.0)) + 1
        return np.asarray(places.clip(0, FINE - 1), np.int64)

    def check(self, upload: NamedSums) -> None:
        """Raise unless these are the counts of some samples."""
        upload.require_shapes({COUNTS: (self.inputs, self.bins)})
        counts = arrays.to_numpy(upload[COUNTS])
        each = counts.sum(1)
        if not (np.isfinite(counts).all() and counts.min() >= 0 and each.max() <= MOST_SAMPLES):
            raise GramfoldError("the counts of samples in its columns are not counts")
        if not (abs(each - each[0]) <= 1e-9 * each[0]).all():
            raise GramfoldError(f"its columns hold from {each.min():g} to {each.max():g} samples; all must hold the same")

    # --- the server ---

    def after(self, total: NamedSums) -> "Columns":
        """What is known once the counts of all samples are."""
        counts = arrays.to_numpy(total[COUNTS])
        if not counts[0].sum() > 0:
            raise GramfoldError("no samples to measure the columns by")
        if self.low is None or self.high is None or self.tail is None or self.instead is None:
            return self._narrowed(counts)
        known = replace(self, centre=_copy_or_nan(self.centre, self.inputs), scale=_copy_or_nan(self.scale, self.inputs))
        low, high, tail = self.low.copy(), self.high.copy(), self.tail.copy()
        assert known.centre is not None
        assert known.scale is not None
        for column in np.flatnonzero(np.isnan(known.centre)):
            edges, share = np.linspace(low[column], high[column], FINE - 1), tail[column]
            first, last = _ends(counts[column], share)
            if last - first >= ENOUGH:
                at = [_quantile(counts[column], edges, below) for below in (share, 0.5, 1 - share)]
                known.centre[column], known.scale[column] = at[1], (at[2] - at[0]) / (-2 * ndtri(share))
                continue
            low[column], high[column] = edges[max(first - 1, 0)], edges[min(last, FINE - 2)]
            if high[column] - low[column] > max(NARROWEST * max(abs(low[column]), abs(high[column])), SMALLEST):
                continue
            if share == TAILS[0]:
                low[column], high[column], tail[column] = self.instead[:, column]
            else:  # the same for all but the rarest samples
                known.centre[column], known.scale[column] = (low[column] + high[column]) / 2, 1.0
        return replace(known, low=low, high=high, tail=tail)

    def _narrowed(self, counts: np.ndarray) -> "Columns":
        """After the first counts."""
        edges = _edges()
        ends = np.array([[_ends(column, tail) for column in counts] for tail in TAILS])  # tails x inputs x 2
        apart = ends[1:, :, 0] != ends[1:, :, 1]
        smaller = np.where(apart.any(0), apart.argmax(0), len(TAILS) - 2) + 1
        outer = ends[smaller, np.arange(self.inputs)]
        instead = np.stack([edges[outer[:, 0]], edges[outer[:, 1] + 1], np.array(TAILS)[smaller]])
        tail = np.full(self.inputs, TAILS[0])
        return replace(self, low=edges[ends[0, :, 0]], high=edges[ends[0, :, 1] + 1], tail=tail, instead=instead)


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
