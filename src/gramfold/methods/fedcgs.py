"""FedCGS (Guan et al., AAAI 2025, arXiv 2503.06962): one Gaussian head for all, from sums of features.

client   G_k, B_k and class counts                      as in AFL
server   class means, and the covariance T of all samples; the linear discriminant of both      see solve/gaussian
client   uses it

As in the paper's released code classes share the covariance of *all* samples, and nothing is shrunk. The paper's personal variant
trains each client's backbone towards the class means; with a frozen one there is nothing left to train.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.solve.gaussian import discriminant
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Gaussian(Record, kind="gaussian"):
    """A discriminant for all clients: `weights` (features x classes), and an `offset` for each class."""

    space: Space
    weights: Array
    offset: np.ndarray
    chosen: Mapping[str, Any]


@dataclass(frozen=True)
class FedCGS(Analytic):
    """One shared Gaussian head, exactly that of pooled data."""

    name: ClassVar[str] = "fedcgs"
    summary: ClassVar[str] = "one shared Gaussian head, with the covariance of all"
    paper: ClassVar[str] = "Guan et al., AAAI 2025, arXiv 2503.06962"
    probabilistic: ClassVar[bool] = True
    within: ClassVar[bool] = False
    """Whether the covariance is that within classes."""

    @property
    def shrinkage(self) -> float:
        """The part of the covariance that is replaced by equal variances."""
        return 0.0

    def begin(self, task: Task) -> Any:
        if task.labels is None:
            raise MethodError(f"{self.name} classifies; for regression use afl or pace")
        return super().begin(task)

    def solve(self, total: Moments, broadcast: Begin) -> Gaussian:
        one_unit = bool(broadcast.space.units().shared)
        weights, offset = discriminant(total.gram, total.cross, total.counts, self.shrinkage, self.within, one_unit)
        return Gaussian(broadcast.space, weights, offset, {})

    def personalize(self, client: ClientData, broadcast: Gaussian) -> Head:
        return self.shared(broadcast)

    def global_head(self, broadcast: Any) -> Head | None:
        return self.shared(broadcast) if isinstance(broadcast, Gaussian) else None

    def shared(self, broadcast: Gaussian) -> Head:
        head = broadcast.space.head(broadcast.weights, self.name, broadcast.chosen, 1.0)
        return replace(head, offset=np.asarray(broadcast.offset))
