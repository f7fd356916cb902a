"""PACE, prior-adjusted closed-form estimator: gramfold's own method. One round, calibrated probabilities, nothing to set.

    client     moments of phi(Z)                                            as in AFL
    server     P by GCV; S + P = T T', W = (S + P)^-1 M; the discriminant of the left-out scores; sends T, W, these
    client     u_i = y_i - (y_i - W'f_i) / (1 - h_i), h_i = |T^-1 f_i|^2    its own samples' leave-one-out scores
               e_1, e_2 = terms of evidence of u_i                          cosine and Gaussian; of two classes log-odds, logistic
               q = log E[(counts + a pi) / (n + a)]                         its class prior, a as likely as its counts make it
               (s, t) = most likely weights of s e_1 + t e_2 + q            a few Newton steps

    candidates, each with what it says of sample i when i is left out, exactly:
      stay             z = s e_1(u) + t e_2(u)
      blend(alpha)     the same, its samples counting alpha times more:      u_i = y_i - r_i / (1 - l_i (1 + 1/alpha))
      residual(gamma)  z + c R(y - softmax(b (z + q)))                      R: a ridge with a free intercept, left out; b <= 1
      own(gamma)       c R(y - softmax(q))                                  nothing shared but the map
      personal(gamma)  own and residual, R on features in a metric that clients' own functions share (docs/differ.md)
      effects          of values: own offset and slopes, shrunk as clients differ in them, beside the shared model and alone
    L_c = sum_i log softmax(z_c + q)[y_i]                                   of the samples that may judge
    w_c = p_c exp(L_c) / sum of these                                       p: stay 1, residuals 4, effects 2, other kinds 0.1
    e_1, e_2 once more, the centroids at the client's own places            where its samples, left out, are likelier so
    head       softmax(sum_c w_c z_c(x) + q)                                one head: all is linear in its coordinates; s, t
                                                                            and what R adds are weighed once more, together

Values differ in the likelihood alone: a candidate's prediction stands for z, c is one, and L_c is normal, as wide as its own
left-out errors. With p adding up to one, a client falls short of no candidate's left-out likelihood by more than log 1/p_c, a
model of its own among them: nobody is worse off for joining. (But for blends, whose scores are averaged, not the evidence.)

A client's model does not depend on how the others' data is split among them: it uses only their sums. (Regression on tables is
the exception, unless told otherwise: see `own_parts`.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.heads import Head, Unsolved
from gramfold.methods import learning
from gramfold.methods.differences import Differs, groups_of
from gramfold.methods.learning import Learned, added_back, comparable_as
from gramfold.methods.pace.broadcast import Streams
from gramfold.methods.pace.candidates import PARTS, Part, PersonalKernel
from gramfold.methods.pace.client import Given, OwnSamples, personalized
from gramfold.methods.pace.compact import unsolved, weights_of
from gramfold.methods.pace.decision import Decision, decide
from gramfold.methods.pace.effects import OwnEffects
from gramfold.methods.pace.heads import bounded
from gramfold.methods.pace.priors import PRIORS, Priors
from gramfold.methods.pace.server import Pooling, require_regime, shared_head, solved, units_of
from gramfold.methods.pace.sizes import SIZES, Limits, bytes_of
from gramfold.methods.protocol import IN_CODE, ClientData, Revisable
from gramfold.methods.spaces import MapLike, Space, counting, draw_map, together
from gramfold.moments import Moments
from gramfold.numerics.arrays import Array
from gramfold.numerics.buckets import buckets, room_for
from gramfold.renamed import renamed
from gramfold.uploads import GroupedMoments

RESIDUALS = "relu:1024"
"""The map that residuals are fitted on in what may be a table; on embeddings it brings nothing beyond the shared features, and
costs half of a client's time (`benchmarks/ablation.py`)."""


@renamed(beta="penalty")
@dataclass(frozen=True)
class PACE(Differs):
    """Everything that is None is chosen in closed form: the Fourier dimension of `features` from the amount of data, `penalty` by
    GCV, `weights` (of the terms of evidence) by each client from its left-out likelihood, `refinement` (the map that residuals
    are fitted on): ReLU features up to 100 inputs, the shared ones beyond.

    `learn`: whether the metric of the Fourier features is learned, in rounds before; None: where it pays (up to 100 inputs, or
    from 10,000 samples on). `budget`: the most bytes that a client may send and receive, all rounds together, as a number or as
    "20MB". `memory` bounds the server's when the dimension is chosen, in bytes. With a budget numbers travel in whatever
    lets the largest map into it, unless the run says (`gf.run(..., precision=)`).

    `regime` is what the server sends so that clients can leave their own samples out: "sum" - the m x m triangle T; "sketch" -
    a 128 x m sketch of T^-1, from which leverages are approximate, and nothing can be blended; None: "sum" where the triangle has
    up to 16 MB, else "sketch". What was decided, and why, is in `chosen`.

    `parts` are what makes candidates beside staying (`candidates.PARTS`): without one, `replace(method, parts=...)`, it has that
    part's candidates no more, and with another's it has these. `priors`: what is likely before a client is seen.

    `own_parts`: in regression on tables clients take an offset of their own out of the targets before they are folded. What
    they have in common is found better so, but depends on how samples are cut among them. With False it does not.

    `groups`: of clients that resemble each other, whose samples count for more in each other's models: found and kept where they
    help (None; for continuous targets True), not looked for (False, and then a client's model does not depend on how the others'
    data is split), or given: the group of every client by its name (the country, the scanner). `personal`: whether the metric
    that clients' own functions share is learned, on tables (None: yes). Both take small rounds before; docs/differ.md.
    """

    name: ClassVar[str] = "pace"
    summary: ClassVar[str] = "candidates averaged by left-out likelihood, on the class prior; calibrated"
    paper: ClassVar[str] = "gramfold"
    penalties: ClassVar[tuple[str, ...]] = ("penalty",)
    remedies: ClassVar[Mapping[str, str]] = {
        "once": "features='bias+linear'", "by sample": "own_parts=False and groups=False, and run again",
    }  # fmt: skip
    probabilistic: ClassVar[bool] = True

    features: MapLike | None = None
    refinement: MapLike | None = None
    penalty: float | None = None
    weights: tuple[float, float] | None = None
    regime: str | None = None
    learn: bool | None = None
    budget: int | str | None = None
    memory: int = 2**30
    own_parts: bool = True
    parts: tuple[Part, ...] = field(default=(*PARTS, PersonalKernel(), OwnEffects()), metadata=IN_CODE, repr=False)
    priors: Priors = field(default=PRIORS, metadata=IN_CODE, repr=False)
    decision: Decision | None = field(default=None, metadata=IN_CODE, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features is not None and (self.learn is not None or self.budget is not None):
            raise GramfoldError("learn and budget choose the features; give either them or features")
        if self.learn not in (None, True, False):
            raise GramfoldError(f"learn is True, False or None (where it pays), not {self.learn!r}")
        if self.weights is not None and len(self.weights) != 2:
            raise GramfoldError(f"weights are a pair, one for each term of evidence, not {self.weights!r}")
        require_regime(self._regime, self.name)
        _ = self._most_bytes

    @property
    def _regime(self) -> str:
        return "sum" if self.regime is None else self.regime

    @property
    def _most_bytes(self) -> int | None:
        return None if self.budget is None else bytes_of(self.budget)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> "PACE":
        """With the features, the regime and the precision that follow from the task; `decision` says why."""
        learn = False if once and self.learn is None else self.learn
        precision = "float64" if once and self.features is None and self.precision is None else self.precision
        limits = Limits(task, self.memory, self._most_bytes, self.regime, precision, masked)
        spec, decided = decide(limits, self.features, learn, bounded)
        if self.features is None:
            precision = decided.precision
        return replace(
            self, features=spec, learn=None, budget=None, regime=decided.regime, precision=precision,
            decision=self.decision or decided, **self.questions(task, once, bounded, masked),
        )  # fmt: skip

    def start(self, space: Space, task: Task) -> Streams:
        spec = RESIDUALS if self.refinement is None and task.inputs <= SIZES.tabular else self.refinement
        refinement = None if spec is None else draw_map(spec, task, "refinement")
        return Streams(space, refinement, task.seed, decision=self.decision)

    def learned(self, start: Streams, found: Learned) -> Streams:
        outputs = start.space.outputs
        if found.offsets is not None and outputs is not None:
            outputs *= 2  # targets are folded less the clients' own parts, too
        refinement = None if start.refinement is None else comparable_as(found.map, start.refinement)
        space = replace(start.space, map=found.map, outputs=outputs)
        return replace(start, space=space, refinement=refinement, offsets=found.offsets)

    @property
    def _plan(self) -> Any:
        return learning.plan_of(self.features, self.own_parts)

    def revisable(self, broadcast: Streams) -> Revisable | None:
        found = super().revisable(broadcast)
        if found is None:
            return None
        before = replace(broadcast, pooled=None, groups=())

        def again(task: Task) -> Streams:
            return replace(before, space=before.space.with_labels(task.labels))

        return replace(found, again=again, by_sample=found.by_sample and broadcast.offsets is None)

    def moments(self, client: ClientData, broadcast: Streams) -> Moments:
        offsets = broadcast.offsets
        return super().moments(client if offsets is None else offsets.beside(client), broadcast)

    def solve(self, total: Moments | GroupedMoments, broadcast: Streams) -> Streams:
        space, whole, groups = broadcast.space, None, groups_of(broadcast)
        make = Pooling(self.penalty, self._regime, broadcast.seed, units_of(space), space.caution)
        if broadcast.offsets is not None:
            total, whole = broadcast.offsets.split(total)
        pooled = make(total if isinstance(total, Moments) else total.total(), whole)
        if isinstance(total, Moments) or groups is None:
            return replace(broadcast, pooled=pooled)
        return replace(broadcast, pooled=pooled, groups=make.groups(total, pooled, groups.count))

    def personalize(self, client: ClientData, broadcast: Streams) -> Head:
        return self.personalize_many([client], broadcast)[0]

    def small_heads(self, clients: Sequence[ClientData], broadcast: Streams) -> list[Head]:
        return self.personalize_many(clients, broadcast, compact=True)

    def weights_of(self, given: Unsolved, broadcast: Streams) -> Array:
        return weights_of(given, broadcast)

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Streams, compact: bool = False) -> list[Head]:
        trains, known = [counting(client) for client in clients], broadcast.differ.groups
        groups = [None if known is None else known.place(c.name, t) for c, t in zip(clients, trains, strict=True)]
        kinds = [
            (group, client.contributed, train.n > 2, *(train.n < map.dim for map in broadcast.maps))
            for group, client, train in zip(groups, clients, trains, strict=True)
        ]
        heads: list[Any] = [None] * len(clients)
        room = room_for(trains[0].inputs)
        for bucket in buckets([train.n for train in trains], self.numbers_per_sample(broadcast), room, kinds):
            made = self._of_bucket([clients[i] for i in bucket], broadcast, groups[bucket[0]], compact)
            for i, head in zip(bucket, made, strict=True):
                heads[i] = head
        return heads

    def _of_bucket(self, clients: Sequence[ClientData], broadcast: Streams, group: int | None, compact: bool) -> list[Head]:
        """The heads of clients of one group, of about as many samples."""
        space, offsets, whole, own = broadcast.space, broadcast.offsets, clients, None
        pooled, copies = broadcast.pooled_for(group)
        masks = learning.unseen(clients, space.map, all_split=offsets is not None)
        unseen = None if all(mask.all() for mask in masks) else np.concatenate(masks)
        if offsets is not None:
            clients, own = offsets.subtracted(clients, masks)
        found = broadcast.differ
        given = Given(
            space, pooled, broadcast.refinement, found.personal or (), copies, self.priors, self.weights, found.effects
        )  # fmt: skip
        samples = OwnSamples.of(clients, given, space.map(together(clients)[0].inputs), unseen, own)
        heads = personalized(samples, self.parts, self.name, unsolved(broadcast, samples) if compact else None)
        if found.effects is not None:
            heads = [
                found.effects.told(head, counting(client), client.contributed) for head, client in zip(heads, whole, strict=True)
            ]
        if group is not None:
            heads = [replace(head, chosen={**head.chosen, "group": group}) for head in heads]
        if own is not None:
            heads = [added_back(head, part) for head, part in zip(heads, own, strict=True)]
        if space.classification:
            return heads
        return [bounded(head, counting(client).targets, self.priors) for head, client in zip(heads, whole, strict=True)]

    def numbers_per_sample(self, broadcast: Streams) -> int:
        """While heads are computed: what the widest map makes of it."""
        return max(map.dim for map in broadcast.maps)

    def global_head(self, broadcast: Streams) -> Head:
        return shared_head(broadcast.space, solved(broadcast.pooled), self.name, self.priors)
