"""The linear mixed model, by restricted maximum likelihood, over clients that keep their rows (Laird and Ware, 1982).

    y = x'(b + u_k) + e,   u_kj ~ N(0, s2 g_j),  e ~ N(0, s2)              x: one, and the columns, standardised
    round 1     moments of [x y]                                          where columns lie, and how far they spread
    round 2 on  at g: [x y]'V_k^-1 [x y], and a few products of it        solve/random_effects
    server      b, s2, a step of Fisher scoring in g, halved where the likelihood has fallen
    last round  the same at the g that no step improves
    client      u_k, the best linear unbiased prediction, with its standard error; every sample left out, exactly

Sums only; no client's moments are seen by themselves under a secure sum. What other programs print of pooled rows - variances,
fixed effects with their standard errors, each client's deviations - is what is found here, to rounding.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.heads import Errors, Head
from gramfold.methods.asked import AskedSums
from gramfold.methods.protocol import ClientData, Method
from gramfold.methods.spaces import Space, counting, draw_map, root_weights, scaled
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.random_effects import Deviation, Fit, Sums, block_of, left_out, of_columns, whitened
from gramfold.uploads import NamedSums
from gramfold.wire.record import Record

ROUNDS = 24
"""At most; some seven are usual."""
SETTLED = 1e-9
"""A step that is expected to raise the log-likelihood by no more is the last."""
EACH = 12
"""Columns up to which each has a variance of its own; of more all have one together."""
MOST_COLUMNS = 256
"""It takes the square of so many numbers, twice."""
SURE = 1.959963984540054
"""Standard errors to either side of an estimate that hold it in 95 of 100 cases."""


@dataclass(frozen=True)
class AskedEffects(AskedSums):
    """Sums over the samples of one client."""

    def check(self, upload: Any) -> None:
        super().check(upload)
        moments, (_, samples) = arrays.to_numpy(upload["moments"]), arrays.to_numpy(upload["sizes"])
        if not 0 < samples <= MOST_SAMPLES or np.diagonal(moments).min() < -1e-9 * np.abs(moments).max():
            raise MethodError("what it says of its samples is not what samples can be")


@dataclass(frozen=True)
class Varying(Record, kind="mixed"):
    """Where the fit stands. `change` makes [1 x y] of standardised columns; before the first round it is not known."""

    space: Space
    slopes: bool
    change: Array | None = None
    ratios: Array | None = None
    """g of every block, that the round is asked at; and the likeliest so far, with its likelihood."""
    best: Array | None = None
    likelihood: float = 0.0
    final: bool = False
    """Whether the round is the last."""
    fixed: Array | None = None
    inverse: Array | None = None
    noise: Array | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outputs(self) -> int:
        return int(self.space.outputs or 1)

    @property
    def blocks(self) -> np.ndarray:
        return block_of(self.space.map.inputs, self.slopes, EACH)

    @property
    def by_column(self) -> np.ndarray:
        """g of each column."""
        assert self.ratios is not None
        return of_columns(arrays.to_numpy(self.ratios), self.blocks)

    @property
    def fit(self) -> Fit:
        if self.fixed is None or self.inverse is None or self.noise is None:
            raise MethodError("there is no model before the last round")
        fixed, inverse, noise = (arrays.to_numpy(part) for part in (self.fixed, self.inverse, self.noise))
        return Fit(fixed, inverse, noise, self.likelihood)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        inputs, outputs = self.space.map.dim, self.outputs
        if self.change is None:
            return {"moments": (inputs + outputs,) * 2, "sizes": (2,)}
        return Sums.shapes(inputs, outputs, int(self.blocks.max()) + 1)


@dataclass(frozen=True)
class MixedModel(Method):
    """Continuous targets; columns as they are. `slopes`: whether clients differ in the columns' weights as well as in an offset,
    with a variance for each column, or, of more than twelve, one for all."""

    name: ClassVar[str] = "mixed"
    summary: ClassVar[str] = "the linear mixed model (REML): fixed effects, variances, each client's deviations with their errors"
    paper: ClassVar[str] = "Laird and Ware, Biometrics 1982"
    weighted: ClassVar[bool] = True

    slopes: bool = True

    def __post_init__(self) -> None:
        if self.slopes not in (True, False):
            raise MethodError(f"slopes is True or False, not {self.slopes!r}")

    @property
    def rounds(self) -> int:
        return ROUNDS

    def is_last(self, round_number: int, broadcast: Varying) -> bool:
        return broadcast.final

    def begin(self, task: Task) -> Varying:
        if task.labels is not None:
            raise MethodError("the mixed model is of continuous targets: use pace, or give regression=True")
        if task.inputs > MOST_COLUMNS:
            raise MethodError(f"the mixed model takes up to {MOST_COLUMNS} columns, not {task.inputs}; give fewer, or use pace")
        return Varying(Space.of(draw_map("bias+columns", task), task), self.slopes)

    def asked(self, broadcast: Varying) -> AskedEffects:
        return AskedEffects(broadcast.shapes)

    def local(self, client: ClientData, broadcast: Varying) -> NamedSums:
        rows, targets, samples = _observed(client, broadcast.space)
        both = np.concatenate([rows, targets], axis=1)
        gram = both.T @ both
        if broadcast.change is None:
            return NamedSums({"moments": gram, "sizes": np.array([0.0, samples])})
        change = arrays.to_numpy(broadcast.change)
        sums = Sums.of(change.T @ gram @ change, rows.shape[1], broadcast.by_column, broadcast.blocks, samples)
        return NamedSums(sums.parts)

    def aggregate(self, total: NamedSums, broadcast: Varying) -> Varying:
        parts = {name: arrays.to_numpy(total[name]) for name in broadcast.shapes}
        if broadcast.change is None:
            nothing = np.zeros(int(broadcast.blocks.max()) + 1)
            return replace(broadcast, change=_standardising(parts["moments"], broadcast.space.map.dim), ratios=nothing)
        sums = Sums.from_parts(parts)
        fit = Fit.of(sums, broadcast.space.map.dim)
        if broadcast.final:
            return _solved(broadcast, fit, sums.samples)
        return _following(broadcast, fit)

    def personalize(self, client: ClientData, broadcast: Varying) -> Head:
        fit, ratios, space = broadcast.fit, broadcast.by_column, broadcast.space
        rows, targets, _ = _observed(client, space)
        change, inputs = arrays.to_numpy(broadcast.change), rows.shape[1]
        rows = rows @ change[:inputs, :inputs]
        both = np.concatenate([rows, targets], axis=1)
        own, _ = whitened(both.T @ both, inputs, ratios)
        deviation = Deviation.of(own, inputs, ratios, fit, client.contributed)
        told, variance = left_out(rows, targets, ratios, fit, client.contributed)
        roots = root_weights(counting(client), rows)
        error = targets - told if roots is None else (targets - told) / roots
        head = space.head(change[:inputs, :inputs] @ (fit.fixed + deviation.estimate), self.name, _own(deviation, fit, change))
        spread = np.sqrt(fit.noise * float(variance.mean()))
        found = {**head.chosen, "leave_one_out_rmse": float(np.sqrt((error**2).sum(1).mean()))}
        return replace(head, errors=Errors.of(error, spread), chosen=found)

    def global_head(self, broadcast: Varying) -> Head | None:
        """The fixed effects alone: for a client of which nothing is known."""
        if broadcast.fixed is None or broadcast.change is None:
            return None
        fit, inputs = broadcast.fit, broadcast.space.map.dim
        head = broadcast.space.head(arrays.to_numpy(broadcast.change)[:inputs, :inputs] @ fit.fixed, self.name)
        spread = np.sqrt(fit.noise * (1.0 + float(broadcast.by_column.sum())))  # columns vary by one
        return replace(head, errors=Errors(np.zeros((0, len(spread))), spread))


def _observed(client: ClientData, space: Space) -> tuple[np.ndarray, np.ndarray, float]:
    """[1 x] and y of a client's samples, times the roots of their weights, and how many they are."""
    train = counting(client)
    rows = space.map(train.inputs)
    targets, roots = space.targets(train, rows), root_weights(train, rows)
    samples = float(train.n if train.weights is None else train.weights.sum())
    return arrays.to_numpy(scaled(rows, roots)), arrays.to_numpy(scaled(targets, roots)), samples


def _standardising(moments: np.ndarray, inputs: int) -> np.ndarray:
    """From [1 x y] to the same with columns centred, and varying by one."""
    n, sums = moments[0, 0], moments[0]
    variance = np.diagonal(moments) / n - (sums / n) ** 2
    squares = np.diagonal(moments) / n
    scale = np.where(variance > 1e-13 * squares, np.sqrt(variance.clip(0.0)), np.inf)  # one that is constant tells nothing
    change = np.eye(len(moments))
    change[np.arange(1, inputs), np.arange(1, inputs)] = 1.0 / scale[1:inputs]
    change[0, 1:inputs] = -(sums[1:inputs] / n) / scale[1:inputs]
    return change


def _following(broadcast: Varying, fit: Fit) -> Varying:
    """What is asked next: a step from here, or half of the last one, where that went too far."""
    here = arrays.to_numpy(broadcast.ratios)
    if broadcast.best is not None and not fit.likelihood > broadcast.likelihood - SETTLED:
        best = arrays.to_numpy(broadcast.best)
        last = bool(np.abs(here - best).max() <= 1e-6 * max(float(best.max()), 1e-6))
        return replace(broadcast, ratios=best if last else (here + best) / 2, final=last)
    there = fit.step(here)
    settled = fit.gain(here, there) <= SETTLED
    return replace(broadcast, ratios=there, best=here, likelihood=fit.likelihood, final=settled)


def _solved(broadcast: Varying, fit: Fit, samples: float) -> Varying:
    """The model, and what the result says of it: of the first target, in the columns' own units."""
    ratios, noise = broadcast.by_column, float(fit.noise[0])
    scale = np.diagonal(arrays.to_numpy(broadcast.change))[: len(ratios)]
    told = scale > 0
    free, units = samples - float(told.sum()), float(np.log(scale[told]).sum())
    fixed, errors = scale * fit.fixed[:, 0], scale * np.sqrt(noise * np.diagonal(fit.inverse).clip(0.0))
    found = {
        "residual_variance": noise,
        "variances": {
            _name(j): float(ratios[j] * noise * scale[j] ** 2) for j, block in enumerate(broadcast.blocks) if block >= 0
        },
        "fixed": {_name(j): [float(fixed[j]), SURE * float(errors[j])] for j in range(len(ratios))},
        "log_likelihood": fit.likelihood + units - 0.5 * free * (1.0 + math.log(2.0 * math.pi)),
    }
    return replace(broadcast, fixed=fit.fixed, inverse=fit.inverse, noise=fit.noise, likelihood=fit.likelihood, chosen=found)


def _own(deviation: Deviation, fit: Fit, change: np.ndarray) -> dict[str, Any]:
    """A client's deviations from everybody, of the first target: each with what it may be off by, 95 times of 100."""
    scale = np.diagonal(change)
    told = {
        _name(j): [float(each[j, 0] * scale[j]) for each in (deviation.estimate, SURE * deviation.error)]
        for j in range(len(fit.fixed))
        if deviation.error[j, 0] > 0
    }
    return {"deviations": told}


def _name(column: int) -> str:
    """A column's number, as everywhere; that of ones is the offset, which is meant at the columns' means."""
    return "offset" if column == 0 else str(column - 1)
