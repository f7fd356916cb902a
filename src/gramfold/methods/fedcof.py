"""FedCOF (Goswami et al., NeurIPS 2025, arXiv 2412.14326): a ridge whose Gram matrix is estimated from clients' class means.

client   s_kc, n_kc                              the sum of its features of each class that it has, and their number
server   V_c = sum_k n_kc (m_kc - m_c)(m_kc - m_c)' / (K_c - 1) + gamma v I        m: means; K_c clients have class c
         G   = sum_c (n_c - 1) V_c + n m m'                                    without the scatter between classes
         w_c = G^-1 n_c m_c, scaled to length one
client   uses W

For samples that are dealt at random V_c - gamma v I is unbiased for the covariance of class c. v is the mean of the estimated
variances (the released code has v = 1, so that gamma there depends on the unit of the features). The server sees every client's
class means, so that no secure sum can hide them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.analytic import Shared
from gramfold.methods.asked import Asked
from gramfold.methods.protocol import ClientData, Method
from gramfold.methods.spaces import MapLike, Space, counting, draw_map, plain_term
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.renamed import renamed
from gramfold.solve.ridge import factorise
from gramfold.solve.temperature import fit_temperature
from gramfold.uploads import PerClient, require_shapes
from gramfold.wire.record import Record


@dataclass(frozen=True)
class ClassSums(Record, Asked, kind="fedcof"):
    """The features in which sums of classes are asked for."""

    space: Space

    def check(self, upload: Any) -> None:
        if not isinstance(upload, PerClient):
            raise MethodError(f"expected sums of classes, got {upload.kind}")
        classes = len(self.space.labels or ())
        for parcel in upload.parcels.values():
            held = arrays.to_numpy(parcel.get("classes", np.zeros(0)))
            whole = held.dtype.kind in "iu" and held.ndim == 1 and len(held) > 0
            if not whole or not np.isin(held, np.arange(classes)).all() or len(np.unique(held)) != len(held):
                raise MethodError(f"expected sums of some of {classes} classes, each once")
            sizes = {"classes": held.shape, "sums": (self.space.map.dim, len(held)), "counts": held.shape}
            require_shapes(parcel, sizes)
            if not (arrays.to_numpy(parcel["counts"]) >= 1).all():
                raise MethodError("a class of no samples has no sum to send")


@renamed(gamma="penalty")
@dataclass(frozen=True)
class FedCOF(Method):
    """One shared head, for as many bytes as class means take. `features`: the map; None: a linear one without an intercept.
    `penalty`: how much of the mean variance is added to every class's."""

    name: ClassVar[str] = "fedcof"
    summary: ClassVar[str] = "one shared head, made of clients' class means alone"
    paper: ClassVar[str] = "Goswami et al., NeurIPS 2025, arXiv 2412.14326"
    penalties: ClassVar[tuple[str, ...]] = ("penalty",)
    probabilistic: ClassVar[bool] = True

    features: MapLike | None = None
    penalty: float = 1.0

    def revisable(self, broadcast: Any) -> None:
        """A sum of outer products of class means, one for each client, is no sum over samples."""

    def begin(self, task: Task) -> ClassSums:
        if task.labels is None:
            raise MethodError("fedcof classifies; for regression use afl or pace")
        return ClassSums(Space.of(draw_map(self.features or plain_term(task), task), task))

    def local(self, client: ClientData, broadcast: ClassSums) -> PerClient:
        train, space = counting(client), broadcast.space
        codes, sums = arrays.to_numpy(train.targets), None
        for block in arrays.blocks(train.n, space.map.dim):
            part = arrays.class_sums(space.map(train.inputs[block]), codes[block], len(space.labels or ()))
            sums = part if sums is None else sums + part
        assert sums is not None
        counts = np.bincount(codes, minlength=sums.shape[1])
        held = np.flatnonzero(counts)
        return PerClient({client.name: {"classes": held, "sums": sums[:, held], "counts": counts[held]}})

    def asked(self, broadcast: Any) -> Asked:
        asked: Asked = broadcast if isinstance(broadcast, ClassSums) else super().asked(broadcast)
        return asked

    def aggregate(self, total: PerClient, broadcast: ClassSums) -> Shared:
        weights = solved(list(total.in_order()), len(broadcast.space.labels or ()), self.penalty)
        return Shared(broadcast.space, weights, {})

    def personalize(self, client: ClientData, broadcast: Shared) -> Head:
        """The shared head; the temperature of its probabilities is the client's own."""
        train = counting(client)
        scores = broadcast.space.map(train.inputs) @ broadcast.weights
        return replace(self.global_head(broadcast), temperature=fit_temperature(scores, train.targets))

    def global_head(self, broadcast: Any) -> Head:
        head: Head = broadcast.space.head(broadcast.weights, self.name, broadcast.chosen, 1.0)
        return head


def solved(parcels: list[Mapping[str, Array]], classes: int, gamma: float) -> Array:
    """W (m x C) from every client's sums of classes."""
    some = parcels[0]["sums"]
    sums, counts, clients = arrays.zeros((some.shape[0], classes), some), np.zeros(classes), np.zeros(classes)
    for parcel in parcels:
        held = arrays.to_numpy(parcel["classes"])
        sums[:, held] += parcel["sums"]
        counts[held] += arrays.to_numpy(parcel["counts"])
        clients[held] += 1
    means = sums / arrays.like(np.maximum(counts, 1), sums)
    times = (counts - 1).clip(0) / np.maximum(clients - 1, 1)
    rows = []
    for parcel in parcels:
        held, sizes = arrays.to_numpy(parcel["classes"]), arrays.to_numpy(parcel["counts"])
        apart = parcel["sums"] / arrays.like(sizes, some) - means[:, held]
        rows.append((apart * arrays.like(np.sqrt(sizes * times[held]), some)).T)
    within, n = arrays.gram(arrays.concatenate(rows)), counts.sum()
    arrays.mirror(within)
    freedom = float((counts - 1).clip(0).sum())
    variance = float(within.diagonal().sum()) / max(freedom, 1.0) / len(within)
    mean = sums.sum(1) / n
    system = within + n * mean[:, None] * mean[None, :]
    arrays.add_to_diagonal(system, gamma * variance * freedom)
    weights = factorise(system).solve(sums)
    lengths = (weights**2).sum(0) ** 0.5
    return weights / (lengths + (lengths == 0))
