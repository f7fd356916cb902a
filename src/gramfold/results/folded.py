"""What a run leaves at the server: enough for a head for anyone, and for the exact model once samples come or go."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gramfold.errors import LearnedFeaturesWarning, ResultError
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
    uploads: Mapping[str, Summed] = field(default_factory=dict, repr=False)
    """What of the sum is each client's, where that was kept."""

    def given(self, name: str, X: Array, y: Array) -> Samples:
        """A client's samples as methods see them, checked."""
        samples = self.task.admit(name, X, y)
        if not samples.n:
            raise ResultError(f"client {name!r} has no samples")
        return samples

    def head(self, name: str, train: Samples) -> Head:
        """The head of a client with these training samples: one that is in the sum, or one that comes afterwards."""
        counted = self.samples.get(name, 0)
        if counted and counted != train.n:
            raise ResultError(f"{counted} samples of client {name!r} are in this model and {train.n} were given; give those")
        client, broadcast = ClientData(name, train, contributed=counted > 0), self.broadcast
        if client.contributed and self.method.answer is not None:  # from what it sent
            broadcast = self.method.answer(self.method.sent(client, self._revisable.again(self.task)), broadcast)
        return finished(self.method.personalize(client, broadcast), self.method, client, broadcast, self.task)

    def updated(self, add: Mapping[str, Samples], forget: Mapping[str, Samples]) -> "Run":
        """The run of the same clients with some samples more, and without some that are in it. Exact: it is sums."""
        total: Any = self._total()
        counted, begin, kept = dict(self.samples), self._revisable.again(self.task), dict(self.uploads)
        for name, train in forget.items():
            left = counted.pop(name, 0) - train.n
            if left < 0:
                raise ResultError(f"cannot forget {train.n} samples of client {name!r}: {left + train.n} are in this model")
            if left:
                self._require_by_sample(name)
            upload: Any = self._upload(name, train, begin)
            total = total - upload
            counted |= {name: left} if left else {}
            mine: Any = kept.pop(name, None)
            kept |= {name: mine - upload} if left and mine is not None else {}
        for name, train in add.items():
            if name in counted:
                self._require_by_sample(name)
            upload = self._upload(name, train, begin)
            total = total + upload
            if self.uploads:
                kept[name] = kept[name] + upload if name in kept else upload
            counted[name] = counted.get(name, 0) + train.n
        return self._changed(total, counted, kept, begin, fewer=bool(forget))

    def without(self, names: Collection[str]) -> "Run":
        """The run without these clients, whose uploads were kept. Exact: it is sums."""
        total: Any = self._total()
        for name in names:
            if name not in self.uploads:
                known = f"there are: {', '.join(list(self.uploads)[:8])}" if self.uploads else "run with keep_clients=True"
                raise ResultError(f"this result does not hold what client {name!r} sent; {known}")
            total = total - self.uploads[name]
        counted = {name: n for name, n in self.samples.items() if name not in names}
        kept = {name: upload for name, upload in self.uploads.items() if name not in names}
        return self._changed(total, counted, kept, self._revisable.again(self.task), fewer=True)

    def with_labels(self, labels: Sequence[int | str]) -> "Run":
        """The run of a task with these further classes, which nobody has yet; `updated` then adds their samples."""
        known, total = self.task.labels, self._total()
        if known is None:
            raise ResultError("labels= is for classes; this model predicts values")
        more = [label for label in dict.fromkeys(labels) if label not in known]
        if not more:
            return self
        if len({type(label) for label in (*known, *more)}) > 1:
            raise ResultError(f"labels= mixes class numbers and class names; this model's are {known[0]!r}, ...")
        wider = (*known, *more)
        run = replace(self, task=replace(self.task, labels=wider, outputs=len(wider)), total=total.with_labels(wider))
        return replace(run, uploads={name: part.with_labels(wider) for name, part in self.uploads.items()})

    def _changed(self, total: Any, counted: Mapping[str, int], kept: Mapping[str, Summed], begin: Record, fewer: bool) -> "Run":
        """The run of another sum."""
        if not total.n:
            raise ResultError("no sample would be left in the model")
        if fewer and self._revisable.learned:
            warnings.warn(
                "these samples are out of the model, but its features, or groups of clients, were learned with them; for what "
                "never saw them run again without them, or use learn=False, groups=False and personal=False",
                LearnedFeaturesWarning,
                stacklevel=5,
            )
        return replace(self, broadcast=self.method.aggregate(total, begin), total=total, samples=counted, uploads=kept)

    def _require_by_sample(self, name: str) -> None:
        if not self._revisable.by_sample:
            raise ResultError(
                f"what client {name!r} takes out of its targets, or its group, depends on all of its samples: give all that are "
                f"in the model to forget and all that shall be in it to add, in one update; or {self.method.remedy('by sample')}"
            )

    def _upload(self, name: str, train: Samples, begin: Record) -> Summed:
        upload: Summed = self.method.local(ClientData(name, train), begin)
        return upload

    def _total(self) -> Summed:
        if self.total is not None:
            return self.total
        if self.method.rounds == 0:
            raise ResultError(f"{self.method.name} shares nothing between clients: there is nothing to add to or to forget")
        _ = self._revisable
        raise ResultError(
            f"this result does not hold the sum of the moments (above {KEPT_BYTES >> 20} MB it is only kept on request); "
            "run again with keep_total=True"
        )

    @property
    def _revisable(self) -> Revisable:
        if self.method.rounds_numbers:
            raise ResultError(f"samples whose numbers travelled in {self.method.precision} do not come out of a sum exactly")
        found = self.method.revisable(self.broadcast)
        if found is None:
            name, rounds = self.method.name, self.method.rounds
            raise ResultError(f"{name} has {rounds} rounds; only a method of one sum can add and forget exactly")
        return found


def worth_keeping(method: Method, broadcast: Record, total: object, wanted: bool | None) -> bool:
    """Whether a result should hold this sum, of the round that a broadcast began; where nobody said, the small ones."""
    if not isinstance(total, Summed) or wanted is False or method.rounds_numbers or method.revisable(broadcast) is None:
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
