"""Series as numbers: random convolutional kernels that compete, and statistics.

    series      each channel less its mean, over its spread; and its differences
    kernels     of nine steps, dilated by 1, 2, 4, ..., in groups of eight
    features    for every kernel: how often it fits a place best of its group, by how much it does; how often worst
    statistics  of every channel: mean, spread, least, most, quartiles, and how much lies in each octave of frequencies

Competing kernels are Hydra (Dempster et al., 2023), of the ROCKET family. All come from a frozen stream, so that clients have the
same ones and nothing of their series is exchanged. Series may differ in length and have gaps: gaps inside are bridged by a
straight line, and steps that are not there do not count.
"""

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from gramfold.backbones.base import Backbone, fingerprint, finished
from gramfold.errors import SamplesError
from gramfold.numerics import seeds, threads
from gramfold.origin import SERIES, KnownRows, known_rows

LENGTH, GROUP = 9, 8
"""Steps of a kernel; kernels of a group."""
FEATURES = 512
LEAST_STEPS = 4
BYTES = 2**18
"""Of a block's answers to one group of kernels: what stays in a core's cache."""
VERSION = "1"
LAST = "; where steps come last, give X.transpose(0, 2, 1)"
QUARTILES = (0.25, 0.5, 0.75)
_SPECTRUM_FLOOR = 1e-6


class SeriesBackbone(Backbone):
    """`features` kernels' answers of series of about `steps` steps and of so many `channels`. Other lengths do as well: only the
    dilations follow from the steps."""

    kind, pooling = SERIES, "own"

    def __init__(self, features: int, steps: int, channels: int) -> None:
        if min(features, channels) < 1 or steps < LEAST_STEPS:
            hint = LAST if channels > steps else ""
            raise SamplesError(
                f"series need a channel and {LEAST_STEPS} steps at least, got {steps} steps of {channels} channels{hint}"
            )
        self.features, self.steps, self.channels = features, steps, channels
        self.name = f"rocket:{features}:{steps}x{channels}"
        self.fingerprint = fingerprint([self.name, LENGTH, GROUP, VERSION], [])

    @property
    def dilations(self) -> list[int]:
        most = int(math.log2(max(1.0, (self.steps - 1) / (LENGTH - 1))))
        return [2**power for power in range(most + 1)]

    @cached_property
    def kernels(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each dilation, of the series and of their differences: kernels (groups x GROUP x LENGTH) and, for each group, the
        channels whose sum it is laid on."""
        groups = max(1, round(self.features / (4 * GROUP * len(self.dilations))))
        together = min(max(1, self.channels // 2), 8)
        drawn = []
        for dilation in self.dilations:
            for what in ("series", "differences"):
                stream = seeds.frozen(0, f"rocket/{self.channels}/{dilation}/{what}")
                kernels = stream.standard_normal((groups, GROUP, LENGTH))
                kernels -= kernels.mean(-1, keepdims=True)
                kernels /= np.abs(kernels).sum(-1, keepdims=True)
                channels = np.argsort(stream.uniform(size=(groups, self.channels)), axis=1)[:, :together]
                drawn.append((kernels.astype(np.float32), channels))
        return drawn

    def prepare(self, sample: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Channels x steps without gaps, each channel of mean zero and spread one; which steps are there; the statistics."""
        values = np.asarray(sample, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[1] != self.channels:
            raise SamplesError(f"expected a series of {self.channels} channels (steps x channels), got shape {values.shape}")
        there = np.isfinite(values)
        steps = np.flatnonzero(there.any(1))
        if not len(steps):
            raise SamplesError("a series without any number")
        values, there = values[steps[0] : steps[-1] + 1].T, there[steps[0] : steps[-1] + 1].T
        values = np.stack([_bridged(channel, known) for channel, known in zip(values, there, strict=True)])
        mean, spread = values.mean(1, keepdims=True), values.std(1, keepdims=True)
        level = (values - mean) / np.where(spread > 1e-9 * (np.abs(mean) + 1e-300), spread, 1.0)
        return np.asarray(level, np.float32), np.asarray(there.any(0)), statistics(values, level, spread)

    def extract(self, batch: Sequence[Any]) -> np.ndarray:
        steps = max(level.shape[1] for level, _, _ in batch)
        levels = np.zeros((len(batch), self.channels, steps), np.float32)
        known = np.zeros((len(batch), steps), np.float32)
        for row, (level, there, _) in enumerate(batch):
            levels[row, :, : level.shape[1]] = level
            known[row, : len(there)] = there
        parts = list(self._answers(levels, known))
        return finished(np.concatenate([*parts, np.stack([said for _, _, said in batch])], axis=1), len(batch), self.name)

    def _answers(self, levels: np.ndarray, known: np.ndarray) -> Iterator[np.ndarray]:
        """Square roots of counts, for series of one length, so that features are of one size."""
        inputs = (levels, known), (np.diff(levels, axis=-1), known[:, 1:] * known[:, :-1])
        for place, (kernels, channels) in enumerate(self.kernels):
            values, there = inputs[place % 2]
            share = self.steps / np.maximum(there.sum(1), 1.0)
            yield np.sqrt(_competing(values, there, kernels, channels, self.dilations[place // 2]) * share[:, None])


def _bridged(channel: np.ndarray, known: np.ndarray) -> np.ndarray:
    if known.all():
        return channel
    if not known.any():
        return np.zeros_like(channel)
    steps = np.arange(len(channel))
    return np.asarray(np.interp(steps, steps[known], channel[known]))


def _competing(values: np.ndarray, there: np.ndarray, kernels: np.ndarray, channels: np.ndarray, dilation: int) -> np.ndarray:
    """n x (2 groups GROUP): how much each kernel is ahead where it fits best, and how often it fits worst."""
    n, _, steps = values.shape
    groups, reach = len(kernels), LENGTH // 2 * dilation
    padded = np.pad(values, ((0, 0), (0, 0), (reach, reach)))
    best, worst = np.empty((groups, GROUP, n), np.float32), np.empty((groups, GROUP, n), np.float32)
    block = max(1, BYTES // (4 * GROUP * max(steps, 1)))
    for first in range(0, n, block):
        rows = slice(first, first + block)
        weights, laid = there[rows], None
        for group in range(groups):
            if laid is None or not np.array_equal(channels[group], channels[group - 1]):
                laid = _laid(padded[rows][:, channels[group]].sum(1), steps, dilation)
            answers = (kernels[group] @ laid.reshape(LENGTH, -1)).reshape(GROUP, -1, steps)
            most, least = answers.max(0), answers.min(0)
            best[group, :, rows] = np.einsum("grs,rs->gr", answers == most, most * weights)
            worst[group, :, rows] = np.einsum("grs,rs->gr", answers == least, weights)
    return np.asarray(np.maximum(np.concatenate([best, worst]).reshape(-1, n).T, 0.0))


def _laid(values: np.ndarray, steps: int, dilation: int) -> np.ndarray:
    """LENGTH x n x steps: what each weight of a kernel meets at each step of padded series."""
    found = np.empty((LENGTH, len(values), steps), np.float32)
    for k in range(LENGTH):
        found[k] = values[:, k * dilation : k * dilation + steps]
    return found


def statistics(values: np.ndarray, level: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Of the channels as they are: where they lie and how far they spread, as signed square roots and logarithms; of their
    course: the logarithm of what lies in each octave of frequencies."""
    ordered = np.sort(values, axis=1)
    where = np.concatenate([values.mean(1), ordered[:, 0], ordered[:, -1], *(_quantile(ordered, part) for part in QUARTILES)])
    size = np.log(np.maximum(spread[:, 0], 1e-12))
    power = np.abs(np.fft.rfft(level, axis=1)[:, 1:]) ** 2 / max(level.shape[1] ** 2, 1)
    ends = [2**k for k in range(8)]
    octaves = [power[:, end - 1 : 2 * end - 1].sum(1) for end in ends]
    parts = [np.sign(where) * np.sqrt(np.abs(where)), size, *np.log(np.array(octaves) + _SPECTRUM_FLOOR)]
    return np.concatenate(parts).astype(np.float32)


def _quantile(ordered: np.ndarray, part: float) -> np.ndarray:
    """Of rows in rising order, as np.quantile has it, which takes longer than all else that is asked of a short series."""
    below, beyond = divmod(part * (ordered.shape[1] - 1), 1.0)
    low = ordered[:, int(below)]
    return np.asarray(low + beyond * (ordered[:, min(int(below) + 1, ordered.shape[1] - 1)] - low))


def as_series(values: Any, whose: str = "the series") -> list[np.ndarray]:
    """A list of series, each steps x channels: of an array n x T or n x T x channels, or of arrays of their own lengths."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if hasattr(values, "ndim") and values.ndim not in (2, 3):
        raise SamplesError(f"{whose}: expected series (n x steps or n x steps x channels), got shape {tuple(values.shape)}")
    try:
        found = [np.asarray(one, dtype=np.float32) for one in values]
    except (TypeError, ValueError):
        raise SamplesError(
            f"{whose}: expected numbers, n x steps or n x steps x channels, or a list of arrays (steps x channels)"
        ) from None
    found = [one[:, None] if one.ndim == 1 else one for one in found]
    if not found:
        raise SamplesError(f"{whose}: no series")
    for i, one in enumerate(found):
        if one.ndim != 2 or one.shape[1] != found[0].shape[1]:
            shapes = f"series {i} has shape {one.shape}, the first {found[0].shape}"
            raise SamplesError(f"{whose}: {shapes}; give all as many channels")
        if not np.isfinite(one).any():
            raise SamplesError(f"{whose}: series {i} has no number; leave it out")
    return found


def series(values: Any, features: str = f"rocket:{FEATURES}", steps: int | None = None) -> KnownRows:
    """Series as rows of numbers that know what made them: for `Federation.split`, `from_clients`, and everything that takes rows.

    `values` is n x steps or n x steps x channels, NaN where nothing was measured, or a list of arrays of their own lengths.
    `features` says how many kernels' answers there are. `steps` is the length that kernels are drawn for, by default that of the
    longest series: clients that are read apart must name the same. A head made of them takes further series as they are.

    >>> waves = [np.sin(np.arange(n) / 3) for n in (40, 50, 60)]
    >>> series(waves, "rocket:256").shape
    (3, 303)
    """
    listed = as_series(values)
    kind, _, number = features.partition(":")
    if kind != "rocket" or not number.isdecimal():
        raise SamplesError(f"cannot read {features!r}; series have features rocket:N, such as rocket:{FEATURES}")
    longest, channels = max(len(one) for one in listed), listed[0].shape[1]
    if LEAST_STEPS <= longest < channels:
        warnings.warn(f"series of {longest} steps and {channels} channels{LAST}", stacklevel=2)
    return rows_of(SeriesBackbone(int(number), longest if steps is None else steps, channels), listed)


def rows_of(backbone: Backbone, listed: Sequence[np.ndarray]) -> KnownRows:
    """The features of many series, computed on all cores, as rows that know what made them."""
    order = sorted(range(len(listed)), key=lambda i: len(listed[i]))  # series of like length together: little is padded
    batches = [order[i : i + backbone.batch] for i in range(0, len(order), backbone.batch)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with threads.limit(1), ThreadPoolExecutor(cores) as pool:  # products are small: threads of their own would only wait
        parts = list(pool.map(lambda rows: backbone([listed[i] for i in rows]), batches))
    found = np.empty((len(listed), parts[0].shape[1]), np.float32)
    for rows, part in zip(batches, parts, strict=True):
        found[rows] = part
    known: KnownRows = known_rows(found, backbone.origin)
    return known
