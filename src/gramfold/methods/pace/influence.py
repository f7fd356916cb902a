"""How samples F of clients (clients x n x m, times the roots of their weights) bear on the shared ridge, A = S + beta I: their
leverages, and where the solution goes if they weigh more."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramfold.numerics import arrays, stacks
from gramfold.numerics.arrays import Array
from gramfold.numerics.padding import Padding
from gramfold.numerics.stacks import Solver, lifted, transposed
from gramfold.solve.leave_one_out import LIMIT, left_out_residuals
from gramfold.solve.ridge import Factor, LeastNorm
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Sketch(Record, kind="pace/sketch"):
    """L'^-1 times random signs: leverages, approximately, for far fewer bytes than L."""

    matrix: Array


def root_of(source: "Factor | Sketch", along: Array) -> Array | None:
    """T'^-1 along the columns of `along`, for the whole of A's factor T; of a sketch as many columns as there are of these."""
    if isinstance(source, Sketch):
        matrix, columns = source.matrix, along.shape[1]
        return matrix[:, :columns] * (matrix.shape[1] / columns) ** 0.5 if matrix.shape[1] > columns else None
    return None if isinstance(source, LeastNorm) else source.solve_transposed(along)


class OfSketch:
    """From a sketch: leverages f_i'A^-1 f_i (clients x n) alone."""

    def __init__(self, sketch: Sketch, rows: Array, padding: Padding) -> None:
        self.leverages = padding(stacks.row_squares(rows @ sketch.matrix))


class OfFactor:
    """From A's factor T: in the rows V' = F T'^-1 it is plain ridge with the penalty 1 / alpha, in the dual where there are fewer
    rows than features. As a basis of candidates its coordinates are moves of the shared solution."""

    map = None

    def __init__(self, factor: Factor, rows: Array, padding: Padding) -> None:
        self.factor, self.half = factor, padding(factor.solve_rows(rows))
        self.leverages = stacks.row_squares(self.half)
        self.dual = self.half.shape[-2] < self.half.shape[-1]

    @cached_property
    def gram(self) -> Array:
        return stacks.outer_gram(self.half) if self.dual else stacks.gram(self.half)

    def weighed_up(self, residuals: Array, alpha: float | np.ndarray) -> tuple[Array, Array, Array]:
        """With A + alpha F'F in place of A: the solution's move, the residuals, and the leverages
        alpha f_i'(A + alpha F'F)^-1 f_i."""
        penalty = 1.0 / alpha if isinstance(alpha, float) else arrays.like(1.0 / alpha, self.gram)
        solver = Solver.of(self.gram, penalty)
        if self.dual:
            solved, each = solver.solve(residuals), penalty if isinstance(penalty, float) else penalty[:, None]
            return solved, lifted(penalty, solved) * solved, 1.0 - each * solver.inverse_diagonal()
        weights = solver.solve(transposed(self.half) @ residuals)
        leverages = stacks.column_squares(solver.solve_lower(transposed(self.half)))
        return weights, residuals - self.half @ weights, leverages

    def blended(self, residuals: Array, alpha: float, copies: float) -> tuple[Array, Array]:
        """FedHiP's blend: the move of the shared solution, and each sample's residual when it is left out, exactly.

        `copies`: how often the samples are in A already; left out a sample takes these and its alpha more along.
        """
        move, left, leverage = self.weighed_up(residuals, alpha)
        own = (leverage * (1.0 + copies / alpha)).clip(max=1.0 - LIMIT)
        return move, left_out_residuals(left, own)

    def solution(self, coordinates: Array) -> tuple[Array, float]:
        """Moves as what is added to the shared solution (clients x m x C)."""
        moves = transposed(self.half) @ coordinates if self.dual else coordinates
        clients, m, outputs = moves.shape
        columns = self.factor.solve_rows_transposed(transposed(moves).reshape(clients * outputs, m))
        return transposed(columns.reshape(clients, outputs, m)), 0.0


def influence_of(rows: Array, source: Factor | Sketch, padding: Padding) -> OfFactor | OfSketch:
    """How clients' samples, one client's rows after another's, bear on the shared solution, from whatever the server sent."""
    return OfSketch(source, rows, padding) if isinstance(source, Sketch) else OfFactor(source, rows, padding)
