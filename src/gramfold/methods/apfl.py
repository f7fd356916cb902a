"""APFL, the dual-stream one (Fan et al., arXiv 2508.10732; not the adaptive PFL of 2020).

both     Phi = phi(Z), Psi = psi(Z)                         fixed maps shared by seed
server   P = (sum Phi'Phi + beta I)^-1 sum Phi'Y            primary stream: all clients; both ridges in units of solve/units
client   R_k = (Psi_k'Psi_k + gamma I)^-1 Psi_k'(Y_k - Phi_k P)     refinement stream: each alone, in the dual where n_k < d2
head     phi(x) P + lam psi(x) R_k
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.features import Map
from gramfold.federation import Task
from gramfold.heads import Head, Stream
from gramfold.methods.analytic import Analytic
from gramfold.methods.learning import Learned, comparable_as
from gramfold.methods.parts.refinement import left_out_blends
from gramfold.methods.parts.selection import choose_candidate
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import MapLike, Space, counting, draw_map, left_out_by_mean, root_weights, with_temperature
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.renamed import renamed
from gramfold.solve.own import OwnRidge
from gramfold.solve.temperature import fit_temperature
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
    temperature: float | None = None


@renamed(beta="penalty", gamma="refinement_penalty")
@dataclass(frozen=True)
class APFL(Analytic):
    """`features`, `refinement`: the maps of the two streams (equal ones are one and the same draw). `penalty`,
    `refinement_penalty`: their ridge penalties. `lam`: the refinement's weight.

    None: the penalty by GCV, the refinement's and lam each client's own by leave-one-out.
    """

    name: ClassVar[str] = "apfl"
    summary: ClassVar[str] = "dual-stream least squares: a shared head plus each client's own refinement"
    paper: ClassVar[str] = "Fan et al., arXiv 2508.10732"
    penalties: ClassVar[tuple[str, ...]] = ("penalty", "refinement_penalty", "lam")
    probabilistic: ClassVar[bool] = True

    penalty: float | None = None
    refinement: MapLike = "relu:1024"
    refinement_penalty: float | None = None
    lam: float | None = None

    def start(self, space: Space, task: Task) -> Streams:
        same = self.refinement == self.features
        return Streams(space, space.map if same else draw_map(self.refinement, task, "refinement"))

    def learned(self, start: Streams, found: Learned) -> Streams:
        psi = found.map if self.refinement == self.features else comparable_as(found.map, start.refinement)
        return Streams(replace(start.space, map=found.map), psi)

    def solve(self, total: Moments, broadcast: Streams) -> Primary:
        space, pooled = broadcast.space, PooledRidge.of(total, self.penalty, broadcast.space.units())
        chosen = {"penalty": pooled.beta}
        return Primary(space, broadcast.refinement, pooled.weights, pooled.leverage, chosen, pooled.temperature)

    def personalize(self, client: ClientData, broadcast: Primary) -> Head:
        space, primary, phi, psi = broadcast.space, broadcast.weights, broadcast.space.map, broadcast.refinement
        train = counting(client)
        rows = phi(train.inputs)
        base = rows @ primary
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        one_map = psi.fingerprint == phi.fingerprint
        own = OwnRidge(rows if one_map else psi(train.inputs), roots, space.units(psi))
        gamma, lam, chosen = self.refinement_penalty, self.lam, dict(broadcast.chosen)
        # exact leave-one-out for the refinement, approximate (by mean leverage) for the base
        leverage = broadcast.leverage if client.contributed else 0.0
        base_left_out = left_out_by_mean(targets, base, leverage, 1.0 if roots is None else roots**2)
        if gamma is None or lam is None:
            candidates = left_out_blends(own, targets - base, base_left_out, gamma, lam)
            found, scores = choose_candidate(candidates, targets, space.classification, train.weights)
            chosen |= found
            gamma, lam = found["refinement_penalty"], found["lam"]
            personal = own.solve(targets - base, gamma)
        else:
            personal, fit = own.solve_with_left_out(targets - base, gamma)
            scores = base_left_out + lam * fit
        temperature = fit_temperature(scores, train.targets, counts=train.weights) if space.classification else None
        if one_map:
            return space.head(primary + lam * personal, self.name, chosen, temperature)
        streams = [Stream(phi, primary), Stream(psi, personal, lam)]
        return Head(streams, space.labels, method=self.name, chosen=chosen, **with_temperature(temperature))
