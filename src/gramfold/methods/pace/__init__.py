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
      residual(gamma)  z + c R(y - softmax(z + q))                          R: a ridge with a free intercept, left out
      own(gamma)       c R(y - softmax(q))                                  nothing shared but the map
    L_c = sum_i log softmax(z_c + q)[y_i]                                   of the samples that may judge
    w_c = p_c exp(L_c) / sum of these                                       p: stay 1, residuals 4, blends and own 0.1
    head       softmax(sum_c w_c z_c(x) + q)                                one head: all is linear in its coordinates

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
from gramfold.features import Map
from gramfold.federation import Samples, Task
from gramfold.heads import Head
from gramfold.methods import learning
from gramfold.methods.differences import Differs, Found, groups_of
from gramfold.methods.learning import comparable_as, unseen
from gramfold.methods.learning.own_parts import Common
from gramfold.methods.pace import sizes
from gramfold.methods.pace.bounds import bounded
from gramfold.methods.pace.candidates import PARTS, OwnPart, Part
from gramfold.methods.pace.client import OwnSamples, personalized
from gramfold.methods.pace.effects import OwnEffects
from gramfold.methods.pace.influence import root_of
from gramfold.methods.pace.personal_kernel import PersonalKernel
from gramfold.methods.pace.priors import PRIORS, Priors
from gramfold.methods.pace.server import (
    DEARER,
    GroupPooled,
    Pooled,
    pool,
    pool_groups,
    pool_without_own_parts,
    require_regime,
    shared_head,
    solved,
    units_of,
)
from gramfold.methods.protocol import IN_CODE, ClientData, Revisable
from gramfold.methods.spaces import MapLike, Space, counting, draw_map, together
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.numerics.buckets import buckets, bytes_for
from gramfold.numerics.padding import Padding
from gramfold.renamed import renamed
from gramfold.uploads import GroupedMoments
from gramfold.wire.record import Record

RESIDUALS, EMBEDDED = "relu:1024", 100
"""The map that residuals are fitted on, and up to how many inputs: wider ones are embeddings, on which it brings nothing beyond
the shared features, and costs half of a client's time (`benchmarks/ablation.py`)."""


@dataclass(frozen=True)
class Streams(Record, kind="pace/streams"):
    """The maps of the shared and of the refinement stream; `pooled` once there is a sum to solve."""

    space: Space
    refinement: Map | None
    """Whose features residuals are fitted on; None: the shared ones."""
    seed: int
    pooled: Pooled | None = None
    common: Common | None = None
    """Where clients fold targets less their own parts, beside the targets: what those are told by."""
    found: Found | None = None
    """How clients differ, where that was asked."""
    groups: Sequence[GroupPooled] = ()
    """The pooled ridges of groups, once there are sums to solve."""
    decision: sizes.Decision | None = None

    @property
    def chosen(self) -> Any:
        own_parts = {} if self.common is None else {"own_parts": True}
        decided = {} if self.decision is None else {"regime": self.decision.regime, "why": "; ".join(self.decision.reasons)}
        differ = {} if self.found is None else self.found.described
        if self.groups:
            differ |= {"group_weights": [group.copies - 1.0 for group in self.groups]}
            differ |= {"group_gains": [round(group.gain, 1) for group in self.groups]}
        pooled = self.pooled.chosen if self.pooled is not None else {}
        return {**decided, **learning.described(self.space.map), **own_parts, **differ, **pooled}

    def pooled_for(self, group: int | None) -> tuple[Pooled, float]:
        """The shared ridge of a client in that group, and how many times the samples of its clients are in it."""
        own = None if group is None or group >= len(self.groups) else self.groups[group]
        if own is None or own.pooled is None:
            return solved(self.pooled), 1.0
        return own.pooled, own.copies

    def pooled_root(self, along: Array) -> Array | None:
        """T'^-1 along the columns of `along`, T T' being the pooled system; None where that is not here."""
        return root_of(solved(self.pooled).leverage, along)


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
    up to 16 MB, else "sketch". What was decided, and why, is in the result's `chosen`.

    `parts` are what makes candidates beside staying (`candidates.PARTS`): without one, `replace(method, parts=...)`, it has that
    part's candidates no more, and with another's it has these. `priors`: what is likely before a client is seen.

    `own_parts`: in regression on tables clients take what is their own, an offset or more, out of the targets before they are
    folded. What they have in common is found better so, but depends on how samples are cut among them, as it must. With False
    it does not.

    `groups`: of clients that resemble each other, whose samples count for more in each other's models: found and kept where they
    help (None; for continuous targets True), not looked for (False, and then a client's model does not depend on how the others'
    data is split), or given: the group of every client by its name (the country, the scanner). `personal`: whether the metric
    that
    clients' own functions share is learned, on tables (None: yes). Both take small rounds before the moments; docs/differ.md.
    """

    name: ClassVar[str] = "pace"
    summary: ClassVar[str] = "candidates averaged by left-out likelihood, on the class prior; calibrated"
    paper: ClassVar[str] = "gramfold"
    remedies: ClassVar[Mapping[str, str]] = {"once": "features='bias+linear'"}
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
    decision: sizes.Decision | None = field(default=None, metadata=IN_CODE, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_penalties("penalty")
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
        return None if self.budget is None else sizes.bytes_of(self.budget)

    def settled(self, task: Task, once: bool = False, bounded: bool = False, masked: bool = False) -> "PACE":
        """With the features, the regime and the precision that follow from the task; `decision` says why."""
        regime = "sketch" if self.regime is None and self.budget is not None else self.regime
        spec, precision = self.features, self.precision
        if spec is None:
            learn = False if once and self.learn is None else self.learn
            if once and precision is None:
                precision = "float64"
            most = self._most_bytes
            spec, precision = sizes.default_features(task, learn, most, self.memory, regime, precision, bounded, masked)
        found = sizes.decide(
            str(spec),
            precision or "float64",
            _width(spec, task),
            self.regime,
            task.samples,
            self.features is not None,
            self._most_bytes,
        )
        decision = self.decision or found
        return replace(
            self, features=spec, learn=None, budget=None, regime=found.regime, precision=precision, decision=decision,
            **self.questions(task, once, bounded, masked),
        )  # fmt: skip

    def start(self, space: Space, task: Task) -> Streams:
        spec = RESIDUALS if self.refinement is None and task.inputs <= EMBEDDED else self.refinement
        refinement = None if spec is None else draw_map(spec, task, "refinement")
        return Streams(space, refinement, task.seed, decision=self.decision)

    def learned(self, start: Streams, map: Map, common: Common | None = None) -> Streams:
        space = replace(start.space, map=map)
        if common is not None and space.outputs is not None:
            space = replace(space, outputs=2 * space.outputs)
        refinement = None if start.refinement is None else comparable_as(map, start.refinement)
        return replace(start, space=space, refinement=refinement, common=common)

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

        return replace(found, again=again, by_sample=found.by_sample and broadcast.common is None)

    def moments(self, client: ClientData, broadcast: Streams) -> Moments:
        if broadcast.common is not None:
            train = counting(client)
            less = broadcast.common.without(train, learning.own_part(broadcast.common, train), beside=True)
            client = replace(client, train=less)
        return super().moments(client, broadcast)

    def solve(self, total: Moments | GroupedMoments, broadcast: Streams) -> Streams:
        make = pool if broadcast.common is None else pool_without_own_parts
        units, caution = units_of(broadcast.space), learning.caution(broadcast.space.map)
        everybody = total if isinstance(total, Moments) else total.total()
        pooled = make(everybody, self.penalty, self._regime, broadcast.seed, units, caution)
        if isinstance(total, Moments):
            return replace(broadcast, pooled=pooled)
        beta, units = pooled.chosen["penalty"], replace(units, dearer=pooled.chosen.get(DEARER, 1.0))

        def of_group(moments: Moments) -> Pooled:
            return make(moments, beta, self._regime, broadcast.seed, units, caution)

        groups = groups_of(broadcast)
        assert groups is not None
        found = pool_groups(total, pooled, groups.count, units, of_group)
        return replace(broadcast, pooled=pooled, groups=found)

    def personalize(self, client: ClientData, broadcast: Streams) -> Head:
        return self.personalize_many([client], broadcast)[0]

    def personalize_many(self, clients: Sequence[ClientData], broadcast: Streams) -> list[Head]:
        found = broadcast.found or Found()
        trains = [counting(client) for client in clients]
        groups = [None if found.groups is None else found.groups.place(c.name, t) for c, t in zip(clients, trains, strict=True)]
        maps = [map for map in (broadcast.space.map, broadcast.refinement, *(found.personal or ())) if map is not None]
        kinds = [
            (group, client.contributed, train.n > 2, *(train.n < map.dim for map in maps))
            for group, client, train in zip(groups, clients, trains, strict=True)
        ]
        heads: list[Any] = [None] * len(clients)
        room = bytes_for(trains[0].inputs)
        for bucket in buckets([train.n for train in trains], self.numbers_per_sample(broadcast), room, kinds):
            made = self._personalize_bucket([clients[i] for i in bucket], broadcast, groups[bucket[0]])
            for i, head in zip(bucket, made, strict=True):
                heads[i] = head
        return heads

    def _personalize_bucket(self, clients: Sequence[ClientData], broadcast: Streams, group: int | None) -> list[Head]:
        """The heads of clients of one group, of about as many samples."""
        space, common, found = broadcast.space, broadcast.common, broadcast.found or Found()
        trains = [counting(client) for client in clients]
        pooled, copies = broadcast.pooled_for(group)
        own, apart = None, None
        judging = _concatenated([unseen(c, space.map, t) for c, t in zip(clients, trains, strict=True)], trains)
        if common is not None:  # samples that have a say in the own part do not judge
            own, judging = learning.parts_of(common, trains), np.concatenate([~learning.seen(train) for train in trains])
            plain, padding = common.along(together(clients)[0].inputs), Padding([train.n for train in trains])
            parts = arrays.stack(own)
            apart = OwnPart(common.along, parts, padding(plain) @ parts)
            less = [common.without(train, part) for train, part in zip(trains, own, strict=True)]
            clients = [replace(client, train=train) for client, train in zip(clients, less, strict=True)]
        samples = OwnSamples.of(
            clients, space, broadcast.refinement, pooled, space.map(together(clients)[0].inputs), judging, self.priors,
            self.weights, copies, found.personal or (), apart, found.effects,
        )  # fmt: skip
        heads = personalized(samples, self.parts, pooled, judging, self.name)
        if found.effects is not None:
            owns = [found.effects.deviations(train, client.contributed) for train, client in zip(trains, clients, strict=True)]
            heads = [replace(head, chosen={**head.chosen, "deviations": own}) for head, own in zip(heads, owns, strict=True)]
        if group is not None:
            heads = [replace(head, chosen={**head.chosen, "group": group}) for head in heads]
        if common is not None and own is not None:
            heads = [common.put_back(head, part) for head, part in zip(heads, own, strict=True)]
        if space.classification:
            return heads
        return [bounded(head, train.targets) for head, train in zip(heads, trains, strict=True)]

    def numbers_per_sample(self, broadcast: Streams) -> int:
        """While heads are computed: what the widest map makes of it."""
        maps = (broadcast.space.map, broadcast.refinement, *((broadcast.found or Found()).personal or ()))
        return max(map.dim for map in maps if map is not None)

    def global_head(self, broadcast: Streams) -> Head:
        return shared_head(broadcast.space, solved(broadcast.pooled), self.name, self.priors)


def _concatenated(masks: Sequence[np.ndarray | None], trains: Sequence[Samples]) -> np.ndarray | None:
    """Masks of clients' samples as one; None: all of all."""
    if all(mask is None for mask in masks):
        return None
    return np.concatenate([np.ones(t.n, bool) if mask is None else mask for mask, t in zip(masks, trains, strict=True)])


def _width(spec: MapLike, task: Task) -> int:
    plan = learning.plan_of(spec)
    return draw_map(spec, task).dim if plan is None else plan.width(task.inputs)
