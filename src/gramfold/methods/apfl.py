"""APFL, the dual-stream one (Fan et al., arXiv 2508.10732; not the adaptive PFL of 2020).

both     Phi = phi(Z), Psi = psi(Z)                         fixed maps shared by seed
server   P = (sum Phi'Phi + beta I)^-1 sum Phi'Y            primary stream: everybody
client   R_k = (Psi_k'Psi_k + gamma I)^-1 Psi_k'(Y_k - Phi_k P)     refinement stream: each alone, in the dual where n_k < d2
head     phi(x) P + lam psi(x) R_k
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramfold.federation import Task
from gramfold.heads import Head, Stream
from gramfold.methods.afl import AFL
from gramfold.methods.analytic import FOLDED, MapLike, described_map, draw_map, extend, labels_of, solve_pooled, target_rows
from gramfold.methods.protocol import ClientData
from gramfold.methods.selection import Candidate, choose, is_classification
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.leave_one_out import Kernel, mean_leverage
from gramfold.wire import Packet

GAMMAS = np.logspace(-2.5, 1, 8)
"""Penalties tried, in units of the refinement kernel's mean diagonal."""
LAMBDAS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


@dataclass(frozen=True)
class APFL(AFL):
    """`features`, `refinement`: the maps of the two streams (equal ones are one and the same draw). `beta`, `gamma`: their
    penalties. `lam`: the refinement's weight.

    None: beta by GCV, gamma and lam each client's own by leave-one-out.
    """

    name: ClassVar[str] = "apfl"
    summary: ClassVar[str] = "dual-stream least squares: a shared head plus each client's own refinement"
    paper: ClassVar[str] = "Fan et al., arXiv 2508.10732"

    refinement: MapLike = "relu:1024"
    gamma: float | None = None
    lam: float | None = None

    def __post_init__(self) -> None:
        self.check_penalties("beta", "gamma", "lam")

    def begin(self, task: Task) -> Packet:
        packet = super().begin(task)
        # one map for both streams is one map: it is then drawn, and applied, once
        stream = "features" if self.refinement == self.features else "refinement"
        refinement = draw_map(self.refinement, task, stream)
        return Packet({}, {**packet.meta, "refinement": refinement.description})

    def aggregate(self, total: Moments, broadcast: Packet) -> Packet:
        beta, factor = solve_pooled(total, self.beta)
        meta = {"chosen": {"beta": beta}, "leverage": mean_leverage(factor, beta, total.n)}
        return extend(broadcast, {"weights": factor.solve(total.cross)}, meta)

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        phi, psi = described_map(broadcast), described_map(broadcast, "refinement")
        primary = broadcast["weights"]
        rows = phi(client.train.inputs)
        base = rows @ primary
        targets = target_rows(client.train, broadcast, rows)
        rows = rows if psi is phi else psi(client.train.inputs)
        gamma, lam, chosen = self.gamma, self.lam, dict(broadcast.meta["chosen"])
        if gamma is None or lam is None:
            # the refinement is left out exactly, the base going by its mean leverage
            leverage = broadcast.meta["leverage"] if FOLDED in client.memory else 0.0
            honest = targets - (targets - base) / (1.0 - leverage)
            candidates = left_out_blends(Kernel.of(rows), targets - base, honest, gamma, lam)
            chosen |= choose(candidates, targets, is_classification(broadcast.meta))
            gamma, lam = chosen["gamma"], chosen["lam"]
        personal = ridge_from_rows(rows, targets - base, gamma)
        if psi is phi:
            personal *= lam
            personal += primary
            streams = [Stream(phi, personal)]
        else:
            streams = [Stream(phi, primary), Stream(psi, personal, lam)]
        return Head(streams, labels_of(broadcast), method=self.name, chosen=chosen)


def left_out_blends(
    kernel: Kernel, residuals: Array, base: Array, gamma: float | None = None, lam: float | None = None
) -> Iterator[Candidate]:
    """base + lam * (what ridge on the other samples' residuals says of each), for every gamma and lam to be tried."""
    for penalty in map(float, GAMMAS * kernel.mean_diagonal) if gamma is None else [gamma]:
        fit = residuals - kernel.left_out_residuals(residuals, penalty)
        for weight in LAMBDAS if lam is None else [lam]:
            yield {"gamma": penalty, "lam": weight}, base + weight * fit
