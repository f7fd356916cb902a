"""Counts: values on the scale of a link, which is chosen by left-out likelihood from sums alone.

    columns    y, sqrt(1 + y), log(1 + y)                    and sqrt(log(1 + y)), whose squares add up to sum log(1 + y)
    s_g        root mean square of the left-out errors of g(y), every leverage taken at its mean, as GCV does
    L_g        -n log s_g + sum log g'(y)                    the counts' likelihood, normal around the fit on the link's scale
    g          the link with the largest L_g, the same for all clients
    head       the mean count of what lies around the value as far as left-out samples do, never below zero

From there on it is the method on g(y). A client alone chooses its link by its own sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.errors import MethodError
from gramfold.federation import Samples
from gramfold.heads import Head
from gramfold.heads.counts import LINKS, Counts
from gramfold.methods.phases import Phase
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData
from gramfold.methods.targets.columns import OnColumns, of_column
from gramfold.moments import Moments
from gramfold.solve.units import PLAIN, Units
from gramfold.wire.record import Record

NAMES = tuple(LINKS)
WIDTH = len(NAMES) + 1
"""Of the columns: those of the links, and that of the logarithms."""
LEAST = 1e-9
"""The least spread of left-out errors: the logarithm of none is no number."""


@dataclass(frozen=True)
class Counted(Record, kind="targets/counted"):
    """What clients are sent, with the link that was chosen and how far left-out samples of all clients are off on its scale."""

    inner: Record
    link: str
    spread: float

    @property
    def chosen(self) -> Any:
        return {**(getattr(self.inner, "chosen", None) or {}), "link": self.link}

    def pooled_root(self, along: Any) -> Any:
        ask = getattr(self.inner, "pooled_root", None)
        return None if ask is None else ask(along)


def chosen_link(total: Moments, beta: float | None = None, units: Units = PLAIN) -> tuple[str, float]:
    """The link of the largest left-out likelihood, and the spread of its left-out errors."""
    logarithms, n = float(total.squares[len(NAMES)]), total.weight
    slopes = {"identity": 0.0, "root": -n * np.log(2) - logarithms / 2, "log": -logarithms}
    found = {}
    for place, name in enumerate(NAMES):
        spread = max(float(PooledRidge.of(of_column(total, place), beta, units).spread[0]), LEAST)
        found[name] = (slopes[name] - n * np.log(spread), spread)
    best = max(NAMES, key=lambda name: found[name][0])
    return best, found[best][1]


@dataclass(frozen=True)
class Counting(OnColumns):
    """The method on counts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probabilistic", False)

    @property
    def outputs(self) -> int:
        return WIDTH

    def columns(self, targets: np.ndarray) -> np.ndarray:
        counts = targets.reshape(len(targets), 1)
        return np.concatenate([*(link.there(counts) for link in LINKS.values()), np.sqrt(np.log1p(counts))], axis=1)

    @property
    def answer(self) -> Callable[[Any | None, Any], Record] | None:
        inner = self.inner.answer
        if inner is None:
            return None

        def answered(upload: Any | None, broadcast: Counted) -> Record:
            own = None if upload is None else of_column(upload, NAMES.index(broadcast.link))
            return replace(broadcast, inner=inner(own, broadcast.inner))

        return answered

    def solved(self, total: Any, broadcast: Any) -> Counted:
        if not isinstance(total, Moments):
            raise MethodError(f"{self.name} folds no plain moments, which counts need; use pace, afl, apfl, fedhip or local")
        link, spread = chosen_link(total, getattr(self.inner, "penalty", None), broadcast.space.units())
        return Counted(self.inner.aggregate(of_column(total, NAMES.index(link)), self.narrowed_to_one(broadcast)), link, spread)

    def narrowed_to_one(self, begun: Any) -> Any:
        return replace(begun, space=replace(begun.space, outputs=1))

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Any) -> list[Head]:
        if isinstance(broadcast, Counted):
            return self._heads(clients, broadcast)
        assert not isinstance(broadcast, Phase)
        return [self._alone(client, broadcast) for client in clients]

    def _alone(self, client: ClientData, begun: Any) -> Head:
        """The head of a client in a method without rounds."""
        own = begun.space.fold(self.on_columns(client))
        link, spread = chosen_link(own, None, begun.space.units())
        return self._heads([client], Counted(self.narrowed_to_one(begun), link, spread))[0]

    def _heads(self, clients: Sequence[ClientData], broadcast: Counted) -> list[Head]:
        place = NAMES.index(broadcast.link)
        on_scale = []
        for client in map(self.on_columns, clients):
            column = client.train.targets[:, place : place + 1]
            on_scale.append(
                replace(client, train=Samples(client.train.inputs, column, client.train.weights, client.train.blocks))
            )
        return [self._together(head, broadcast) for head in self.inner.personalize_many(on_scale, broadcast.inner)]

    def global_head(self, broadcast: Any) -> Head | None:
        head = self.inner.global_head(broadcast.inner) if isinstance(broadcast, Counted) else None
        return None if head is None else self._together(head, broadcast)

    def _together(self, head: Head, broadcast: Counted) -> Head:
        spread = float(head.chosen.get("leave_one_out_rmse", broadcast.spread))
        chosen = {key: value for key, value in head.chosen.items() if "leave_one_out" not in key}  # on the link's scale
        part = replace(head, chosen={})
        return Counts(labels=None, method=self.name, chosen=chosen, parts=(part,), link=broadcast.link, spread=spread)
