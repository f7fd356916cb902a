"""Ways to cut one labelled data set into clients: each returns the client index of every sample."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gramfold.errors import LabelsError, PartitionError

REDRAWS = 100
DROP = "leave small clients out with drop_small=True (--drop-small), or lower min_size"
"""What to do where clients are too small."""


@dataclass(frozen=True)
class Partition:
    """How to cut: `kind` with its parameter, as written on the command line ("dirichlet:0.1", "classes:2", "iid")."""

    kind: str
    value: float | None = None

    @classmethod
    def parse(cls, text: str) -> "Partition":
        """
        >>> Partition.parse("dirichlet:0.1")
        Partition(kind='dirichlet', value=0.1)
        """
        kind, _, value = text.partition(":")
        if kind not in (*_CUTS, "natural"):
            raise PartitionError(f"unknown partition {text!r}; use {USAGE}")
        takes_value = kind in _TAKES_VALUE
        try:
            number = float(value) if value else None
        except ValueError:
            number = np.nan
        if takes_value != (number is not None) or (number is not None and not (0 < number < np.inf)):
            raise PartitionError(f"cannot read partition {text!r}; use {USAGE}")
        if kind in ("classes", "shards") and number != int(number or 0):
            raise PartitionError(f"partition {kind!r} takes a whole number, got {value}")
        return cls(kind, number)

    def __str__(self) -> str:
        return self.kind if self.value is None else f"{self.kind}:{self.value:g}"

    def cut(self, codes: np.ndarray, clients: int, rng: np.random.Generator, min_size: int = 1) -> np.ndarray:
        """The client (0..clients-1) of every sample; every client gets at least `min_size`, after some redraws if need be.

        Raises if it cannot be done. Redrawing, instead of silently moving samples, preserves the distribution.
        """
        if clients * min_size > len(codes):
            raise PartitionError(f"{len(codes)} samples cannot give {clients} clients {min_size} each; ask for fewer clients")
        assignment, smallest = self.draw(codes, clients, rng), 0
        for _ in range(REDRAWS):
            smallest = int(np.bincount(assignment, minlength=clients).min())
            if smallest >= min_size:
                return assignment
            assignment = self.draw(codes, clients, rng)
        raise PartitionError(
            f"partition {self} left a client with {smallest} samples in each of {REDRAWS} draws, fewer than the minimum of "
            f"{min_size}; {DROP}; or ask for fewer clients or a milder partition"
        )

    def draw(self, codes: np.ndarray, clients: int, rng: np.random.Generator) -> np.ndarray:
        """One draw, whatever sizes it gives."""
        if clients < 1:
            raise PartitionError(f"need at least one client, got {clients}")
        return _CUTS[self.kind](codes, clients, rng, self.value if self.value is not None else 0.0)


def follow(
    train_codes: np.ndarray, assignment: np.ndarray, test_codes: np.ndarray, clients: int, rng: np.random.Generator
) -> np.ndarray:
    """Cut test samples so that every client's share of each class is its share of that class in training."""
    out = np.empty(len(test_codes), dtype=np.int64)
    for code in np.unique(test_codes):
        places = rng.permutation(np.flatnonzero(test_codes == code))
        share = np.bincount(assignment[train_codes == code], minlength=clients).astype(float)
        share = share if share.sum() else np.ones(clients)  # a class without training samples is spread evenly
        out[places] = _cut_by_share(len(places), share / share.sum())
    return out


def _cut_by_share(n: int, share: np.ndarray) -> np.ndarray:
    """n places in runs, one run a client, as long as its share says: cumulative rounding, so no client is always short."""
    ends = np.rint(np.cumsum(share) * n).astype(np.int64)
    ends[-1] = n
    return np.repeat(np.arange(len(share)), np.diff(ends, prepend=0))


def _dirichlet_share(alpha: float, clients: int, rng: np.random.Generator) -> np.ndarray:
    # gamma(a) = gamma(a + 1) u^(1/a), taken in logarithms: for small alpha the plain draw underflows to 0/0
    logs = np.log(rng.gamma(alpha + 1.0, size=clients)) + np.log(rng.uniform(size=clients)) / alpha
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _dirichlet(codes: np.ndarray, clients: int, rng: np.random.Generator, alpha: float) -> np.ndarray:
    """For each class one Dirichlet(alpha) draw over the clients."""
    out = np.empty(len(codes), dtype=np.int64)
    for code in np.unique(codes):
        places = rng.permutation(np.flatnonzero(codes == code))
        out[places] = _cut_by_share(len(places), _dirichlet_share(alpha, clients, rng))
    return out


def _iid(codes: np.ndarray, clients: int, rng: np.random.Generator, _: float) -> np.ndarray:
    return rng.permutation(np.arange(len(codes)) % clients)


def _quantity(codes: np.ndarray, clients: int, rng: np.random.Generator, alpha: float) -> np.ndarray:
    """Classes mixed evenly, sizes as unequal as a Dirichlet(alpha) draw."""
    return rng.permutation(_cut_by_share(len(codes), _dirichlet_share(alpha, clients, rng)))


def _shards(codes: np.ndarray, clients: int, rng: np.random.Generator, per_client: float) -> np.ndarray:
    """Sorted by class, cut into equal shards, `per_client` of them dealt to each client (McMahan et al. 2017)."""
    count = clients * int(per_client)
    if count > len(codes):
        raise PartitionError(f"{len(codes)} samples cannot be cut into {count} shards; ask for fewer clients or shards")
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    owner = rng.permutation(np.arange(count) % clients)
    out = np.empty(len(codes), dtype=np.int64)
    out[order] = owner[_cut_by_share(len(codes), np.full(count, 1 / count))]
    return out


def _classes(codes: np.ndarray, clients: int, rng: np.random.Generator, per_client: float) -> np.ndarray:
    """Pathological: every client holds `per_client` classes, and the samples of a class are split evenly among its holders."""
    known = np.unique(codes)
    k = int(per_client)
    if k > len(known):
        raise LabelsError(f"a client cannot hold {k} of {len(known)} classes; ask for at most {len(known)}")
    if clients * k < len(known):
        raise LabelsError(f"{clients} clients with {k} classes each cannot hold all {len(known)}; ask for more of either")
    # deal the classes round and round, each time in a new order, so that all are held and about equally often; one that a client
    # already has goes back on top for the next client
    cards: list[int] = []
    holders: dict[int, list[int]] = {int(code): [] for code in known}
    for client in range(clients):
        hand: list[int] = []
        back: list[int] = []
        while len(hand) < k:
            cards = cards or rng.permutation(known).tolist()
            card = cards.pop()
            (back if card in hand else hand).append(card)
        cards += back
        for card in hand:
            holders[card].append(client)
    out = np.empty(len(codes), dtype=np.int64)
    for code in known:
        places = rng.permutation(np.flatnonzero(codes == code))
        mine = holders[int(code)]
        out[places] = np.asarray(mine)[_cut_by_share(len(places), np.full(len(mine), 1 / len(mine)))]
    return out


_CUTS: dict[str, Callable[[np.ndarray, int, np.random.Generator, float], np.ndarray]] = {
    "dirichlet": _dirichlet,
    "classes": _classes,
    "shards": _shards,
    "quantity": _quantity,
    "iid": _iid,
}
_TAKES_VALUE = ("dirichlet", "classes", "shards", "quantity")
USAGE = "dirichlet:ALPHA, classes:K, shards:K, quantity:ALPHA, iid or natural"
