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

A client's model does not depend on how the others' data is split among them: it uses only their sums. (Regression on tables is
the exception, unless told otherwise: see `own_parts`.)
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gramfold.errors import GramfoldError
from gramfold.features import Map, MetricMap
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.analytic import Analytic
from gramfold.methods.parts import learning, traffic
from gramfold.methods.parts.influence import root_of
from gramfold.methods.parts.learning import Plan, comparable_as, unseen
from gramfold.methods.parts.own_part import Common
from gramfold.methods.parts.pace_head import PaceHead, Pooled, solved
from gramfold.methods.parts.pace_regressor import bounded
from gramfold.methods.protocol import ClientData
from gramfold.methods.spaces import MapLike, Space, counting, draw_map
from gramfold.moments import Moments
from gramfold.moments.rounding import PRECISIONS
from gramfold.numerics.arrays import Array
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Streams(Record, kind="pace/streams"):
    """The maps of the shared and of the refinement stream; `pooled` once there is a sum to solve."""

    space: Space
    refinement: Map
    seed: int
    pooled: Pooled | None = None
    common: Common | None = None
    """Where clients fold targets less their own parts, beside the targets: what those are told by."""

    @property
    def chosen(self) -> Any:
        own_parts = {} if self.common is None else {"own_parts": True}
        return {**learning.described(self.space.map), **own_parts, **(self.pooled.chosen if self.pooled is not None else {})}


@dataclass(frozen=True)
class PACE(Analytic):
    """Everything that is None is chosen in closed form: the Fourier dimension of `features` from the amount of data, `beta` by
    GCV, `weights` (of cosine evidence, Gaussian evidence and refinement) by each client from its left-out likelihood.

    `learn`: whether the metric of the Fourier features is learned, in rounds before; None: where it pays (up to 100 inputs, or
    from 10,000 samples on). `budget`: the most bytes that a client may send and receive, all rounds together, as a number or as
    "20MB". `memory` bounds the server's when the dimension is chosen, in bytes. `precision` is what numbers travel in, "float64",
    "float32", "float16" or "int8" (uploads alone, the rest then in float16); None: float64, or with a budget whatever lets the
    largest map into it. Sums are float64 always; the result says how far rounding may have moved them (`chosen["rounding"]`).

    `regime` is what the server holds and sends so that clients can leave their own samples out: "sum" - only the summed moments,
    and it sends the m x m triangle L; "moments" - each client's, and it sends as many directions as it has samples; "sketch" -
    only the sum, and it sends a 128 x m sketch of L, from which leverages are approximate; None: "sum" where the triangle has up
    to 16 MB, else "sketch".

    `own_parts`: in regression on tables clients take what is their own, an offset or more, out of the targets before they are
    folded. What they have in common is found better so, but depends on how samples are cut among them, as it must. With False
    it does not.
    """

    name: ClassVar[str] = "pace"
    summary: ClassVar[str] = "class prior, discriminant and refinement, all chosen by leave-one-out; calibrated"
    paper: ClassVar[str] = "gramfold"
    probabilistic: ClassVar[bool] = True

    features: MapLike | None = None
    refinement: MapLike = "relu:1024"
    beta: float | None = None
    weights: tuple[float, float, float] | None = None
    regime: str | None = None
    learn: bool | None = None
    budget: int | str | None = None
    memory: int = 2**30
    precision: str | None = None
    own_parts: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_penalties("beta")
        if self.features is not None and (self.learn is not None or self.budget is not None):
            raise GramfoldError("learn and budget choose the features; give either them or features")
        if self.learn not in (None, True, False):
            raise GramfoldError(f"learn is True, False or None (where it pays), not {self.learn!r}")
        if self.precision not in (None, *PRECISIONS):
            raise GramfoldError(f"numbers travel in one of {', '.join(PRECISIONS)}, not {self.precision!r}")
        _ = self._head, self._most_bytes

    @property
    def _head(self) -> PaceHead:
        return PaceHead(self.name, self.beta, self.weights, "sum" if self.regime is None else self.regime, self._precision)

    @property
    def _precision(self) -> str:
        return self.precision or "float64"

    @property
    def _most_bytes(self) -> int | None:
        return None if self.budget is None else traffic.bytes_of(self.budget)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> "PACE":
        """With the features and the regime that follow from the task."""
        regime = "sketch" if self.regime is None and self.budget is not None else self.regime
        spec, precision = self.features, self.precision
        if spec is None:
            learn = False if once and self.learn is None else self.learn
            if once and precision is None:
                precision = "float64"
            most = self._most_bytes
            spec, precision = traffic.default_features(task, learn, most, self.memory, regime, precision, bounded, masked)
        regime = regime or traffic.default_regime(_width(spec, task))
        return replace(self, features=spec, learn=None, budget=None, regime=regime, precision=precision)

    @property
    def keeps_uploads(self) -> bool:
        return self._head.keeps_uploads

    def start(self, space: Space, task: Task) -> Streams:
        return Streams(space, draw_map(self.refinement, task, "refinement"), task.seed)

    def learned(self, start: Streams, map: Map, common: Common | None = None) -> Streams:
        if isinstance(map, MetricMap) and self._precision != "float64":
            map = map.narrowed("float32")
        space = replace(start.space, map=map)
        if common is not None and space.outputs is not None:
            space = replace(space, outputs=2 * space.outputs)
        return replace(start, space=space, refinement=comparable_as(map, start.refinement), common=common)

    def again(self, task: Task, broadcast: Streams) -> Streams:
        begun: Any = super().again(task, broadcast)
        return begun if broadcast.common is None else self.learned(begun, broadcast.space.map, broadcast.common)

    def by_sample(self, broadcast: Streams) -> bool:
        return broadcast.common is None

    @property
    def adds_up(self) -> bool:
        """Rounded samples cannot be taken out of a sum again."""
        return super().adds_up and self._precision == "float64"

    def local(self, client: ClientData, broadcast: Any) -> Any:
        upload = super().local(client, broadcast)
        return upload.rounded(self._precision) if isinstance(upload, Moments) else upload

    @property
    def takes_own_parts(self) -> bool:
        return self.own_parts

    def upload(self, client: ClientData, broadcast: Streams) -> Moments:
        if broadcast.common is not None:
            train = counting(client)
            client = replace(
                client, train=broadcast.common.without(train, learning.own_part(broadcast.common, train), beside=True)
            )
        return self._head.upload(broadcast.space.fold(client), client)

    def solve(self, total: Moments, broadcast: Streams) -> Streams:
        head = replace(self._head, own_parts=broadcast.common is not None)
        return replace(
            broadcast, pooled=head.pool(total, broadcast.seed, broadcast.space.units(), learning.caution(broadcast.space.map))
        )

    def reply(self, upload: Moments | None, broadcast: Streams) -> Streams:
        return replace(broadcast, pooled=self._head.reply(upload, solved(broadcast.pooled)))

    def personalize(self, client: ClientData, broadcast: Streams) -> Head:
        space, pooled = broadcast.space, solved(broadcast.pooled)
        train = counting(client)
        honest = unseen(client, space.map, train)
        rows = space.map(train.inputs)
        if broadcast.common is None:
            head = self._head.personalize(client, space, broadcast.refinement, pooled, rows, honest)
        else:  # samples that have a say in the own part do not judge
            own, judges = learning.own_part(broadcast.common, train), ~learning.seen(train)
            less = replace(client, train=broadcast.common.without(train, own))
            head = self._head.personalize(less, space, broadcast.refinement, pooled, rows, judges)
            head = broadcast.common.put_back(head, own)
        return head if space.classification else bounded(head, train.targets)

    def root(self, broadcast: Streams, along: Array) -> Array | None:
        return root_of(solved(broadcast.pooled).leverage, along)

    def global_head(self, broadcast: Streams) -> Head:
        return self._head.shared(broadcast.space, solved(broadcast.pooled))


def _width(spec: MapLike, task: Task) -> int:
    plan = Plan.of(spec)
    return draw_map(spec, task).dim if plan is None else 1 + task.inputs + plan.dim
