"""DeepAFL (Tang et al., ICLR 2026): an analytic head that grows deep, one residual layer after another.

    both     Phi_0 = phi(Z)                                        a drawn map, GELU(Z A)
    for t = 0 .. depth - 1:
      round    W_t = (S + beta I)^-1 M                             from moments of (Phi_t, Y)
               F_t = act(Phi_t B_t), B_t drawn
      round    Omega_t minimises |Y - Phi_t W_t - F_t Omega W_t|^2 + g |Omega|^2     from moments of (F_t, Y - Phi_t W_t)
      both     Phi_t+1 = Phi_t + F_t Omega_t,  Omega_t = A_t W_t'
    round    the head on Phi_depth: W, and what PACE needs to personalise it

The update by two eigendecompositions, F'F = V diag(e) V' and W'W = U diag(w) U' (classes x classes; the published one takes that
of W W', which has the same w): A = V [(V'F'R U) / (g + e w')] U'. Where e w' vanishes g keeps it finite, so a singular system is
no trouble. Omega is never formed: A is as narrow as W, and so is all that a layer sends down.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import ACTIVATIONS, DeepMap, layer_names
from gramfold.federation import Task
from gramfold.heads import Head
from gramfold.methods.analytic import FOLDED, MapLike, check_space, draw_map, labels_of, solve_pooled, target_rows
from gramfold.methods.pace import PACE
from gramfold.methods.protocol import ClientData
from gramfold.moments import Moments
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.wire import Packet

REPRESENTATION = "representation"
"""In a client's memory: its samples under the layers solved so far."""


@dataclass(frozen=True)
class DeepAFL(PACE):
    """`features`: the first map; None: the features themselves and GELU ones, one for every four samples, up to 1024. `depth`:
    residual layers. `activation`: theirs. `shrinkage`: g, in units of the mean squared length of F_t's rows. `personal`: whether
    clients personalise the last representation as PACE does, or share one linear head."""

    name: ClassVar[str] = "deepafl"
    summary: ClassVar[str] = "residual analytic layers over the features, then PACE's head (or a shared one)"
    paper: ClassVar[str] = "Tang et al., ICLR 2026"

    features: MapLike | None = None
    depth: int = 5
    activation: str = "gelu"
    shrinkage: float = 0.005
    personal: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_penalties("shrinkage")
        if self.depth < 0 or self.shrinkage == 0 or self.activation not in ACTIVATIONS:
            raise GramfoldError("DeepAFL needs a depth from 0 up, a positive shrinkage, and one of: " + ", ".join(ACTIVATIONS))

    @property
    def rounds(self) -> int:
        return 2 * self.depth + 1

    def begin(self, task: Task) -> Packet:
        base = draw_map(self.features or f"bias+linear+gelu:{_default_width(task.samples)}", task).description
        deep = {"base": base, "activation": self.activation}
        return Packet({}, {**super().begin(task).meta, "features": deep, "layers": 0, "stage": "head"})

    def map(self, broadcast: Packet) -> DeepMap:
        return DeepMap(broadcast.meta["features"], _solved(broadcast))

    def rows(self, client: ClientData, broadcast: Packet) -> Array:
        """Phi_t of the client's samples; it takes one step from what it remembers, or all of them."""
        deep, layers = self.map(broadcast), broadcast.meta["layers"]
        rows, so_far = client.memory.get(REPRESENTATION), int(client.memory.get(FOLDED, 0))
        if rows is None:
            rows, so_far = DeepMap(broadcast.meta["features"], {})(client.train.inputs), 0
        for t in range(so_far, layers):
            rows = deep.step(rows, t)
        return rows

    def local(self, client: ClientData, broadcast: Packet) -> Moments:
        deep, layers = self.map(broadcast), broadcast.meta["layers"]
        rows = self.rows(client, broadcast)
        client.memory |= {REPRESENTATION: rows, FOLDED: np.array(layers)}
        if broadcast.meta["stage"] == "head":
            upload = Moments.from_features(rows, client.train.targets, labels_of(broadcast), deep.fingerprint)
            return self.answerable(upload, client) if layers == self.depth else upload
        residuals = target_rows(client.train, broadcast, rows) - rows @ broadcast[layer_names(layers)[1]]
        return Moments.from_features(deep.widen(rows, layers), residuals, None, deep.fingerprint)

    def check(self, upload: Any, broadcast: Packet) -> None:
        check_space(upload, self.map(broadcast), labels_of(broadcast) if broadcast.meta["stage"] == "head" else None)

    def aggregate(self, total: Moments, broadcast: Packet) -> Packet:
        layers, meta, solved = broadcast.meta["layers"], dict(broadcast.meta), _solved(broadcast)
        inner, outer = layer_names(layers)
        if meta["stage"] == "layer":
            known = {**solved, outer: broadcast[outer]}
            step = {inner: _step(total, broadcast[outer], self.shrinkage)}
            return Packet(known | step, {**meta, "layers": layers + 1, "stage": "head"}, known=frozenset(known))
        if layers == self.depth:
            told = super().aggregate(total, broadcast)
            return Packet({**told.arrays, **solved}, told.meta, told.triangular, frozenset(solved))
        _, factor = solve_pooled(total, self.beta)
        return Packet({**solved, outer: factor.solve(total.cross)}, {**meta, "stage": "layer"}, known=frozenset(solved))

    def personalize(self, client: ClientData, broadcast: Packet) -> Head:
        if not self.personal:
            return self.global_head(broadcast)
        head = super().personalize(client, broadcast)
        if self.depth == 0 or FOLDED not in client.memory:
            return head
        # the layers have seen the sample's label, and cannot be left out with it: such an estimate would be too good
        return replace(head, chosen={key: value for key, value in head.chosen.items() if "leave_one_out" not in key})

    def global_head(self, broadcast: Packet) -> Head:
        return super().global_head(broadcast) if self.personal else self.shared_head(broadcast, broadcast["weights"])


def _default_width(samples: int | None) -> int:
    return 1024 if samples is None else 2 ** min(max(int(math.log2(max(samples / 4, 1))), 5), 10)


def _solved(broadcast: Packet) -> dict[str, Array]:
    """The arrays of the layers solved so far."""
    return {name: broadcast[name] for t in range(broadcast.meta["layers"]) for name in layer_names(t)}


def _step(total: Moments, weights: Array, shrinkage: float) -> Array:
    """The residual layer in closed form: A of Omega = A W'."""
    values, vectors = arrays.eigh(total.lower_gram)
    head_values, head_vectors = arrays.eigh(weights.T @ weights)
    penalty = shrinkage * (float(values.sum()) / max(total.n, 1) or 1.0)
    spread = values.clip(0.0)[:, None] * head_values.clip(0.0)[None, :]
    return vectors @ ((vectors.T @ total.cross @ head_vectors) / (penalty + spread)) @ head_vectors.T
