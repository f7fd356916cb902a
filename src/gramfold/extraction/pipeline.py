"""Features of many samples: threads decode ahead while the network works, a shard at a time."""

import hashlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramfold.backbones import Backbone, UnreadableSampleError
from gramfold.errors import BackboneError
from gramfold.extraction.cache import Cache
from gramfold.extraction.digests import Digests
from gramfold.numerics.sharded import ShardedRows
from gramfold.origin import Origin
from gramfold.sources import Source

SHARD = 512
"""Samples of a shard: what a kill may cost at most."""
FAIL, SKIP = "fail", "skip"
Progress = Callable[[int, int, int], None]
"""Called with the samples done, those of them that were computed, and all."""


@dataclass(frozen=True)
class Extracted:
    """Features, the samples they are of, and what made them."""

    rows: Any
    kept: np.ndarray
    """Which samples of the source could be read."""
    origin: Origin
    computed: int
    """Samples that the network saw; the others came from the cache."""


def extract(
    source: Source,
    backbone: Backbone,
    cache: Path | None = None,
    *,
    unreadable: str = FAIL,
    threads: int | None = None,
    progress: Progress | None = None,
    shard: int = SHARD,
) -> Extracted:
    """The features of a source. With a `cache` what is there is read, and what is new is kept.

    `unreadable`: "fail", or "skip" samples that cannot be decoded, with a warning that names them.
    """
    if source.kind != backbone.kind:
        raise BackboneError(f"{source.name} holds {source.kind}, but backbone {backbone.name} takes {backbone.kind}")
    if unreadable not in (FAIL, SKIP):
        raise BackboneError(f"unreadable must be {FAIL!r} or {SKIP!r}, got {unreadable!r}")
    assert isinstance(source.items, Sequence)
    kept = None if cache is None else Cache(cache, backbone.fingerprint, warnings.warn)
    digests = None if kept is None else Digests(kept.root / "seen.db")
    shards, computed = [], 0
    try:
        with ThreadPoolExecutor(max_workers=threads or min(8, (os.cpu_count() or 1) + 1)) as pool:
            for first in range(0, source.n, shard):
                items = source.items[first : first + shard]
                key = "" if digests is None else _key(digests, items)
                rows = None if kept is None else kept.get(key, len(items))
                if rows is None:
                    show = None if progress is None else _shifted(progress, first, computed, source.n)
                    rows = _rows(backbone, items, pool, _dealing(source, first, unreadable), show)
                    computed += len(items)
                    rows = rows if kept is None else kept.put(key, rows)
                    if digests is not None:
                        digests.keep()
                elif unreadable == FAIL:
                    wrong = np.flatnonzero(np.isnan(rows[:, 0]))
                    if len(wrong):  # found by an earlier extraction that skipped them
                        raise BackboneError(f"{source.called(first + int(wrong[0]))} cannot be read; {_HOW}")
                shards.append(rows)
                if progress is not None:
                    progress(first + len(items), computed, source.n)
    finally:
        if digests is not None:
            digests.close()
    shards = _as_wide(shards)
    readable = np.flatnonzero(~np.concatenate([np.isnan(rows[:, 0]) for rows in shards]))
    if not len(readable):
        raise BackboneError(f"no sample of {source.name} can be read")
    return Extracted(ShardedRows(shards, readable), readable, backbone.origin, computed)


_HOW = "remove it, or skip such samples with --unreadable skip"


def _key(digests: Digests, items: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for item in items:
        digest.update(digests.of(item))
    return digest.hexdigest()[:32]


Deal = Callable[[int, UnreadableSampleError], None]


def _dealing(source: Source, first: int, unreadable: str) -> Deal:
    """What to do about the i-th sample from `first` on when it cannot be read."""

    def deal(i: int, error: UnreadableSampleError) -> None:
        name = source.called(first + i)
        if unreadable == FAIL:
            raise BackboneError(f"{name} {error}; {_HOW}") from None
        warnings.warn(f"{name} {error}; it is skipped", stacklevel=2)

    return deal


def _shifted(progress: Progress, first: int, computed: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(first + done, computed + done, total)


def _rows(
    backbone: Backbone, items: Sequence[Any], pool: ThreadPoolExecutor, deal: Deal, progress: Callable[[int], None] | None
) -> np.ndarray:
    """The features of some samples; a row of NaN for one that cannot be read."""
    found: list[np.ndarray] = []
    for first, batch in _ahead(backbone, items, pool):
        ready, places = [], []
        for i, prepared in enumerate(batch):
            try:
                ready.append(prepared.result())
                places.append(i)
            except UnreadableSampleError as error:
                deal(first + i, error)
        rows = backbone.extract(ready) if ready else np.empty((0, 1), np.float32)
        whole = np.full((len(batch), rows.shape[1]), np.nan, dtype=np.float32)
        whole[places] = rows
        found.append(whole)
        if progress is not None:
            progress(first + len(batch))
    return np.concatenate(_as_wide(found))


def _as_wide(parts: list[np.ndarray]) -> list[np.ndarray]:
    """The parts, those without any readable sample made as wide as the others."""
    width = max(part.shape[1] for part in parts)
    return [part if part.shape[1] == width else np.full((len(part), width), np.nan, np.float32) for part in parts]


def _ahead(backbone: Backbone, items: Sequence[Any], pool: ThreadPoolExecutor) -> Iterator[tuple[int, list[Future[Any]]]]:
    """Batches of samples that are being prepared, two of them beyond the one that is given out."""
    waiting: deque[tuple[int, list[Future[Any]]]] = deque()
    for first in range(0, len(items), backbone.batch):
        batch = [pool.submit(backbone.prepare, item) for item in items[first : first + backbone.batch]]
        waiting.append((first, batch))
        if len(waiting) > 2:
            yield waiting.popleft()
    yield from waiting
