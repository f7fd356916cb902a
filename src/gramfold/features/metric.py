"""A map whose Fourier features lie in a learned metric: [plain(x), cos((x T) Omega + b), ...] of inputs made comparable first.

T = base I + axes axes' says which directions of the inputs matter, and travels with the map; frequencies come from the seed.
"""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gramfold.errors import FeaturesError
from gramfold.features.base import DrawnMap, LearnedMap, draw_described, require_rows
from gramfold.features.maps import LONG, REACH, Normalize, standardised
from gramfold.moments import Implied
from gramfold.numerics import arrays, stopwatch
from gramfold.numerics.arrays import Array

PLAIN, CENTRE, SCALE, TAILS, REACHES = "plain", "centre", "scale", "tails", "reach"


@dataclass(frozen=True)
class Metric:
    """T = base I + axes axes', symmetric: `axes` is d x rank, `base` one number in an array."""

    axes: Array
    base: Array

    def apply(self, rows: Array) -> Array:
        """rows T."""
        axes = arrays.like(self.axes, rows)
        return arrays.like(self.base, rows) * rows + (rows @ axes) @ axes.T


@dataclass(frozen=True)
class Block:
    """Some drawn features of x T."""

    map: DrawnMap
    metric: Metric


class MetricMap(LearnedMap):
    """Callable on rows. `description` is {"kind": "metric", "plain": a drawn map's description, "blocks": [such descriptions]};
    the arrays are "axes.0" (inputs x rank) and "base.0" (one number), "axes.1", ... Where columns are standardised there are also
    "centre" and "scale", one number a column, and in the description "tails", beyond which they go on as logarithms, and "reach",
    which bounds them; elsewhere rows are brought to the length sqrt(d).
    """

    kind: ClassVar[str] = "metric"

    def __init__(self, description: Mapping[str, Any], learned: Mapping[str, Array], fingerprint: str | None = None) -> None:
        super().__init__(description, learned, fingerprint)
        self.plain = draw_described(self.description[PLAIN])
        drawn = [draw_described(block) for block in self.description["blocks"]]
        names = [(f"axes.{i}", f"base.{i}") for i in range(len(drawn))]
        columns = CENTRE in learned
        if set(learned) != {*itertools.chain(*names), *((CENTRE, SCALE) if columns else ())}:
            raise FeaturesError("a map in a learned metric needs one metric for every block, and centre and scale together")
        self.inputs = self.plain.inputs
        # in one order, so that a map from its file computes the same to the last bit
        self.arrays: Mapping[str, Array] = {name: learned[name] for name in sorted(learned)}
        learned = {name: arrays.float64(array) for name, array in self.arrays.items()}
        self.blocks = [Block(map, Metric(learned[axes], learned[base])) for map, (axes, base) in zip(drawn, names, strict=True)]
        for block in self.blocks:
            shape, base = tuple(block.metric.axes.shape), tuple(block.metric.base.shape)
            if block.map.inputs != self.inputs or len(shape) != 2 or not shape[1] <= shape[0] == self.inputs or base != (1,):
                raise FeaturesError(f"the axes of a learned metric must be at most {self.inputs}, of {self.inputs} numbers each")
        if columns and any(tuple(learned[name].shape) != (self.inputs,) for name in (CENTRE, SCALE)):
            raise FeaturesError(f"centre and scale must be {self.inputs} numbers each")
        self.dim = self.plain.dim + sum(block.map.dim for block in self.blocks)

    @property
    def drawn_numbers(self) -> int:
        """How many numbers are drawn for its maps."""
        return self.plain.drawn_numbers + sum(block.map.drawn_numbers for block in self.blocks)

    @classmethod
    def of(cls, plain: DrawnMap, blocks: Sequence[Block], columns: tuple[Array, Array] | None = None) -> "MetricMap":
        """`columns`: centre and scale of every column; None: rows are brought to one length."""
        learned: dict[str, Array] = {}
        for i, block in enumerate(blocks):
            learned |= {f"axes.{i}": block.metric.axes, f"base.{i}": block.metric.base}
        if columns is not None:
            learned |= {CENTRE: columns[0], SCALE: columns[1]}
        ends = {} if columns is None else {TAILS: LONG, REACHES: REACH}
        return cls({PLAIN: plain.description, "blocks": [block.map.description for block in blocks], **ends}, learned)

    @property
    def implied(self) -> Implied:
        each = 1.0 if CENTRE not in self.arrays else None if self.reach is None else self.reach**2
        length = None if each is None else each * self.inputs
        implied, at = self.plain.implied_of(length), self.plain.dim
        for block in self.blocks:
            implied, at = implied.beside(block.map.implied_of(None), at), at + block.map.dim
        return implied

    def one_unit(self, inputs: bool | None) -> bool | None:
        return True

    def __repr__(self) -> str:
        return f"MetricMap({self.inputs} -> {self.dim})"

    @property
    def reach(self) -> float | None:
        """How far from zero a standardised column goes at most."""
        return self._number(REACHES)

    @property
    def tails(self) -> float | None:
        """From where on standardised columns are logarithms; None: nowhere."""
        return self._number(TAILS)

    def _number(self, name: str) -> float | None:
        value = self.description.get(name)
        known = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max
        if value is not None and not known:
            raise FeaturesError(f"the {name} of standardised columns must be a positive number, got {str(value)[:40]}")
        return value

    @property
    def tabular(self) -> bool:
        return CENTRE in self.arrays

    @property
    def columns(self) -> tuple[Array, Array] | None:
        """Centre and scale of every column, where those make inputs comparable."""
        return (self.arrays[CENTRE], self.arrays[SCALE]) if CENTRE in self.arrays else None

    @property
    def saw_labels(self) -> bool:
        """Whether it has axes: without any no direction is preferred, and labels have had no say in it."""
        return any(block.metric.axes.shape[1] for block in self.blocks)

    def comparable(self, inputs: Array) -> Array:
        """Rows of one length, or standardised columns."""
        rows = arrays.float64(inputs)
        if CENTRE not in self.arrays:
            return Normalize().function(self.inputs, 0, "")(rows)
        centre, scale = (arrays.like(self.arrays[name], rows) for name in (CENTRE, SCALE))
        return standardised(rows, centre, scale, self.tails, self.reach)

    def __call__(self, inputs: Array) -> Array:
        """float64 features (n x dim)."""
        require_rows(inputs, self.inputs)
        if arrays.is_traced():
            return self._features(inputs)
        with stopwatch.phase("features"):
            parts = [self._features(inputs[rows]) for rows in arrays.blocks(inputs.shape[0], self.inputs) or [slice(0, 0)]]
            return arrays.concatenate(parts)

    def _features(self, inputs: Array) -> Array:
        rows = self.comparable(inputs)
        return arrays.concatenate([self.plain(rows), *(block.map(block.metric.apply(rows)) for block in self.blocks)], axis=1)

    def gradients(self, inputs: Array, directions: Array) -> Array:
        """`gradients_at` the inputs, made comparable."""
        return self.gradients_at(self.comparable(inputs), directions)

    def gradients_at(self, rows: Array, directions: Array) -> Array:
        """The gradient of <features(x_i), direction_i> with respect to comparable inputs x_i, for every row (n x inputs).

        `directions` is n x dim.
        """
        with stopwatch.phase("features"):
            at = self.plain.dim
            total = self.plain.gradients(rows, directions[:, :at])
            for block in self.blocks:
                along = block.map.gradients(block.metric.apply(rows), directions[:, at : at + block.map.dim])
                total, at = total + block.metric.apply(along), at + block.map.dim
            return total
