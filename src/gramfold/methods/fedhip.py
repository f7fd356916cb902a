"""FedHiP (Tang et al., arXiv 2508.04470): the shared head, pulled towards the client's own data.

    client   G_k, B_k                                       as in AFL
    server   S = sum G_k, M = sum B_k, A = S + gamma I = L L', W = A^-1 M; sends L and W
    client   P_k = (A + alpha G_k)^-1 (M + alpha B_k)       an n_k x n_k system where n_k < m

alpha = 0 is AFL, alpha -> infinity is local least squares. With `at="server"` the server solves P_k from the client's
moments and sends the head alone: fewer bytes down, but it then knows every head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.errors import GramfoldError
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin, Space, counting, root_weights, scaled, solve_pooled
from gramfold.methods.parts.blend import Blend
from gramfold.methods.parts.selection import choose
from gramfold.methods.protocol import ClientData
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.solve.ridge import Factor
from gramfold.solve.update import update_solution
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Pooled(Record, kind="fedhip/pooled"):
    """The pooled system, ready for a client to add to."""

    space: Space
    weights: Array
    factor: Factor
    chosen: Mapping[str, Any]


@dataclass(frozen=True)
class Solved(Record, kind="fedhip/solved"):
    """A client's own head, solved by the server."""

    space: Space
    personal: Array
    chosen: Mapping[str, Any]


@dataclass(frozen=True)
class FedHiP(Analytic):
    """`alpha`: the weight of the client's own data beyond its share; None: each client's own, by leave-one-out (at the server:
    by GCV). `gamma`: the ridge penalty; None: by GCV. `at`: where heads are personalised, "client" or "server"."""

    name: ClassVar[str] = "fedhip"
    summary: ClassVar[str] = "the shared head, re-solved with the client's own data weighted up"
    paper: ClassVar[str] = "Tang et al., arXiv 2508.04470"

    alpha: float | None = None
    gamma: float | None = None
    at: str = "client"

    def __post_init__(self) -> None:
        if self.at not in ("client", "server"):
            raise GramfoldError(f"FedHiP personalises at 'client' or 'server', not {self.at!r}")
        self.check_penalties("alpha", "gamma")

    @property
    def keeps_uploads(self) -> bool:
        return self.at == "server"

    def aggregate(self, total: Moments, broadcast: Begin) -> Pooled:
        gamma, factor = solve_pooled(total, self.gamma)
        return Pooled(broadcast.space, factor.solve(total.cross), factor, {"gamma": gamma})

    def reply(self, upload: Moments, broadcast: Pooled) -> Record:
        if self.at == "client":
            return broadcast
        rows, targets = upload.factor()
        alpha = self.alpha
        if alpha is None:
            blend = Blend(broadcast.factor, broadcast.weights, rows, targets)
            alpha = blend.choose_rotated(upload.weight, float(upload.squares.sum()))
        personal = update_solution(broadcast.factor, broadcast.weights, rows, targets, alpha)
        return Solved(broadcast.space, personal, {**broadcast.chosen, "alpha": alpha})

    def personalize(self, client: ClientData, broadcast: Pooled | Solved) -> Head:
        space, chosen = broadcast.space, dict(broadcast.chosen)
        if isinstance(broadcast, Solved):
            return space.head(broadcast.personal, self.name, chosen)
        train = counting(client)
        rows = space.map(train.inputs)
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        rows, alpha = scaled(rows, roots), self.alpha
        if alpha is None:
            blend = Blend(broadcast.factor, broadcast.weights, rows, scaled(targets, roots), client.contributed, roots)
            chosen |= choose(blend.left_out_scores(targets), targets, space.classification, train.weights)
            alpha = chosen["alpha"]
        personal = update_solution(broadcast.factor, broadcast.weights, rows, scaled(targets, roots), alpha)
        return space.head(personal, self.name, chosen)
