"""How far clients differ, on tables of values: the variances of their own offsets and slopes, by steps of restricted maximum
likelihood in the rounds that are asked anyway (`solve/random_effects.py`).

    y = z'(b + u_k) + e       z: one, and the standardised columns; u_kj ~ N(0, s2 g_j)

The first round asks at g = 0, where all clients are one. Where no slope of the likelihood stands out from chance there, that is
the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.errors import GramfoldError
from gramfold.features import Map
from gramfold.federation import Samples
from gramfold.heads import Head
from gramfold.methods.spaces import root_weights
from gramfold.moments.consistent import MOST_SAMPLES
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.random_effects import Deviation, Fit, Sums, block_of, left_out, of_columns, whitened
from gramfold.uploads import NamedSums
from gramfold.wire.record import Record

MOST_COLUMNS = 64
"""Inputs up to which it is asked."""
EACH = 12
"""Columns up to which each has a variance of its own; of more all have one together."""
SURE = 3.0
"""By so many standard errors the likelihood must rise from g = 0 in some block."""
WORTH = 5.0
"""So many nats clients' own effects must make all samples likelier."""
SETTLED = 0.3
"""A step that is expected to gain less, in nats, is not asked for."""
SAID = 6
"""Slopes of its own that a client is told of."""
NAME = "effects "
CONFIDENCE = 1.959963984540054
"""Standard errors to either side of an estimate that hold it in 95 of 100 cases."""


@dataclass(frozen=True)
class Effects(Record, kind="effects"):
    """Of everybody, `fixed`, and of clients, with the variance `ratios` s2 of each block of columns; `plain` makes [1, z]."""

    plain: Map
    ratios: Array
    fixed: Array
    inverse: Array
    noise: Array
    likelihood: float

    @property
    def by_column(self) -> np.ndarray:
        return of_columns(arrays.to_numpy(self.ratios), block_of(self.plain.dim - 1, True, EACH))

    @property
    def fit(self) -> Fit:
        fixed, inverse, noise = (arrays.to_numpy(part) for part in (self.fixed, self.inverse, self.noise))
        return Fit(fixed, inverse, noise, self.likelihood)

    def alone(self, rows: np.ndarray, targets: np.ndarray, contributed: bool) -> tuple[np.ndarray, np.ndarray]:
        """What the mixed model of all other samples says of each of a client's (rows and targets times the roots of their
        weights), and the client's weights in it."""
        told, _ = left_out(rows, targets, self.by_column, self.fit, contributed)
        return told, self.fit.fixed + self._deviation(rows, targets, contributed).estimate

    def beside(self, rows: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same of what something else has left: a ridge as dear as clients are alike, and an offset as well."""
        root = np.sqrt(self.by_column)
        along = rows * root
        half = np.linalg.solve(along.T @ along + np.eye(len(root)), along.T)
        weights, shares = half @ left, np.einsum("ij,ji->i", along, half)
        return left - (left - along @ weights) / (1.0 - shares)[:, None], root[:, None] * weights

    def told(self, head: Head, train: Samples, contributed: bool) -> Head:
        """A client's head with its deviations, and with intervals that follow from the variances where its samples are too few:
        as wide as the mixed model's, or as its own left-out errors where these are larger; no wider than the shared head's."""
        chosen, errors = {**head.chosen, "deviations": self.deviations(train, contributed)}, head.errors
        if errors is not None:
            own = np.sqrt(np.mean(errors.left_out**2, axis=0))
            errors = replace(errors, spread=np.minimum(errors.spread, np.maximum(own, self.spread(train, contributed))))
        return replace(head, chosen=chosen, errors=errors)

    def deviations(self, train: Samples, contributed: bool) -> dict[str, list[float]]:
        """A client's own offset and the slopes that stand out most, of the first target: each with what it may be off by, 95
        times of 100; of columns for a standard deviation."""
        found = self._deviation(*_observed(self.plain, train), contributed)
        own, sure = found.estimate[:, 0], CONFIDENCE * found.error[:, 0]
        varying = np.flatnonzero(sure > 0)
        most = varying[np.argsort(-np.abs(own[varying]) / sure[varying], kind="stable")[:SAID]]
        return {_name(j): [float(own[j]), float(sure[j])] for j in sorted({*most.tolist(), *varying[varying == 0].tolist()})}

    def spread(self, train: Samples, contributed: bool) -> np.ndarray:
        """How far a client's new samples lie from what the mixed model says of them, a standard deviation of each target: the
        noise, and what its samples leave open of its effects."""
        _, wider = left_out(*_observed(self.plain, train), self.by_column, self.fit, contributed)
        return np.asarray(np.sqrt(wider.mean() * self.fit.noise))

    def _deviation(self, rows: np.ndarray, targets: np.ndarray, contributed: bool) -> Deviation:
        both = np.concatenate([rows, targets], axis=1)
        own, _ = whitened(both.T @ both, rows.shape[1], self.by_column)
        return Deviation.of(own, rows.shape[1], self.by_column, self.fit, contributed)

    @property
    def described(self) -> dict[str, Any]:
        """For the result: of the first target."""
        ratios, noise = arrays.to_numpy(self.ratios), float(arrays.to_numpy(self.noise)[0])
        whole = len(ratios) == self.plain.dim
        names = ["offset", *(_name(j + 1) if whole else "every column" for j in range(len(ratios) - 1))]
        varies = {name: float(ratio) * noise for name, ratio in zip(names, ratios, strict=True) if ratio > 0}
        return {"variances": varies, "residual_variance": noise}


@dataclass(frozen=True)
class Asking(Record, kind="differences/effects"):
    """What a round asks: sums at `ratios`. `best`: the likeliest so far, and how likely samples are without any effect."""

    plain: Map
    outputs: int
    ratios: Array
    best: Effects | None = None
    without: float | None = None

    @classmethod
    def begin(cls, plain: Map, outputs: int) -> "Asking":
        return cls(plain, outputs, np.zeros(int(block_of(plain.dim - 1, True, EACH).max()) + 1))

    @property
    def _blocks(self) -> np.ndarray:
        return block_of(self.plain.dim - 1, True, EACH)

    def upload(self, train: Samples) -> NamedSums:
        rows, targets = _observed(self.plain, train)
        samples = float(train.n if train.weights is None else arrays.to_numpy(train.weights).sum())
        both = np.concatenate([rows, targets], axis=1)
        by_column = of_columns(arrays.to_numpy(self.ratios), self._blocks)
        sums = Sums.of(both.T @ both, rows.shape[1], by_column, self._blocks, samples)
        return NamedSums({NAME + name: part for name, part in sums.parts.items()})

    def after(self, total: NamedSums) -> "tuple[Asking | None, Effects | None]":
        """What is asked next (None: nothing), and what was found so far."""
        here = arrays.to_numpy(self.ratios)
        fit = Fit.of(Sums.from_parts({name: arrays.to_numpy(total[NAME + name]) for name in self._shapes}), self.plain.dim)
        without = fit.likelihood if self.without is None else self.without
        best = self.best
        if best is None or fit.likelihood > best.likelihood:
            best = Effects(self.plain, here, fit.fixed, fit.inverse, fit.noise, fit.likelihood)
        there = fit.step(here) if best.likelihood == fit.likelihood else (here + arrays.to_numpy(best.ratios)) / 2
        rising = fit.told & (fit.slope > SURE * np.sqrt(fit.curvature.diagonal().clip(0.0)))
        done = not rising.any() if self.without is None else fit.gain(here, there) < SETTLED
        worth = best if best.likelihood > without + WORTH else None
        return None if done else replace(self, ratios=there, best=best, without=without), worth

    @property
    def _shapes(self) -> Mapping[str, tuple[int, ...]]:
        return Sums.shapes(self.plain.dim, self.outputs, len(arrays.to_numpy(self.ratios)))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {NAME + name: shape for name, shape in self._shapes.items()}


def check_effects(upload: NamedSums) -> None:
    """Raise unless these can be the sums of one client."""
    moments, (_, samples) = arrays.to_numpy(upload[NAME + "moments"]), arrays.to_numpy(upload[NAME + "sizes"])
    if not 0 < samples <= MOST_SAMPLES or np.diagonal(moments).min() < -1e-9 * np.abs(moments).max():
        raise GramfoldError("what it says of its effects is not what samples can say")


def _observed(plain: Map, train: Samples) -> tuple[np.ndarray, np.ndarray]:
    """[1, z] and targets of a client's samples, times the roots of their weights."""
    rows = plain(train.inputs)
    roots, rows, targets = root_weights(train, rows), arrays.to_numpy(rows), arrays.to_numpy(train.targets).astype(float)
    return (rows, targets) if roots is None else (rows * arrays.to_numpy(roots), targets * arrays.to_numpy(roots))


def _name(column: int) -> str:
    return "offset" if column == 0 else str(column - 1)
