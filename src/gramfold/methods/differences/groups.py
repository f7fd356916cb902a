"""Groups of clients that resemble each other, whatever mix of classes they have.

A client's point is the mean of its samples less what is to be expected of them: of their class, for classes; for values, how
their residuals of a linear fit go with each column. In units of the samples' own spread; of many columns DIRECTIONS at random. A
server that only sees a sum sees all points, but not whose they are: each is in a slot drawn by lot, and those that meet in one
are passed over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.linalg import block_diag

from gramfold.errors import GramfoldError
from gramfold.features import Map
from gramfold.federation import Samples
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import counting
from gramfold.moments import Moments
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.numerics import arrays, lots, seeds
from gramfold.numerics.arrays import Array
from gramfold.solve.groups import grouped, nearest_centres
from gramfold.uploads import GroupedMoments, NamedSums
from gramfold.wire.record import Record

DIRECTIONS = 32
"""Numbers of a point, at most."""
WIDE = 128
"""Inputs beyond which the samples' spread is asked of so many directions at random."""
SHRINKAGE = 0.1
"""Of the samples' covariance towards a multiple of the identity, in units of its mean eigenvalue."""
SLOTS, LEAST_SLOTS = 4, 64
"""Slots for points: so many for each client, and at least."""
POINTS = "points"
TELLING = 3
"""Columns by which the result says what sets a group apart."""


@dataclass(frozen=True)
class Summary(Record, kind="differences/summary"):
    """What a client's point is made of: `plain`, the map to [1, x]; `expected`, the mean of each class, or the linear fit's
    weights (inputs + 1 x outputs); `whiten` (numbers of a sample x directions)."""

    plain: Map
    expected: Array
    whiten: Array
    classification: bool
    slots: int = LEAST_SLOTS

    @classmethod
    def of(cls, plain: Map, total: NamedSums, classification: bool, seed: int) -> "Summary":
        gram, cross = arrays.to_numpy(total["gram"]), arrays.to_numpy(total["cross"])
        n, clients = gram[0, 0], float(arrays.to_numpy(total["clients"])[0])
        if classification:
            means = cross / np.maximum(cross[0], 1e-300)
            spread = gram - (means * cross[0]) @ means.T
            expected, scatter = means, [spread[1:, 1:] / n]
        else:
            ridge = gram + 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram))
            expected = np.linalg.solve(ridge, cross)
            left = (arrays.to_numpy(total["squares"]) - (expected * (2 * cross - gram @ expected)).sum(0)).clip(1e-300) / n
            scatter = [each * gram / n for each in left]
        slots = max(LEAST_SLOTS, SLOTS * int(clients))
        return cls(plain, expected, _whitening(scatter, seed), classification, slots)

    def point(self, train: Samples) -> tuple[np.ndarray, float]:
        """A client's, and by which variance in every direction it is chance."""
        whiten, expected = arrays.to_numpy(self.whiten), arrays.to_numpy(self.expected)
        total, squares, weight = np.zeros(whiten.shape[1]), 0.0, 0.0
        for block in arrays.blocks(train.n, expected.shape[0]):
            rows = arrays.to_numpy(self.plain(train.inputs[block]))
            targets = arrays.to_numpy(train.targets[block])
            if self.classification:
                apart = (rows - expected.T[targets])[:, 1:]
            else:
                residuals = targets - rows @ expected
                apart = (residuals[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
            once = np.ones(len(rows)) if train.weights is None else arrays.to_numpy(train.weights[block])
            along = apart @ whiten
            total, weight = total + once @ along, weight + once.sum()
            squares += float(once @ (along**2).sum(1))
        return total / weight, squares / whiten.shape[1] / weight**2

    def columns_of(self, centres: np.ndarray) -> list[dict[str, float]] | None:
        """What sets groups apart, where points are of all columns: by group the columns in which its samples are most unlike what
        is expected of their classes, in standard deviations. None where columns are many, or targets are values."""
        whiten = arrays.to_numpy(self.whiten)
        if not self.classification or len(whiten) > DIRECTIONS:
            return None
        apart = (centres - centres.mean(0)) @ np.linalg.pinv(whiten)
        most = np.argsort(-np.abs(apart), axis=1)[:, :TELLING]
        return [{str(int(j)): round(float(row[j]), 2) for j in order} for row, order in zip(apart, most, strict=True)]

    def upload(self, train: Samples) -> NamedSums:
        point, noise = self.point(train)
        slots = np.zeros((self.slots, len(point) + 2))
        drawn = int(np.bitwise_xor.reduce(lots.lots(train.inputs))) % self.slots
        slots[drawn] = [1.0, noise, *point]
        return NamedSums({POINTS: slots})

    @property
    def shape(self) -> tuple[int, int]:
        return self.slots, self.whiten.shape[1] + 2

    def groups(self, total: NamedSums) -> "Groups | None":
        """Those of the points; None where there is one."""
        slots = arrays.to_numpy(total[POINTS])
        alone = slots[np.abs(slots[:, 0] - 1.0) < 1e-3]
        if len(alone) < 3:
            return None
        found = grouped(alone[:, 2:], alone[:, 1].clip(1e-12))
        if found.count == 1:
            return None
        sizes = np.bincount(found.labels, minlength=found.count).astype(float)
        evidence = {str(count): round(nats - found.evidence[1], 1) for count, nats in found.evidence.items()}
        return Groups(found.count, self, found.centres, sizes, found.tree, evidence)


@dataclass(frozen=True)
class Groups(Record, kind="differences/groups"):
    """`count` groups, and how a client finds its own: by its point, or, where they are given, by its name. One that is named
    nowhere is in none."""

    count: int
    summary: Summary | None = None
    centres: Array | None = None
    sizes: Array | None = None
    """Clients in each, as far as their points were told apart."""
    tree: Array | None = None
    """Ward's, of the points, as SciPy's `linkage` gives it."""
    evidence: Mapping[str, float] | None = None
    """By the number of groups: how much likelier left-out points are than in one group, in nats."""
    named: Mapping[str, int] | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def given(cls, by_name: Mapping[str, Any]) -> "Groups":
        names = tuple(sorted({str(group) for group in by_name.values()}))
        places = {group: place for place, group in enumerate(names)}
        return cls(len(names), named={client: places[str(group)] for client, group in by_name.items()}, names=names)

    def place(self, name: str, train: Samples) -> int | None:
        """The group of a client with these training samples."""
        if self.named is not None:
            return self.named.get(name)
        assert self.summary is not None
        point, _ = self.summary.point(train)
        return int(nearest_centres(point[None], arrays.to_numpy(self.centres))[0])

    # --- moments by group ---

    def grouped(self, client: ClientData, moments: Moments) -> GroupedMoments:
        """A client's moments in its group's slot; the last is for those in none."""
        group = self.place(client.name, counting(client))
        return GroupedMoments({self.count if group is None else group: moments}, self.fingerprints(moments.fingerprint))

    def fingerprints(self, fingerprint: str) -> list[str]:
        return [fingerprint] * (self.count + 1)

    @property
    def described(self) -> dict[str, Any]:
        if self.named is not None:
            return {"groups": self.count, "group_names": list(self.names)}
        assert self.summary is not None
        centres = arrays.to_numpy(self.centres)
        merges = [[int(a), int(b), round(float(height), 3)] for a, b, height, _ in linkage(centres, "average")]
        found = {"groups": self.count, "group_evidence": dict(self.evidence or {}), "group_tree": merges}
        told = self.summary.columns_of(centres)
        return found if told is None else {**found, "group_columns": told}


def is_groups(given: Any) -> bool:
    """Whether this says the group of clients by name."""
    return isinstance(given, Mapping) and bool(given) and all(isinstance(each, str) for pair in given.items() for each in pair)


def sums(plain: Map, train: Samples, classes: int | None) -> NamedSums:
    """What a summary is made of: a client's moments of [1, x], and that it is one."""
    gram = cross = squares = 0.0
    for block in arrays.blocks(train.n, plain.dim):
        rows = arrays.to_numpy(plain(train.inputs[block]))
        targets = arrays.to_numpy(train.targets[block])
        targets = np.eye(classes)[targets] if classes is not None else targets.astype(float)
        weighted = rows if train.weights is None else rows * arrays.to_numpy(train.weights[block])[:, None]
        gram, cross = gram + rows.T @ weighted, cross + weighted.T @ targets
        squares = squares + (targets**2 * (1.0 if train.weights is None else train.weights[block][:, None])).sum(0)
    return NamedSums({"gram": gram, "cross": cross, "squares": squares, "clients": np.ones(1)})


def shapes(plain: Map, outputs: int) -> dict[str, tuple[int, ...]]:
    return {"gram": (plain.dim, plain.dim), "cross": (plain.dim, outputs), "squares": (outputs,), "clients": (1,)}


def check_sums(upload: NamedSums) -> None:
    """Raise unless these are the moments of some samples of one client."""
    gram = arrays.to_numpy(upload["gram"])
    n, diagonal = gram[0, 0], np.diagonal(gram)
    if not 0 < n <= MOST_SAMPLES or arrays.to_numpy(upload["clients"])[0] != 1.0 or diagonal.min() < 0:
        raise GramfoldError("what it says of its samples is not what samples can be")


def check_points(upload: NamedSums) -> None:
    """Raise unless one point is in one slot."""
    slots = arrays.to_numpy(upload[POINTS])
    used = slots[slots.any(1)]
    if len(used) != 1 or used[0, 0] != 1.0 or not used[0, 1] >= 0:
        raise GramfoldError("expected one point in one slot")


def _whitening(scatter: list[np.ndarray], seed: int) -> np.ndarray:
    """To directions along which samples vary by one, exactly: where chance moves points farther in some, it makes groups of
    clients that are alike. Of more than DIRECTIONS so many at random; where fewer are filled, those."""
    parts = []
    for each in scatter:
        values, vectors = np.linalg.eigh(each)
        values = values.clip(0.0)
        parts.append(vectors / np.sqrt(values + SHRINKAGE * values.mean() + 1e-300))
    turned = np.asarray(block_diag(*parts))
    if len(turned) > DIRECTIONS:
        turned = turned @ seeds.frozen(seed, "groups/directions").standard_normal((len(turned), DIRECTIONS))
    values, vectors = np.linalg.eigh(turned.T @ block_diag(*scatter) @ turned)
    filled = values > 1e-9 * values[-1]
    return np.asarray(turned @ (vectors[:, filled] / np.sqrt(values[filled])))
