"""PACE for continuous targets: no classes, so no prior and no discriminant; what a client adds to the shared ridge, chosen by
leave-one-out, and how far it is off.

Either its own samples count more in the ridge (FedHiP's blend), or the residuals are regressed on the refinement's features and a
constant: with a large penalty that is an offset of its own alone, shrunk by how few samples there are.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gramfold.methods.parts.influence import Influence, blended
from gramfold.methods.parts.selection import Candidate, choose_candidate
from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array
from gramfold.solve.dual import mean_squared_length, ridge_from_rows
from gramfold.solve.leave_one_out import Kernel

ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
GAMMAS = np.logspace(-2, 2, 9)
"""Penalties tried, in units of the kernel's mean diagonal; none of it at all is tried too."""
CONSTANT = 10.0
"""The constant's square, in units of the refinement's: how much less an offset is shrunk than the rest."""


class Regression:
    """A client's samples: rows of the refinement's features, targets, and `base`, the shared ridge's predictions with each sample
    left out. `roots`: of the samples' weights, by which the rows are multiplied already."""

    def __init__(self, refined: Array, targets: Array, base: Array, roots: Array | None) -> None:
        one = roots if roots is not None else arrays.zeros((len(refined), 1), refined) + 1.0
        self.constant = math.sqrt(CONSTANT * mean_squared_length(refined, roots))
        self.rows = arrays.concatenate([refined, self.constant * one], axis=1)
        self.targets, self.base, self.roots = targets, base, roots

    def choose(
        self, influence: Influence, residuals: Array, folded: bool, weights: Any
    ) -> tuple[dict[str, float], Array, Array | None]:
        """What was chosen, the left-out predictions, and the shared solution's move where it is a blend."""
        moves: dict[float, Array] = {}

        def candidates() -> Iterator[Candidate]:
            kernel, left = Kernel.of(self.rows, self.roots), self.targets - self.base
            yield {}, self.base
            for gamma in map(float, GAMMAS * kernel.mean_diagonal):
                yield {"gamma": gamma}, self.targets - kernel.left_out_residuals(left, gamma)
            for alpha in ALPHAS if influence.can_weigh_up else ():
                moves[alpha], alone = blended(influence, residuals, alpha, folded)
                yield {"alpha": alpha}, self.targets - (alone if self.roots is None else alone / self.roots)

        found, left_out = choose_candidate(candidates(), self.targets, False, weights)
        return found, left_out, moves.get(found.get("alpha", 0.0))

    def refinement(self, gamma: float) -> tuple[Array, Array]:
        """The weights of the refinement's features, and the offset."""
        left = self.targets - self.base
        solved = ridge_from_rows(self.rows, left if self.roots is None else left * self.roots, gamma)
        return solved[:-1], self.constant * solved[-1]
