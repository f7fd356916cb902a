"""Where the classes lie at a client: the shared discriminant, moved and re-whitened as far as the client's own samples tell.

In the shared whitened space, with a shared centroid c_j worth a samples and the shared scatter (one) worth b, the client's places
w_i of class j have the conjugate posterior

    m_j = (sum w_i + a c_j) / (n_j + a)      S = b I + sum (w_i - m_j)(w_i - m_j)' + a sum (m_j - c_j)(m_j - c_j)'

A left-out sample takes its place along, and its label has moved all others': with H the client's own part of what makes scores,
p = H Y, r = y - u, f = 1 / (1 - mean h), d = w - m and e = H (w - m) - h d

    the sum of class j loses f p_j r, that of its own w + f (p_j - h) r
    the scatter loses k / (k - 1) d d' + f (r e' + e r'), k = n_j + a

the former exactly, the latter to first order. Who takes its score out alone is promised too little by centroids of its own.
Clients side by side are one stack.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramfold.numerics import arrays, stacks
from gramfold.numerics.arrays import Array
from gramfold.numerics.stacks import Solver, transposed
from gramfold.solve.discriminant import Discriminant, Place, left_out_moments

SCATTER = 3.0
"""b, in units of a."""
SURE = 3.0
"""So many standard errors class means must lie from everybody's to count as different."""
GROUP = 100.0
"""a for a group of clients, which cannot try."""


@dataclass(frozen=True)
class LeftOut:
    """Of clients' samples (clients x n): their left-out scores, classes one-hot and as codes, how often each counts; `own`, what
    a client's own samples add to scores, H [Y, w], and the diagonal of H."""

    scores: Array
    targets: Array
    codes: Array
    once: Array
    places: Array
    own: Array
    leverages: Array

    @classmethod
    def without(cls, shared: Discriminant, scores: Array, targets: Array, codes: Array, once: Array) -> "LeftOut":
        """Without H, as long as nothing is left out."""
        mean, axes, _ = shared.on(scores)
        return cls(scores, targets, codes, once, (scores - mean) @ axes, scores, once)

    @property
    def sums(self) -> "Sums":
        counted = transposed(self.targets * self.once[..., None])
        weighed = self.places * self.once[..., None]
        return Sums(counted.sum(-1), counted @ self.places, transposed(self.places) @ weighed)


@dataclass(frozen=True)
class Sums:
    """Of samples' places: how many of each class (clients x C), their sums (clients x C x q) and products (clients x q x q)."""

    counts: Array
    of_class: Array
    products: Array

    @classmethod
    def of_moments(
        cls, shared: Discriminant, weights: Array, gram: Array, cross: Array, counts: np.ndarray, leverage: float
    ) -> "Sums":
        """Of samples with these moments, each left out of a ridge with these weights, every leverage taken at its mean."""
        plain_targets, plain = arrays.to_numpy(weights.T @ cross), arrays.to_numpy(weights.T @ (gram @ weights))
        with_targets, with_itself = left_out_moments(plain_targets, plain, counts, leverage)
        mean, axes = np.asarray(shared.mean, float), np.asarray(shared.axes, float)
        total = with_targets.sum(1)
        around = with_itself - np.outer(total, mean) - np.outer(mean, total) + counts.sum() * np.outer(mean, mean)
        sums = (with_targets - np.outer(mean, counts)).T @ axes
        return cls(counts[None].astype(float), sums[None], (axes.T @ around @ axes)[None])

    def differ(self, shared: Discriminant) -> np.ndarray:
        """By how many standard errors class means lie farther from the shared ones than by chance: the score test of 1 / a = 0 in
        N(c_j, (1 / n_j + 1 / a) s)."""
        centroids, n = shared.on(self.of_class)[2], self.counts[..., None]
        means, q = self.of_class / (n + (n == 0)), centroids.shape[1]
        squares = stacks.row_squares(means - centroids)
        left = (self.products * arrays.like(np.eye(q), means)).sum((-1, -2)) - (self.of_class * means).sum((-1, -2))
        within = left / (q * (n.sum((-1, -2)) - (n > 0).sum((-1, -2))).clip(1.0))
        told = within > 0  # of one sample a class nothing can be
        apart = squares * (told / (within + ~told))[..., None]
        over = (self.counts * (self.counts * apart - q)).sum(-1)
        return arrays.to_numpy(over / (2.0 * q * (self.counts**2).sum(-1)) ** 0.5)


@dataclass(frozen=True)
class OwnCentroids:
    """Clients' discriminants. `worth`: a (clients x 1 x 1)."""

    shared: Discriminant
    worth: Array
    mean: Array
    """Everybody's mean at the clients' places of the classes (clients x 1 x q)."""
    scatter: Solver
    """S / (n + b) = L L'."""
    centroids: Array
    """m - mean (clients x C x q), whitened by L."""
    counts: Array
    samples: Array
    """n + b (clients x 1 x 1)."""

    @classmethod
    def of(cls, shared: Discriminant, everybody: np.ndarray, sums: Sums, worth: np.ndarray) -> "OwnCentroids":
        """`everybody`: all clients' class counts; `worth`: of each client."""
        centroids, a = shared.on(sums.of_class)[2], arrays.like(worth, sums.of_class)[..., None, None]
        n = sums.counts[..., None]
        moved = (sums.of_class + a * centroids) / (n + a)
        across = transposed(sums.of_class) @ moved
        scatter = sums.products - across - transposed(across) + transposed(moved) @ (n * moved)
        scatter = scatter + a * (transposed(moved - centroids) @ (moved - centroids))
        samples = n.sum((-1, -2))[..., None, None] + SCATTER * a
        solver = Solver.of(scatter / samples, (SCATTER * a / samples)[..., 0, 0])
        middle = (arrays.like(everybody / everybody.sum(), moved) @ moved)[..., None, :]
        return cls(shared, a, middle, solver, _turned(solver, moved - middle), sums.counts, samples)

    def place(self, told: LeftOut) -> Place:
        """Where the clients' samples lie, each left out."""
        t, h, classes = told.once[..., None], told.leverages[..., None], told.targets.shape[-1]
        w = _turned(self.scatter, told.places - self.mean)
        r = _turned(self.scatter, (told.targets - told.scores) @ self.shared.on(t)[1])
        p = told.own[..., :classes]
        d = w - told.targets @ self.centroids
        # H of ones is p's sum: H (w - mean) from H w
        e = _turned(self.scatter, told.own[..., classes:] - p.sum(-1)[..., None] * self.mean) - p @ self.centroids - h * d
        f = 1.0 / (1.0 - (h * t).sum((-1, -2)) / t.sum((-1, -2)))[..., None, None]
        counts = self.counts[..., None, :] + self.worth + 0.0 * p
        k, own = stacks.pick(counts, told.codes)[..., None], stacks.pick(p, told.codes)[..., None]
        rest = (k - t).clip(1e-9)
        without = w - d - (t / rest) * (d + f * (own - h) * r)
        moves = t * f * p / counts
        stacks.put(moves, told.codes, 0.0)

        def along(vectors: Array) -> Array:
            """Products (n x C) with all centroids without the sample."""
            products = vectors @ transposed(self.centroids) - moves * _dot(vectors, r)
            stacks.put(products, told.codes, stacks.row_dots(vectors, without))
            return products

        share = t * k / rest / self.samples
        lost, pair = share / (1.0 - share * _dot(d, d)).clip(1e-3), t * f / self.samples
        kept = (self.samples - t) / self.samples
        squares = (self.centroids**2).sum(-1)[..., None, :] - moves * (
            2.0 * (r @ transposed(self.centroids)) - moves * _dot(r, r)
        )
        stacks.put(squares, told.codes, stacks.row_squares(without))
        along_d, along_r, along_e = along(d), along(r), along(e)
        by_d, by_r, by_e = _dot(w, d), _dot(w, r), _dot(w, e)
        products = kept * (along(w) + lost * by_d * along_d + pair * (by_r * along_e + by_e * along_r))
        squares = kept * (squares + lost * along_d**2 + 2.0 * pair * along_r * along_e)
        lengths = kept * (_dot(w, w) + lost * by_d**2 + 2.0 * pair * by_r * by_e)
        return Place(told.scores, self.mean, w, self.centroids, products, squares, lengths)

    def discriminants(self, clients: Sequence[int]) -> list[Discriminant]:
        """Those of some clients, for any scores."""
        mean, axes = np.asarray(self.shared.mean, float), np.asarray(self.shared.axes, float)
        whitened = arrays.like(axes, self.mean) + 0.0 * self.centroids[:, :1, :1]
        turned, middles, centroids = map(arrays.to_numpy, (_turned(self.scatter, whitened), self.mean, self.centroids))
        picked = list(clients)
        means = np.linalg.lstsq(axes.T, middles[picked, 0].T, rcond=None)[0].T  # of scores that lie there in the shared space
        return [Discriminant(mean + away, turned[k].copy(), centroids[k].copy()) for k, away in zip(picked, means, strict=True)]


def _turned(scatter: Solver, rows: Array) -> Array:
    return transposed(scatter.solve_lower(transposed(rows)))


def _dot(a: Array, b: Array) -> Array:
    return stacks.row_dots(a, b)[..., None]
