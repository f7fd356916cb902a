"""DeepAFL (Tang et al., ICLR 2026): an analytic head that grows deep, one residual layer after another.

    both     Phi_0 = phi(Z)                                        a drawn map, GELU(Z A)
    for t = 0 .. depth - 1:
      round    W_t = (S + beta I)^-1 M                             from moments of (Phi_t, Y)
               F_t = act(Phi_t B_t), B_t drawn
      round    Omega_t minimises |Y - Phi_t W_t - F_t Omega W_t|^2 + g |Omega|^2     from moments of (F_t, Y - Phi_t W_t)
      both     Phi_t+1 = Phi_t + F_t Omega_t,  Omega_t = A_t W_t'
    round    the head on Phi_depth: W, and the statistics with which PACE personalises it

The update by two eigendecompositions, F'F = V diag(e) V' and W'W = U diag(w) U' (classes x classes; the published one takes that
of W W', which has the same w): A = V [(V'F'R U) / (g + e w')] U'. Where e w' vanishes g keeps it finite, so a singular system
needs no special case. Omega is never formed: A is as narrow as W, and so is all that a layer broadcasts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import MethodError
from gramfold.features import ACTIVATIONS, DeepMap, Map
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.asked import Asked
from gramfold.methods.pace.client import Given, personal_head
from gramfold.methods.pace.server import Pooled, Pooling, require_regime, shared_head, solved
from gramfold.methods.pooled import PooledRidge
from gramfold.methods.protocol import ClientData, Method
from gramfold.methods.spaces import MapLike, Space, counting, draw_map, plain_term
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.renamed import renamed
from gramfold.wire.record import Record

REPRESENTATION, LAYERS, WIDENED = "representation", "layers", "widened"
"""Keys of a client's memory: its samples under the layers solved so far, the number of those layers, and F_t of the next one
while that is being solved: made once, it is a third of the arithmetic saved."""


@dataclass(frozen=True)
class Deep(Record, kind="deepafl"):
    """The layers so far, and after the last round the pooled solution for PACE's head."""

    space: Space
    refinement: Map
    seed: int
    pooled: Pooled | None = None

    @property
    def map(self) -> DeepMap:
        deep = self.space.map
        assert isinstance(deep, DeepMap)
        return deep

    @property
    def chosen(self) -> Mapping[str, Any]:
        return self.pooled.chosen if self.pooled is not None else {}


@renamed(beta="penalty")
@dataclass(frozen=True)
class DeepAFL(Method):
    """`features`: the first map; None: the features themselves and GELU ones, one for every four samples, up to 1024. `depth`:
    residual layers. `activation`: theirs. `shrinkage`: g, in units of the mean squared length of F_t's rows. `personal`: whether
    clients personalise the last representation as PACE does, or share one linear head. The rest is PACE's."""

    name: ClassVar[str] = "deepafl"
    summary: ClassVar[str] = "residual analytic layers over the features, then PACE's head (or a shared one)"
    paper: ClassVar[str] = "Tang et al., ICLR 2026"
    penalties: ClassVar[tuple[str, ...]] = ("penalty", "shrinkage")
    probabilistic: ClassVar[bool] = True
    weighted: ClassVar[bool] = True

    features: MapLike | None = None
    refinement: MapLike = "relu:1024"
    penalty: float | None = None
    weights: tuple[float, float] | None = None
    regime: str = "sum"
    depth: int = 5
    activation: str = "gelu"
    shrinkage: float = 0.005
    personal: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 0 or self.shrinkage == 0 or self.activation not in ACTIVATIONS:
            raise MethodError("DeepAFL needs a depth from 0 up, a positive shrinkage, and one of: " + ", ".join(ACTIVATIONS))
        require_regime(self.regime, self.name)

    @property
    def rounds(self) -> int:
        return 2 * self.depth + 1

    def begin(self, task: Task) -> Deep:
        base = draw_map(self.features or f"bias+{plain_term(task)}+gelu:{_default_width(task.samples)}", task)
        deep = DeepMap.over(base, self.activation)
        return Deep(Space.of(deep, task), draw_map(self.refinement, task, "refinement"), task.seed)

    def local(self, client: ClientData, broadcast: Deep) -> Moments:
        deep, space = broadcast.map, broadcast.space
        rows, train = _rows(client, deep), counting(client)
        client.memory |= {REPRESENTATION: rows, LAYERS: np.array(deep.layers)}
        client.memory.pop(WIDENED, None)
        if deep.next_outer is None:
            return Moments.from_features(rows, train.targets, space.labels, deep.fingerprint, weights=train.weights)
        residuals = space.targets(train, rows) - rows @ deep.next_outer
        client.memory[WIDENED] = deep.widen(rows, deep.layers)
        return Moments.from_features(client.memory[WIDENED], residuals, None, deep.fingerprint, weights=train.weights)

    def asked(self, broadcast: Deep) -> Asked:
        """A layer's moments have residuals for targets."""
        return broadcast.space if broadcast.map.next_outer is None else replace(broadcast.space, labels=None)

    def aggregate(self, total: Moments, broadcast: Deep) -> Deep:
        deep, space = broadcast.map, broadcast.space
        if deep.next_outer is not None:
            grown = deep.with_inner(_step(total, deep.next_outer, self.shrinkage))
            return replace(broadcast, space=replace(space, map=grown))
        if deep.layers == self.depth:
            return replace(broadcast, pooled=Pooling(self.penalty, self.regime, broadcast.seed, space.units())(total))
        ridge = PooledRidge.of(total, self.penalty, space.units())
        return replace(broadcast, space=replace(space, map=deep.with_outer(ridge.weights)))

    def personalize(self, client: ClientData, broadcast: Deep) -> Head:
        if not self.personal:
            return self.global_head(broadcast)
        pooled, rows = solved(broadcast.pooled), _rows(client, broadcast.map)
        given = Given(broadcast.space, pooled, broadcast.refinement, weights=self.weights)
        fitted = self.depth > 0 and (client.contributed or REPRESENTATION in client.memory)
        return personal_head(client, given, rows, self.name, fitted)

    def global_head(self, broadcast: Deep) -> Head:
        pooled = solved(broadcast.pooled)
        if self.personal:
            return shared_head(broadcast.space, pooled, self.name)
        return broadcast.space.head(pooled.weights, self.name)


def _rows(client: ClientData, deep: DeepMap) -> Array:
    """Phi_t of the client's samples, from its memory where possible."""
    rows, so_far = client.memory.get(REPRESENTATION), int(client.memory.get(LAYERS, 0))
    if rows is None:
        rows, so_far = deep.base(counting(client).inputs), 0
    for t in range(so_far, deep.layers):
        rows = deep.step(rows, t, client.memory.get(WIDENED) if t == so_far else None)
    return rows


def _default_width(samples: int | None) -> int:
    return 1024 if samples is None else 2 ** min(max(int(math.log2(max(samples / 4, 1))), 5), 10)


def _step(total: Moments, weights: Array, shrinkage: float) -> Array:
    """The residual layer in closed form: A of Omega = A W'."""
    values, vectors = arrays.eigh(total.lower_gram)
    head_values, head_vectors = arrays.eigh(weights.T @ weights)
    penalty = shrinkage * (float(values.sum()) / max(total.weight, 1) or 1.0)
    spread = values.clip(0.0)[:, None] * head_values.clip(0.0)[None, :]
    return vectors @ ((vectors.T @ total.cross @ head_vectors) / (penalty + spread)) @ head_vectors.T
