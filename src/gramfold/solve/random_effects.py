"""How far clients differ: a linear mixed model by restricted maximum likelihood (REML), from sums over clients.

    y_k = X_k b + Z_k u_k + e_k       u_kj ~ N(0, s2 g_j), e_k ~ N(0, s2); Z is X, or some of its columns (g_j = 0 for the others)
    V_k = I + X_k D(g) X_k'

    client   M_k = [X y]'V_k^-1 [X y] from its own moments at g = 0, by a system as small as X is wide
    sums     M = sum M_k, sum log |V_k|, and of each block of columns that share g: T = sum_j M_k[:, j] M_k[j, :],
             t = sum_j M_k[j, j] and, of two blocks, the squares of M_k[j, j']
    server   b = A^-1 M_xy with A = M_xx; s2 = (M_yy - b'M_xy) / (N - p); the likelihood, its slope in g, a step of Fisher scoring

With several targets g is common to them and s2 each one's own. Sums of N - p and p^2 numbers: no sample and no client is seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gramfold.numerics.arrays import Array

NOTHING = 1e-12
"""Of the largest, an eigenvalue of A below which a direction has no samples."""


def whitened(gram: Array, inputs: int, ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """M_k and log |V_k| of a client with these moments of [X y] at g = 0, `inputs` being X's columns and `ratios` g of each."""
    roots = np.sqrt(ratios)
    system = np.eye(inputs) + roots[:, None] * gram[:inputs, :inputs] * roots
    lower = np.linalg.cholesky(system)
    half = np.linalg.solve(lower, roots[:, None] * gram[:inputs])
    return gram - half.T @ half, 2.0 * float(np.log(np.diagonal(lower)).sum())


@dataclass(frozen=True)
class Sums:
    """Over clients, at one g; `blocks` is each column's block, -1 where it does not differ between clients."""

    moments: np.ndarray
    """M ((p + C) x (p + C))."""
    products: np.ndarray
    """T of every block (B x (p + C) x (p + C))."""
    traces: np.ndarray
    """t of every block (B)."""
    squares: np.ndarray
    """Of every two (B x B)."""
    log_size: float
    samples: float

    @classmethod
    def of(cls, gram: Array, inputs: int, ratios: np.ndarray, blocks: np.ndarray, samples: float) -> "Sums":
        """One client's."""
        moments, log_size = whitened(gram, inputs, ratios)
        members = [np.flatnonzero(blocks == block) for block in range(blocks.max() + 1)]
        products = np.stack([moments[:, own] @ moments[own] for own in members])
        traces = np.array([np.trace(moments[np.ix_(own, own)]) for own in members])
        squares = np.array([[(moments[np.ix_(one, other)] ** 2).sum() for other in members] for one in members])
        return cls(moments, products, traces, squares, log_size, samples)

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """As named arrays, which add."""
        return {**{name: np.asarray(part, float) for name, part in vars(self).items() if name not in ("log_size", "samples")},
                "sizes": np.array([self.log_size, self.samples])}  # fmt: skip

    @classmethod
    def from_parts(cls, parts: Mapping[str, np.ndarray]) -> "Sums":
        log_size, samples = (float(each) for each in parts["sizes"])
        return cls(parts["moments"], parts["products"], parts["traces"], parts["squares"], log_size, samples)

    @staticmethod
    def shapes(inputs: int, outputs: int, blocks: int) -> dict[str, tuple[int, ...]]:
        """Of the parts."""
        side = inputs + outputs
        shapes = {"moments": (side, side), "products": (blocks, side, side), "traces": (blocks,), "squares": (blocks, blocks)}
        return {**shapes, "sizes": (2,)}


@dataclass(frozen=True)
class Fit:
    """What follows from the sums at one g: `fixed` b (p x C), `inverse` A^-1, `noise` s2 (C), the restricted log-likelihood up to
    a constant, its slope in each block's g, and the expected curvature."""

    fixed: np.ndarray
    inverse: np.ndarray
    noise: np.ndarray
    likelihood: float
    slope: np.ndarray = field(default_factory=lambda: np.zeros(0))
    curvature: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    told: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    """Of which blocks the samples tell anything: of a single client, or a constant column, there is nothing to tell."""

    @classmethod
    def of(cls, sums: Sums, inputs: int) -> "Fit":
        moments = (sums.moments + sums.moments.T) / 2
        values, vectors = np.linalg.eigh(moments[:inputs, :inputs])
        real = values > NOTHING * values[-1]
        inverse = (vectors[:, real] / values[real]) @ vectors[:, real].T
        fixed = inverse @ moments[:inputs, inputs:]
        outputs, free = fixed.shape[1], max(sums.samples - float(real.sum()), 1.0)
        away = np.concatenate([-fixed, np.eye(outputs)])
        left = np.einsum("ic,ij,jc->c", away, moments, away)
        noise = left.clip(np.finfo(float).tiny) / free
        likelihood = -0.5 * float((free * np.log(noise)).sum() + outputs * (sums.log_size + np.log(values[real]).sum()))
        parts = np.einsum("ic,bij,jc->bc", away, sums.products, away) / noise
        expected = sums.traces - np.einsum("ij,bji->b", inverse, sums.products[:, :inputs, :inputs])
        slope = 0.5 * (parts.sum(1) - outputs * expected)
        curvature = 0.5 * outputs * (sums.squares - np.outer(sums.traces, sums.traces) / free)
        told = np.diagonal(curvature) > NOTHING * np.diagonal(sums.squares)
        return cls(fixed, inverse, noise, likelihood, slope, curvature, told)

    def step(self, ratios: np.ndarray) -> np.ndarray:
        """From g of every block to a likelier one, none below nought."""
        free = self.told.copy()
        if not free.any():
            return np.array(ratios, float)
        while True:
            size = np.sqrt(np.where(self.told, np.diagonal(self.curvature), 1.0))
            scaled = self.curvature[np.ix_(free, free)] / np.outer(size[free], size[free])
            scaled[np.diag_indices(len(scaled))] += 1e-9
            moved = np.zeros(len(ratios))
            moved[free] = np.linalg.solve(scaled, self.slope[free] / size[free]) / size[free]
            stuck = free & (ratios <= 0) & (moved < 0)
            if not stuck.any():
                return np.asarray((ratios + moved).clip(0.0))
            free &= ~stuck
            if not free.any():
                return ratios.copy()

    def gain(self, before: np.ndarray, after: np.ndarray) -> float:
        """By how much the likelihood is expected to rise."""
        moved = after - before
        return float(self.slope @ moved - 0.5 * moved @ self.curvature @ moved)


@dataclass(frozen=True)
class Deviation:
    """A client's own: `estimate` u (p x C), the best linear unbiased prediction, and the standard error of u - u_k (p x C)."""

    estimate: np.ndarray
    error: np.ndarray

    @classmethod
    def of(cls, moments: np.ndarray, inputs: int, ratios: np.ndarray, fit: Fit, contributed: bool = True) -> "Deviation":
        """`moments`: the client's M_k; `contributed`: whether it is among those behind the fit."""
        away = np.concatenate([-fit.fixed, np.eye(fit.fixed.shape[1])])
        estimate = ratios[:, None] * (moments[:inputs] @ away)
        own = moments[:inputs, :inputs]
        told = own - own @ fit.inverse @ own if contributed else own
        share = ratios - ratios**2 * np.diagonal(told)
        if not contributed:  # what is not known of b comes on top
            share = share + ratios**2 * np.einsum("ij,jk,ik->i", own, fit.inverse, own)
        return cls(estimate, np.sqrt(share.clip(0.0)[:, None] * fit.noise))


def left_out(
    rows: np.ndarray, targets: np.ndarray, ratios: np.ndarray, fit: Fit, contributed: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """What the model of all other samples predicts for each of a client's (n x C), exactly at this g, and by how much more than
    the noise's its error varies (n, in units of s2): with P = V^-1 - V^-1 X A^-1 X'V^-1 the error is (P y)_i / P_ii, and its
    variance s2 / P_ii. A client that is not behind the fit has V^-1 for P."""
    inputs, roots = rows.shape[1], np.sqrt(ratios)
    lower = np.linalg.cholesky(np.eye(inputs) + roots[:, None] * (rows.T @ rows) * roots)
    half = np.linalg.solve(lower, (rows * roots).T).T
    residuals = targets - rows @ fit.fixed
    solved = residuals - half @ (half.T @ residuals)
    diagonal = 1.0 - (half**2).sum(1)
    if contributed:
        across = rows - half @ (half.T @ rows)
        diagonal = diagonal - np.einsum("ij,jk,ik->i", across, fit.inverse, across)
    diagonal = diagonal.clip(1e-9)
    return targets - solved / diagonal[:, None], 1.0 / diagonal


def block_of(columns: int, slopes: bool, most: int) -> np.ndarray:
    """The block of each of X's columns, the first being the offset: of its own for every column, or one for all beyond `most`."""
    blocks = np.full(1 + columns, -1)
    blocks[0] = 0
    if slopes and columns:
        blocks[1:] = 1 + np.arange(columns) if columns <= most else 1
    return blocks


def of_columns(ratios: Sequence[float] | np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """g of each column from that of each block."""
    each = np.append(np.asarray(ratios, float), 0.0)
    return np.asarray(each[blocks])
