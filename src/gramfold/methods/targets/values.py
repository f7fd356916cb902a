"""Several labels as values of 0 and 1: for methods whose heads are ridges, exactly theirs on each column."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.heads import Head
from gramfold.heads.several import SeveralLabels
from gramfold.methods.protocol import ClientData
from gramfold.methods.targets.columns import OnColumns
from gramfold.moments import Moments
from gramfold.wire.record import Record


@dataclass(frozen=True)
class SeveralValues(OnColumns):
    """The method's head of all columns; a sample has the labels of which its value is at least a half."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probabilistic", False)

    @property
    def outputs(self) -> int:
        return len(self.names)

    def columns(self, targets: np.ndarray) -> np.ndarray:
        return targets

    @property
    def answer(self) -> Any:
        return self.inner.answer

    def solved(self, total: Moments, broadcast: Any) -> Record:
        made: Record = self.inner.aggregate(total, broadcast)
        return made

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Any) -> list[Head]:
        return [self._together(head) for head in self.inner.personalize_many(clients, broadcast)]

    def global_head(self, broadcast: Any) -> Head | None:
        head = self.inner.global_head(broadcast)
        return None if head is None else self._together(head)

    def _together(self, head: Head) -> Head:
        chosen = {key: value for key, value in head.chosen.items() if "leave_one_out" not in key}  # of values
        part = replace(head, chosen={})
        return SeveralLabels(labels=self.names, method=self.name, chosen=chosen, parts=(part,), thresholds=(0.0,) * self.outputs)
