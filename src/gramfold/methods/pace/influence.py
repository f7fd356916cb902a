"""How a client's samples bear on the shared ridge: their leverages, and where the solution goes if they weigh more."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from gramfold.numerics.arrays import Array
from gramfold.solve.dual import ridge_with_leverages
from gramfold.solve.leave_one_out import LIMIT, left_out_residuals
from gramfold.solve.ridge import Factor, LeastNorm
from gramfold.wire.compact import full
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Sketch(Record, kind="pace/sketch"):
    """L'^-1 times random signs: leverages, approximately, for far fewer bytes than L."""

    matrix: Array


def root_of(source: "Factor | Sketch", along: Array) -> Array | None:
    """T'^-1 along the columns of `along`, for the whole of A's factor T; of a sketch as many columns as there are of these."""
    if isinstance(source, Sketch):
        matrix, columns = full(source.matrix), along.shape[1]
        return matrix[:, :columns] * (matrix.shape[1] / columns) ** 0.5 if matrix.shape[1] > columns else None
    return None if isinstance(source, LeastNorm) else source.solve_transposed(along)


class Influence(ABC):
    """Of a client's rows F (n x m, times the roots of their weights) on A = S + beta I."""

    can_weigh_up: ClassVar[bool] = True
    moves: ClassVar[bool] = True

    @property
    @abstractmethod
    def leverages(self) -> Array:
        """f_i'A^-1 f_i (n)."""

    @abstractmethod
    def weighed_up(self, residuals: Array, alpha: float) -> tuple[Array, Array, Array]:
        """With A + alpha F'F in place of A: the solution's move (see `change`), the residuals, and the leverages
        alpha f_i'(A + alpha F'F)^-1 f_i."""

    @abstractmethod
    def change(self, move: Array) -> Array:
        """A move as what is added to the shared solution (m x C)."""

    def solution(self, coordinates: Array) -> tuple[Array, float]:
        """As a basis of candidates: its coordinates are moves."""
        return self.change(coordinates), 0.0


class OfFactor(Influence):
    """From A's factor T: in the rows V' = F T'^-1 it is plain ridge with the penalty 1 / alpha."""

    def __init__(self, factor: Factor, rows: Array) -> None:
        self.factor, self.half = factor, factor.solve_lower(rows.T)

    @property
    def leverages(self) -> Array:
        return (self.half**2).sum(0)

    def weighed_up(self, residuals: Array, alpha: float) -> tuple[Array, Array, Array]:
        return ridge_with_leverages(self.half.T, residuals, 1.0 / alpha)

    def change(self, move: Array) -> Array:
        return self.factor.solve_transposed(move)


class OfSketch(Influence):
    """From a sketch: leverages alone."""

    can_weigh_up: ClassVar[bool] = False

    def __init__(self, sketch: Sketch, rows: Array) -> None:
        self._leverages = ((rows @ full(sketch.matrix)) ** 2).sum(1)

    @property
    def leverages(self) -> Array:
        return self._leverages

    def weighed_up(self, residuals: Array, alpha: float) -> tuple[Array, Array, Array]:
        raise NotImplementedError("a sketch of A says nothing of A's inverse between two samples")

    def change(self, move: Array) -> Array:
        raise NotImplementedError("nor of the way back to the features")


def influence_of(rows: Array, source: Factor | Sketch) -> Influence:
    """How a client's samples bear on the shared solution, from whatever the server sent."""
    return OfSketch(source, rows) if isinstance(source, Sketch) else OfFactor(source, rows)


def blended(influence: Influence, residuals: Array, alpha: float, copies: float) -> tuple[Array, Array]:
    """FedHiP's blend: the move of the shared solution, and each sample's residual when it is left out, exactly.

    `copies`: how often the samples are in A already; left out a sample takes these and its alpha more along (see `Blend`).
    """
    move, left, leverage = influence.weighed_up(residuals, alpha)
    own = (leverage * (1.0 + copies / alpha)).clip(max=1.0 - LIMIT)
    return move, left_out_residuals(left, own)
