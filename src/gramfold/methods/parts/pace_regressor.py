"""PACE for continuous targets: no classes, so no prior and no discriminant; what a client adds to the shared ridge, by
leave-one-out, and how far it is off.

Either its own samples count more in the ridge (FedHiP's blend), or the residuals are regressed on the refinement's features and a
constant: with a large penalty that is an offset of its own alone, shrunk by how few samples there are. Of all ways and of adding
nothing a client takes a mean, each by how likely it leaves the samples that were left out. A client with many has found the best;
of a few nobody knows which it is, and who took the luckiest would often do worse than by adding nothing.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramfold.heads import Head
from gramfold.methods.parts.influence import Influence, blended
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import mean_squared_length, ridge_from_rows
from gramfold.solve.leave_one_out import Kernel

ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
GAMMAS = np.logspace(-2, 2, 9)
"""Penalties tried, in units of the kernel's mean diagonal."""
CONSTANT = 10.0
"""The constant's square, in units of the refinement's: how much less an offset is shrunk than the rest."""
LEAST = 0.01
"""Of the likeliest way's share; ways with less are left out."""

WIDER, FEW = 2.0, 5.0
"""How far beyond the values that a client has seen its head may go: so many times what one is usually off, and, of so many
samples, once again as far as they lie apart; of more, less."""


@dataclass(frozen=True)
class Addition:
    """What a client adds: `found`, the likeliest way, the left-out predictions, the shared solution's move, and the weights of
    the refinement's features with its offset; None: nothing of the kind."""

    found: dict[str, float]
    left_out: Array
    move: Array | None
    refinement: tuple[Array, Array] | None


class Regression:
    """A client's samples: rows of the refinement's features, targets, and `base`, the shared ridge's predictions with each sample
    left out. `roots`: of the samples' weights, by which the rows are multiplied already."""

    def __init__(self, refined: Array, targets: Array, base: Array, roots: Array | None) -> None:
        one = roots if roots is not None else arrays.zeros((len(refined), 1), refined) + 1.0
        self.constant = math.sqrt(CONSTANT * mean_squared_length(refined, roots))
        self.rows = arrays.concatenate([refined, self.constant * one], axis=1)
        self.targets, self.base, self.roots = targets, base, roots

    def choose(self, influence: Influence, residuals: Array, folded: bool, weights: Any) -> Addition:
        """The mean of all ways. `residuals` are the shared ridge's, `folded` says whether the samples are part of it."""
        kernel, left = Kernel.of(self.rows, self.roots), self.targets - self.base
        gammas, alphas = (GAMMAS * kernel.mean_diagonal).tolist(), ALPHAS if influence.can_weigh_up else ()
        blends = [blended(influence, residuals, alpha, folded) for alpha in alphas]
        left_out = [
            self.base,
            *(self.targets - kernel.left_out_residuals(left, gamma) for gamma in gammas),
            *(self.targets - (alone if self.roots is None else alone / self.roots) for _, alone in blends),
        ]
        shares = self._shares(left_out, len(gammas), weights)
        refined, moved = shares[1 : 1 + len(gammas)], shares[1 + len(gammas) :]
        ways = [{}, *({"gamma": gamma} for gamma in gammas), *({"alpha": alpha} for alpha in alphas)]
        parts = [self.refinement(gamma) if share else None for share, gamma in zip(refined, gammas, strict=True)]
        return Addition(
            ways[int(shares.argmax())],
            _mean(shares, left_out),
            _mean(moved, [move for move, _ in blends]) if moved.any() else None,
            (_mean(refined, [part and part[0] for part in parts]), _mean(refined, [part and part[1] for part in parts]))
            if refined.any()
            else None,
        )

    def _shares(self, left_out: list[Array], gammas: int, weights: Any) -> np.ndarray:
        """Those of the ways, by the likelihood of normally distributed errors. Adding nothing, a refinement and a blend are as
        likely before."""
        squares = np.stack([arrays.to_numpy(((self.targets - each) ** 2).sum(1)) for each in left_out])
        errors = np.average(squares, axis=1, weights=weights)
        n = squares.shape[1] if weights is None else float(np.sum(weights))
        before = np.full(len(errors), 1.0)
        before[1 : 1 + gammas] /= gammas
        before[1 + gammas :] /= max(len(errors) - 1 - gammas, 1)
        worth = np.log(before) - n / 2 * np.log(errors + 1e-12 * errors.max() + 1e-300)
        shares = np.exp(worth - worth.max())
        shares[shares < LEAST] = 0.0
        return np.asarray(shares / shares.sum())

    def refinement(self, gamma: float) -> tuple[Array, Array]:
        """The weights of the refinement's features, and the offset."""
        left = self.targets - self.base
        solved = ridge_from_rows(self.rows, left if self.roots is None else left * self.roots, gamma)
        return solved[:-1], self.constant * solved[-1]


def _mean(shares: np.ndarray, of: list[Any]) -> Array:
    """The sum of those that have a share, times these."""
    return sum((float(share) * each for share, each in zip(shares, of, strict=True) if share), 0.0)


def bounded(head: Head, targets: Array) -> Head:
    """The head with bounds, from the targets (n x outputs) that its client has: features far from all that were seen may lead
    anywhere. A client of fewer than FEW samples knows of no bounds."""
    seen = arrays.to_numpy(targets)
    if head.errors is None or len(seen) < FEW:
        return head
    least, largest = seen.min(0), seen.max(0)
    room = WIDER * head.errors.spread + (largest - least) * FEW / len(seen)
    return replace(head, bounds=np.stack([least - room, largest + room], axis=1).astype(float))
