"""APFL, the dual-stream one (Fan et al., arXiv 2508.10732; not the adaptive PFL of 2020).

both     Phi = phi(Z), Psi = psi(Z)                         fixed maps shared by seed
server   P = (sum Phi'Phi + beta I)^-1 sum Phi'Y            primary stream: all clients
client   R_k = (Psi_k'Psi_k + gamma I)^-1 Psi_k'(Y_k - Phi_k P)     refinement stream: each alone, in the dual where n_k < d2
head     phi(x) P + lam psi(x) R_k
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.features import Map
from gramfold.federation import Task
from gramfold.heads import Head, Stream
from gramfold.methods.analytic import Analytic, MapLike, Space, counting, draw_map, root_weights, scaled, solve_pooled
from gramfold.methods.parts.refinement import left_out_blends
from gramfold.methods.parts.selection import choose
from gramfold.methods.protocol import ClientData
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import ridge_from_rows
from gramfold.solve.leave_one_out import Kernel, mean_leverage
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Streams(Record, kind="apfl/streams"):
    """The maps of both streams."""

    space: Space
    refinement: Map


@dataclass(frozen=True)
class Primary(Record, kind="apfl/primary"):
    """The primary stream, solved; `leverage` is its mean."""

    space: Space
    refinement: Map
    weights: Array
    leverage: float
    chosen: Mapping[str, Any]


@dataclass(frozen=True)
class APFL(Analytic):
    """`features`, `refinement`: the maps of the two streams (equal ones are one and the same draw). `beta`, `gamma`: their
    penalties. `lam`: the refinement's weight.

    None: beta by GCV, gamma and lam each client's own by leave-one-out.
    """

    name: ClassVar[str] = "apfl"
    summary: ClassVar[str] = "dual-stream least squares: a shared head plus each client's own refinement"
    paper: ClassVar[str] = "Fan et al., arXiv 2508.10732"

    beta: float | None = None
    refinement: MapLike = "relu:1024"
    gamma: float | None = None
    lam: float | None = None

    def __post_init__(self) -> None:
        self.check_penalties("beta", "gamma", "lam")

    def begin(self, task: Task) -> Streams:
        phi = draw_map(self.features, task)
        psi = phi if self.refinement == self.features else draw_map(self.refinement, task, "refinement")
        return Streams(Space(phi, task.labels), psi)

    def aggregate(self, total: Moments, broadcast: Streams) -> Primary:
        beta, factor = solve_pooled(total, self.beta)
        leverage = mean_leverage(factor, beta, total.weight)
        return Primary(broadcast.space, broadcast.refinement, factor.solve(total.cross), leverage, {"beta": beta})

    def personalize(self, client: ClientData, broadcast: Primary) -> Head:
        space, primary, phi, psi = broadcast.space, broadcast.weights, broadcast.space.map, broadcast.refinement
        train = counting(client)
        rows = phi(train.inputs)
        base = rows @ primary
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        one_map = psi.fingerprint == phi.fingerprint
        rows = scaled(rows if one_map else psi(train.inputs), roots)
        gamma, lam, chosen = self.gamma, self.lam, dict(broadcast.chosen)
        if gamma is None or lam is None:
            # the refinement is left out exactly, the base going by its mean leverage h of a sample of weight one: 1 / (1 - h) is
            # 1 + h / (1 - h), and of that excess a sample has as many times as it weighs
            leverage = broadcast.leverage if client.contributed else 0.0
            excess = leverage / (1.0 - leverage) * (1.0 if roots is None else roots**2)
            honest = targets - (targets - base) * (1.0 + excess)
            candidates = left_out_blends(Kernel.of(rows, roots), targets - base, honest, gamma, lam)
            chosen |= choose(candidates, targets, space.classification, train.weights)
            gamma, lam = chosen["gamma"], chosen["lam"]
        personal = ridge_from_rows(rows, scaled(targets - base, roots), gamma)
        if one_map:
            return space.head(primary + lam * personal, self.name, chosen)
        return Head([Stream(phi, primary), Stream(psi, personal, lam)], space.labels, method=self.name, chosen=chosen)
