"""FedHiP (Tang et al., arXiv 2508.04470): the shared head, pulled towards the client's own data.

    client   G_k, B_k                                       as in AFL
    server   S = sum G_k, M = sum B_k, A = S + gamma I = L L', W = A^-1 M; sends L and W
    client   P_k = (A + alpha G_k)^-1 (M + alpha B_k)       an n_k x n_k system where n_k < m

alpha = 0 is AFL, alpha -> infinity is local least squares. With `at="server"` the server solves P_k from the client's
moments and sends the head alone: fewer bytes down, but it then knows every head.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.heads import Head, Stream
from gramfold.methods.analytic import FOLDED, Analytic, described_map, extend, factor_of, labels_of, solve_pooled, target_rows
from gramfold.methods.protocol import ClientData
from gramfold.methods.selection import Candidate, choose, is_classification
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.solve.leave_one_out import Kernel
from gramfold.solve.ridge import Factor
from gramfold.solve.update import update_solution
from gramfold.wire import Packet

ALPHAS = np.logspace(-1, 5, 19)


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

    def aggregate(self, total: Moments, broadcast: Packet) -> Packet:
        gamma, factor = solve_pooled(total, self.gamma)
        parts = {"factor": factor.half, "weights": factor.solve(total.cross)}
        meta = {"chosen": {"gamma": gamma}, "fallback": factor.fallback}
        return extend(broadcast, parts, meta, triangular="" if factor.fallback else "factor")

    def reply(self, upload: Moments, broadcast: Packet) -> Packet:
        if self.at == "client":
            return broadcast
        factor, weights = factor_of(broadcast), broadcast["weights"]
        rows, targets = upload.factor()
        alpha = self.alpha
        if alpha is None:
            alpha = _Blend(factor, weights, rows, targets).choose_rotated(upload.n, float(upload.squares.sum()))
        personal = update_solution(factor, weights, rows, targets, alpha)
        return extend(broadcast, {"personal": personal}, {"chosen": {**broadcast.meta["chosen"], "alpha": alpha}})

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        phi = described_map(broadcast)
        chosen: dict[str, Any] = dict(broadcast.meta["chosen"])
        if "personal" in broadcast.arrays:
            return Head([Stream(phi, broadcast["personal"])], labels_of(broadcast), method=self.name, chosen=chosen)
        rows = phi(client.train.inputs)
        targets = target_rows(client.train, broadcast, rows)
        factor, weights, alpha = factor_of(broadcast), broadcast["weights"], self.alpha
        if alpha is None:
            blend = _Blend(factor, weights, rows, targets, folded=FOLDED in client.memory)
            chosen |= choose(blend.left_out_scores(targets), targets, is_classification(broadcast.meta))
            alpha = chosen["alpha"]
        personal = update_solution(factor, weights, rows, targets, alpha)
        return Head([Stream(phi, personal)], labels_of(broadcast), method=self.name, chosen=chosen)

    def global_head(self, broadcast: Packet) -> Head:
        return self.shared_head(broadcast, broadcast["weights"])


class _Blend:
    """Leave-one-out for every alpha at once.

    Without the client the system is B = A - F'F with solution W0. In the kernel K = F B^-1 F' the blend is ridge on the
    residuals r = Y - F W0 with penalty t = 1/(1 + alpha). From A's side: F A^-1 F' = E diag(w) E' gives K = E diag(w/(1-w)) E'
    and r = (I - F A^-1 F')^-1 (Y - F W). A client that is not folded into A has B = A, and t = 1/alpha.
    """

    def __init__(self, factor: Factor, weights: Array, rows: Array, targets: Array, folded: bool = True) -> None:
        self.folded = folded
        self.target_squares = float((targets**2).sum())
        own = Kernel.of(factor.solve_lower(rows.T).T)
        # a client that is the whole federation, without a penalty, leaves nothing behind: 1 - w = 0
        free = 1.0 / (1.0 - own.values * (folded * (1 - 1e-12)))
        self.residuals = own.apply(free, 1.0, targets - rows @ weights)
        self.kernel = Kernel(own.values * free, own.vectors)

    def left_out_scores(self, targets: Array) -> Iterator[Candidate]:
        for alpha in map(float, ALPHAS):
            yield {"alpha": alpha}, targets - self.kernel.left_out_residuals(self.residuals, 1.0 / (self.folded + alpha))

    def choose_rotated(self, n: int, target_squares: float) -> float:
        """The same by GCV, for rows that are a rotation of n samples: what a server that holds only moments can do."""
        errors = []
        for penalty in 1.0 / (1.0 + ALPHAS):
            weights = 1.0 / (self.kernel.values + penalty)
            rest = (n - len(weights)) / penalty
            solved = self.kernel.apply(weights, 1.0 / penalty, self.residuals)
            lost = max(target_squares - self.target_squares, 0.0) / penalty**2  # of targets outside the rows' span
            errors.append((float((solved**2).sum()) + lost) / (float(weights.sum()) + rest) ** 2)
        return float(ALPHAS[np.flatnonzero(np.array(errors) <= min(errors) * (1 + 1e-9))[0]])  # the first of those that tie
