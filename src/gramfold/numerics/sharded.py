"""Rows that lie on disk in several files and look like one array: what is asked for is read, nothing else."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class ShardedRows:
    """n x d float32 over memory-mapped shards, those `kept` of them where some are left out. Its numbers are finite."""

    ndim = 2

    def __init__(self, shards: Sequence[np.ndarray], kept: np.ndarray | None = None) -> None:
        self._shards = list(shards)
        self._ends = np.cumsum([len(shard) for shard in self._shards])
        total = int(self._ends[-1]) if self._shards else 0
        self._kept = np.arange(total) if kept is None else kept
        self.shape = (len(self._kept), self._shards[0].shape[1] if self._shards else 0)
        self.dtype = np.dtype(np.float32)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> np.ndarray:
        """Rows by slice, index array or mask, in memory."""
        places = np.atleast_1d(self._kept[which])
        out = np.empty((len(places), self.shape[1]), dtype=self.dtype)
        owner = np.searchsorted(self._ends, places, side="right")
        for shard in np.unique(owner):
            mine = np.flatnonzero(owner == shard)
            start = self._ends[shard] - len(self._shards[shard])
            out[mine] = self._shards[shard][places[mine] - start]
        return out[0] if isinstance(which, int | np.integer) else out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype)
