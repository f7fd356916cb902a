"""FedHiP (Tang et al., arXiv 2508.04470): the shared head, pulled towards the client's own data.

    client   G_k, B_k                                       as in AFL
    server   S = sum G_k, M = sum B_k, A = S + gamma P = L L', W = A^-1 M; sends L and W       P = I in the paper: see solve/units
    client   P_k = (A + alpha G_k)^-1 (M + alpha B_k)       an n_k x n_k system where n_k < m

alpha = 0 is AFL, alpha -> infinity is local least squares. With `at="server"` the server solves P_k from the client's
moments and sends the head alone: fewer bytes down, but the server then knows every head.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.errors import MethodError
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, Begin
from gramfold.methods.parts.blend import Blend
from gramfold.methods.parts.selection import choose_candidate
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import Space, counting, left_out_by_mean, root_weights, scaled
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.renamed import renamed
from gramfold.solve.ridge import Factor
from gramfold.solve.temperature import fit_temperature
from gramfold.solve.update import update_solution
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Pooled(Record, kind="fedhip/pooled"):
    """The pooled system, ready for a client to add to."""

    space: Space
    weights: Array
    factor: Factor
    chosen: Mapping[str, Any]
    temperature: float | None = None


@dataclass(frozen=True)
class Solved(Record, kind="fedhip/solved"):
    """A client's own head, solved by the server, and its mean leverage over the client's samples."""

    space: Space
    personal: Array
    chosen: Mapping[str, Any]
    leverage: float = 0.0


@renamed(gamma="penalty")
@dataclass(frozen=True)
class FedHiP(Analytic):
    """`alpha`: the weight of the client's own data beyond its share; None: each client's own, by leave-one-out (at the server:
    by GCV). `penalty`: the ridge penalty; None: by GCV. `at`: where heads are personalised, "client" or "server"."""

    name: ClassVar[str] = "fedhip"
    summary: ClassVar[str] = "the shared head, re-solved with the client's own data weighted up"
    paper: ClassVar[str] = "Tang et al., arXiv 2508.04470"
    penalties: ClassVar[tuple[str, ...]] = ("alpha", "penalty")
    remedies: ClassVar[Mapping[str, str]] = {"sums": "at='client'"}
    probabilistic: ClassVar[bool] = True

    alpha: float | None = None
    penalty: float | None = None
    at: str = "client"

    def __post_init__(self) -> None:
        if self.at not in ("client", "server"):
            raise MethodError(f"FedHiP personalises at 'client' or 'server', not {self.at!r}")
        super().__post_init__()

    @property
    def answer(self) -> Callable[[Any | None, Any], Record] | None:
        return self._answered if self.at == "server" else None

    def solve(self, total: Moments, broadcast: Begin) -> Pooled:
        pooled = PooledRidge.of(total, self.penalty, broadcast.space.units())
        return Pooled(broadcast.space, pooled.weights, pooled.factor, {"penalty": pooled.beta}, pooled.temperature)

    def _answered(self, upload: Moments | None, broadcast: Pooled) -> Record:
        if upload is None:
            return broadcast
        rows, targets = upload.factor()
        blend = Blend(broadcast.factor, broadcast.weights, rows, targets)
        alpha = self.alpha if self.alpha is not None else blend.choose_rotated(upload.weight, float(upload.squares.sum()))
        personal = update_solution(broadcast.factor, broadcast.weights, rows, targets, alpha)
        leverage = blend.mean_leverage(upload.n, alpha)
        return Solved(broadcast.space, personal, {**broadcast.chosen, "alpha": alpha}, leverage)

    def personalize(self, client: ClientData, broadcast: Pooled | Solved) -> Head:
        space, chosen = broadcast.space, dict(broadcast.chosen)
        if isinstance(broadcast, Solved) and not space.classification:
            return space.head(broadcast.personal, self.name, chosen)
        train = counting(client)
        rows = space.map(train.inputs)
        targets, roots = space.targets(train, rows), root_weights(train, rows)
        if isinstance(broadcast, Solved):
            # the leverage is the mean over this client's samples, whatever they weigh: weights count relative to their own mean
            share = 1.0 if roots is None else roots**2 / (roots**2).mean()
            scores = left_out_by_mean(targets, rows @ broadcast.personal, broadcast.leverage, share)
            return space.head(
                broadcast.personal, self.name, chosen, fit_temperature(scores, train.targets, counts=train.weights)
            )  # fmt: skip
        rows, alpha, temperature = scaled(rows, roots), self.alpha, None
        if alpha is None or space.classification:
            blend = Blend(broadcast.factor, broadcast.weights, rows, scaled(targets, roots), client.contributed, roots)
            left_out = blend.left_out_scores(targets, alpha)
            found, scores = choose_candidate(left_out, targets, space.classification, train.weights)
            chosen |= found if alpha is None else {}
            alpha = found["alpha"]
            temperature = fit_temperature(scores, train.targets, counts=train.weights) if space.classification else None
        personal = update_solution(broadcast.factor, broadcast.weights, rows, scaled(targets, roots), alpha)
        return space.head(personal, self.name, chosen, temperature)
