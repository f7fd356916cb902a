"""What a run leaves at the server: enough for a head for anyone, and for the exact model once samples come or go."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gramfold.errors import GramfoldError, LearnedFeaturesWarning
from gramfold.federation import Samples, Task
from gramfold.heads import Head
from gramfold.methods import ClientData, Method
from gramfold.methods.finishing import finished
from gramfold.methods.protocol import Revisable
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.uploads import GroupedMoments
from gramfold.wire.record import Record

Summed = Moments | GroupedMoments
"""Sums that samples can be added to and taken out of."""
KEPT_BYTES = 64 * 2**20
"""A sum of moments up to this size stays with the result by default: about 2,800 features."""


@dataclass(frozen=True)
class Run:
    """The method, its task, and what all clients were sent last; for a method of one round also the sum behind that."""

    method: Method
    task: Task
    broadcast: Record = field(repr=False)
    total: Summed | None = None
    """The sum of the clients' moments, where it was kept."""
    samples: Mapping[str, int] = field(default_factory=dict)
    """How many training samples of each client are in the sum."""

    def given(self, name: str, X: Array, y: Array) -> Samples:
        """A client's samples as methods see them, checked."""
        samples = self.task.admit(name, X, y)
        if not samples.n:
            raise GramfoldError(f"client {name!r} has no samples")
        return samples

    def head(self, name: str, train: Samples) -> Head:
        """The head of a client with these training samples: one that is in the sum, or one that comes afterwards."""
        counted = self.samples.get(name, 0)
        if counted and counted != train.n:
            raise GramfoldError(f"{counted} samples of client {name!r} are in this model and {train.n} were given; give those")
        client, broadcast = ClientData(name, train, contributed=counted > 0), self.broadcast
        if client.contributed and self.method.answer is not None:  # from what it sent
            broadcast = self.method.answer(self.method.local(client, self._revisable.again(self.task)), broadcast)
        return finished(self.method.personalize(client, broadcast), self.method, client, broadcast, self.task)

    def updated(self, add: Mapping[str, Samples], forget: Mapping[str, Samples]) -> "Run":
        """The run of the same clients with some samples more, and without some that are in it. Exact: it is sums."""
        total: Any = self._total()
        counted, begin = dict(self.samples), self._revisable.again(self.task)
        for name, train in forget.items():
            left = counted.pop(name, 0) - train.n
            if left < 0:
                raise GramfoldError(f"cannot forget {train.n} samples of client {name!r}: {left + train.n} are in this model")
            if left:
                self._require_by_sample(name)
            total = total - self._upload(name, train, begin)
            counted |= {name: left} if left else {}
        for name, train in add.items():
            if name in counted:
                self._require_by_sample(name)
            total = total + self._upload(name, train, begin)
            counted[name] = counted.get(name, 0) + train.n
        if not total.n:
            raise GramfoldError("no sample would be left in the model")
        if forget and self._revisable.learned:
            warnings.warn(
                "these samples are out of the model, but its features, or groups of clients, were learned with them; for what "
                "never saw them run again without them, or use learn=False, groups=False and personal=False",
                LearnedFeaturesWarning,
                stacklevel=4,
            )
        return replace(self, broadcast=self.method.aggregate(total, begin), total=total, samples=counted)

    def _require_by_sample(self, name: str) -> None:
        if not self._revisable.by_sample:
            raise GramfoldError(
                f"what client {name!r} takes out of its targets, or its group, depends on all of its samples: give all that are "
                "in the model to forget and all that shall be in it to add, in one update; or run with own_parts=False and "
                "groups=False"
            )

    def _upload(self, name: str, train: Samples, begin: Record) -> Summed:
        upload: Summed = self.method.local(ClientData(name, train), begin)
        return upload

    def _total(self) -> Summed:
        if self.total is not None:
            return self.total
        if self.method.rounds == 0:
            raise GramfoldError(f"{self.method.name} shares nothing between clients: there is nothing to add to or to forget")
        _ = self._revisable
        raise GramfoldError(
            f"this result does not hold the sum of the moments (above {KEPT_BYTES >> 20} MB it is only kept on request); "
            "run again with keep_total=True"
        )

    @property
    def _revisable(self) -> Revisable:
        found = self.method.revisable(self.broadcast)
        if found is None:
            name, rounds = self.method.name, self.method.rounds
            raise GramfoldError(f"{name} has {rounds} rounds; only a method of one sum can add and forget exactly")
        return found


def worth_keeping(method: Method, broadcast: Record, total: object, wanted: bool | None) -> bool:
    """Whether a result should hold this sum, of the round that a broadcast began; where nobody said, the small ones."""
    if not isinstance(total, Summed) or wanted is False or method.revisable(broadcast) is None:
        return False
    groups = len(total.groups) if isinstance(total, GroupedMoments) else 1
    return wanted is True or 8 * groups * total.dim * (total.dim + total.outputs) <= KEPT_BYTES


def in_memory(total: Summed) -> Summed:
    """The same moments as NumPy arrays: updates are small work, done on the CPU."""
    if isinstance(total, GroupedMoments):
        return GroupedMoments({group: _in_memory(part) for group, part in total.groups.items()}, total.fingerprints)
    return _in_memory(total)


def _in_memory(total: Moments) -> Moments:
    if not arrays.is_torch(total.lower_gram):
        return total
    gram, cross, squares = (arrays.to_numpy(part) for part in (total.gram, total.cross, total.squares))
    space: dict[str, Any] = {"labels": total.labels, "fingerprint": total.fingerprint, "exact_counts": False}
    return Moments.from_arrays(gram, cross, squares, total.n, **space)
