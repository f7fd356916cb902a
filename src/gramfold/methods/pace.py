"""PACE, prior-adjusted closed-form estimator: gramfold's own method. One round, calibrated probabilities, nothing to set.

    client   moments of phi(Z)                                              as in AFL
    server   beta by GCV; S + beta I = L L', W = (S + beta I)^-1 M; the discriminant of the left-out scores; sends L, W, these
    client   u_i = y_i - (y_i - W'f_i) / (1 - h_i), h_i = |L^-1 f_i|^2      its own samples' leave-one-out scores
             a_i, b_i = cosine and Gaussian evidence of u_i                 for each class, in the scores' whitened space
             q = log(counts + 1/C)                                          its class prior, which it knows exactly
             (s, t) = most likely weights of s a + t b + q                  a few Newton steps
             E = Y - softmax(s a + t b + q)                                 the residual
             R = ridge of E on psi(Z), r_i its left-out fit                 refinement stream, in the dual where n < d2
             (s, t, l) = most likely weights of s a + t b + l r + q         with a prior worth a few samples: small clients shrink
    head     softmax(s a(x) + t b(x) + l psi(x) R + q)

A client's model does not depend on how the others' data is split among them: it uses only their sums.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.features import Bias, Chain, Concat, FeatureMap, Fourier, Linear, Map, Normalize
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic, MapLike, Space, counting, draw_map
from gramfold.methods.parts.pace_head import PaceHead, Pooled, solved
from gramfold.methods.protocol import ClientData
from gramfold.moments import Moments
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Streams(Record, kind="pace/streams"):
    """The maps of the shared and of the refinement stream; `pooled` once there is a sum to solve."""

    space: Space
    refinement: Map
    seed: int
    pooled: Pooled | None = None

    @property
    def chosen(self) -> Any:
        return self.pooled.chosen if self.pooled is not None else {}


@dataclass(frozen=True)
class PACE(Analytic):
    """Everything that is None is chosen in closed form: the Fourier dimension of `features` from the amount of data, `beta` by
    GCV, `weights` (of cosine evidence, Gaussian evidence and refinement) by each client from its left-out likelihood.

    `regime` is what the server holds and sends so that clients can leave their own samples out: "sum" - only the summed moments,
    and it sends the m x m triangle L; "moments" - each client's, and it sends an n_k x n_k triangle; "sketch" - only the sum, and
    it sends a 128 x m sketch of L, from which leverages are approximate. `budget` bounds the server's memory when the dimension
    is chosen, in bytes.
    """

    name: ClassVar[str] = "pace"
    summary: ClassVar[str] = "class prior, discriminant and refinement, all chosen by leave-one-out; calibrated"
    paper: ClassVar[str] = "gramfold"
    probabilistic: ClassVar[bool] = True

    features: MapLike | None = None  # type: ignore[assignment]
    refinement: MapLike = "relu:1024"
    beta: float | None = None
    weights: tuple[float, float, float] | None = None
    regime: str = "sum"
    budget: int = 2**30

    def __post_init__(self) -> None:
        self.check_penalties("beta")
        _ = self._head

    @property
    def _head(self) -> PaceHead:
        return PaceHead(self.name, self.beta, self.weights, self.regime)

    @property
    def keeps_uploads(self) -> bool:
        return self._head.keeps_uploads

    def begin(self, task: Task) -> Streams:
        spec = self.features if self.features is not None else default_map(task, self.budget)
        space = Space.of(draw_map(spec, task), task)
        return Streams(space, draw_map(self.refinement, task, "refinement"), task.seed)

    def local(self, client: ClientData, broadcast: Streams) -> Moments:
        return self._head.upload(broadcast.space.fold(client), client)

    def aggregate(self, total: Moments, broadcast: Streams) -> Streams:
        return replace(broadcast, pooled=self._head.pool(total, broadcast.seed))

    def reply(self, upload: Moments | None, broadcast: Streams) -> Streams:
        return replace(broadcast, pooled=self._head.reply(upload, solved(broadcast.pooled)))

    def personalize(self, client: ClientData, broadcast: Streams) -> Head:
        space = broadcast.space
        rows = space.map(counting(client).inputs)
        return self._head.personalize(client, space, broadcast.refinement, solved(broadcast.pooled), rows)

    def global_head(self, broadcast: Streams) -> Head:
        return self._head.shared(broadcast.space, solved(broadcast.pooled))


def default_map(task: Task, budget: int) -> FeatureMap:
    """[1, z, cos(z Omega + b)] of normalised inputs: a Fourier feature for every ten samples, as long as four m x m matrices (the
    sum, its factor, and room to work) fit the budget."""
    affordable = math.isqrt(budget // 32) - task.inputs - 1
    wanted = (task.samples if task.samples is not None else 10 * 1024) // 10
    dim = min(max(wanted, 64), affordable, 8192)
    dim = 2 ** int(math.log2(dim)) if dim >= 1 else 0
    parts: list[FeatureMap] = [Bias(), Linear()]
    return Chain([Normalize(), Concat([*parts, Fourier(dim)] if dim else parts)])
