"""One data set partitioned into clients: rows are gathered only when a client is loaded."""

from collections.abc import Sequence
from functools import partial
from typing import overload

import numpy as np

from gramfold.federation.blocks import stratified
from gramfold.federation.client import Client, Samples
from gramfold.federation.datasets import Dataset
from gramfold.numerics import seeds


class Pool:
    """The data set that clients are cut from, and the owner of each row."""

    def __init__(self, dataset: Dataset, owners: np.ndarray, names: np.ndarray, test: float, seed: int) -> None:
        self.dataset, self.names, self.test, self.seed = dataset, names, test, seed
        self._order = np.argsort(owners, kind="stable")
        self._starts = np.searchsorted(owners[self._order], np.arange(len(names) + 1))

    def rows(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Training and test rows of client k."""
        mine = self._order[self._starts[k] : self._starts[k + 1]]
        if self.dataset.train is not None:
            training = self.dataset.train[mine]
            return mine[training], mine[~training]
        rng = seeds.generator(self.seed, f"split/{self.names[k]}")
        kept, held_out = stratified(self.dataset.codes[mine], self.test, rng, self._blocks(mine))
        return mine[kept], mine[held_out]

    def splits(self, kept: np.ndarray, natural: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """Whose rows these are, for training and for testing: their own clients', or one owner's who plays many."""
        splits = [(str(self.names[k]), *self.rows(int(k))) for k in kept]
        if natural:
            return splits
        train, test = (np.sort(np.concatenate([split[part] for split in splits])) for part in (1, 2))
        return [(self.dataset.name, train, test)]

    def samples(self, k: int, part: int) -> Samples:
        rows = self.rows(k)[part]
        return Samples(self.dataset.inputs[rows], self.dataset.targets[rows], blocks=self._blocks(rows))

    def _blocks(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.dataset.blocks is None else self.dataset.blocks[rows]


class PoolClients(Sequence[Client]):
    """Clients created on access: a million of them take two index arrays."""

    def __init__(self, pool: Pool, kept: np.ndarray) -> None:
        self._pool, self._kept = pool, kept

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, i: int) -> Client: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Client]: ...
    def __getitem__(self, i: int | slice) -> Client | Sequence[Client]:
        if isinstance(i, slice):
            return PoolClients(self._pool, self._kept[i])
        k = int(self._kept[i])
        return Client(str(self._pool.names[k]), partial(self._pool.samples, k, 0), partial(self._pool.samples, k, 1))
