"""Recordings cut into windows, each of which remembers the recording it is of."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from gramfold.errors import SamplesError


class _Pair(NamedTuple):
    series: np.ndarray
    labels: np.ndarray | None


class Windows(_Pair):
    """A pair, `X, y = windows`: series (n x length x channels) and their labels, or None; and in `blocks` the recording that each
    is of."""

    blocks: np.ndarray

    def __new__(cls, series: np.ndarray, labels: np.ndarray | None, blocks: np.ndarray) -> Self:
        made = super().__new__(cls, series, labels)
        made.blocks = blocks
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.series, self.labels, self.blocks


def windows(recordings: Any, length: int, step: int | None = None, labels: Any = None) -> Windows:
    """A long recording (steps, or steps x channels), or a list of them, cut into series of `length`, a new one every `step` steps
    (by default end to end), and the most frequent label of each where every step has one, or every recording one for all.

    Windows of one recording give each other away: `blocks` says which belong together, for `Federation.from_clients`.

    >>> X, y = windows(np.arange(10.0), 4, 3, labels=["a"] * 5 + ["b"] * 5)
    >>> X[:, :, 0].tolist(), y.tolist()
    ([[0.0, 1.0, 2.0, 3.0], [3.0, 4.0, 5.0, 6.0], [6.0, 7.0, 8.0, 9.0]], ['a', 'a', 'b'])
    >>> walks = windows([np.arange(6.0), np.arange(9.0)], 3, labels=["slow", "fast"])
    >>> walks.labels.tolist(), walks.blocks.tolist()
    (['slow', 'slow', 'fast', 'fast', 'fast'], [0, 0, 1, 1, 1])
    """
    several = isinstance(recordings, list | tuple) and bool(recordings) and np.ndim(recordings[0]) > 0
    listed: Sequence[Any] = recordings if several else [recordings]
    given: Sequence[Any] = [None] * len(listed) if labels is None else labels if several else [labels]
    if len(given) != len(listed):
        raise SamplesError(f"`labels` is for {len(given)} recordings, and there are {len(listed)}")
    parts = [_cut(one, length, step, label) for one, label in zip(listed, given, strict=True)]
    channels = {series.shape[2] for series, _ in parts}
    if len(channels) > 1:
        raise SamplesError(f"recordings differ in their channels: {' and '.join(map(str, sorted(channels)))}")
    named = [label for _, label in parts if label is not None]
    blocks = np.repeat(np.arange(len(parts)), [len(series) for series, _ in parts])
    return Windows(np.concatenate([series for series, _ in parts]), np.concatenate(named) if named else None, blocks)


def _cut(recording: Any, length: int, step: int | None, labels: Any) -> tuple[np.ndarray, np.ndarray | None]:
    values = np.asarray(recording)
    values = values[:, None] if values.ndim == 1 else values
    step = length if step is None else step
    if values.ndim > 2:
        raise SamplesError(
            f"a recording is steps, or steps x channels, got shape {values.shape}; give several recordings as a list"
        )
    if not 1 <= length <= len(values) or step < 1:
        raise SamplesError(f"a recording of shape {values.shape} cannot be cut into windows of {length} steps, {step} apart")
    starts = range(0, len(values) - length + 1, step)
    cut = np.stack([values[start : start + length] for start in starts])
    if labels is None:
        return cut, None
    named = np.asarray(labels)
    if named.ndim == 0:
        return cut, np.repeat(named[None], len(cut))
    if named.shape != (len(values),):
        raise SamplesError(f"`labels` has shape {named.shape}, but the recording has {len(values)} steps")
    known, codes = np.unique(named, return_inverse=True)
    most = [np.bincount(codes[start : start + length], minlength=len(known)).argmax() for start in starts]
    return cut, known[most]
