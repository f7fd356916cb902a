"""How large PACE's map may be: the numbers that decide it, and the bytes that a client sends and receives."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from gramfold.errors import MethodError
from gramfold.federation import Task
from gramfold.methods.learning import DirectionsPlan, Plan
from gramfold.moments.rounding import bytes_per_number, of_targets
from gramfold.wire.digits import PRECISIONS


@dataclass(frozen=True)
class Sizes:
    """What decides on maps and messages before any sample is seen; behind each the script that defends it."""

    frequency: float = 0.5
    """Scale of the frequencies without a learned metric, for inputs of length sqrt(d) (`learned.py`)."""
    tabular: int = 100
    """Inputs up to which they may be a table's columns: there learning which of them matter pays whatever the number of samples
    (`site_tables.py`), and residuals have a map of their own (`ablation.py`)."""
    learnable: int = 10_000
    """Samples from which on learning pays for wider inputs too (`learned.py`)."""
    passes: int = 2
    """Rounds of gradients behind a table's metric (`more_tables.py`) ..."""
    passes_from: int = 1000
    """... from so many samples on: fewer would be learned by heart (`binary.py`)."""
    least: int = 512
    """Fourier features, at least, where there is room (`pace.py`)."""
    most: int = 8192
    most_tabular: int = 2048
    """Fourier features at most, of embeddings and of a table (`pace.py`, `more_tables.py`)."""
    samples_each: int = 10
    samples_each_tabular: int = 3
    """Samples for each Fourier feature, of embeddings and in a table (`pace.py`, `more_tables.py`)."""
    masked: float = 0.5
    """Features for each sample under a secure sum, at most: a sum of as many features as samples can be taken apart into them
    (`lying_server.py`)."""
    least_learned: int = 64
    """Features that a budget must leave beside the rounds in which their metric is learned; fewer are worth less than more of
    them without it (`learned.py`)."""
    least_directions: int = 8
    """Directions that are worth their rounds, at least (`wide_texts.py`)."""
    triangle: int = 16 * 10**6
    """Bytes up to which the whole triangle is sent (`pace_cost.py`)."""
    sketch: int = 128
    """Rows of the sketch in its place: leverages to a relative sqrt(2 / rows) (`pace.py`)."""
    bent: int = 2304
    """Features up to which it is asked whether those that curve have a dearer penalty: a table's map has no more, and each answer
    is some eight factorisations (`clean_tables.py`)."""
    header: int = 3000
    header_per_class: int = 60
    """Bytes of a message beside its numbers (derived)."""


SIZES = Sizes()
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def bytes_of(budget: int | str) -> int:
    """A number of bytes as it is written.

    >>> bytes_of("20MB"), bytes_of("1.5 kB"), bytes_of(1000)
    (20000000, 1500, 1000)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMG]?B?)", str(budget).strip())
    unit = found[2].upper() if found else ""
    if found is None or unit not in _UNITS or float(found[1]) <= 0:
        raise MethodError(f"a budget is a number of bytes such as 20000000 or '20MB', got {budget!r}")
    return int(float(found[1]) * _UNITS[unit])


@dataclass(frozen=True)
class Limits:
    """What a map must fit into: the server's memory, a client's bytes, and few features where sums are masked."""

    task: Task
    memory: int
    budget: int | None = None
    regime: str | None = None
    precision: str | None = None
    masked: bool = False

    @property
    def samples(self) -> int:
        return SIZES.learnable if self.task.samples is None else self.task.samples

    @property
    def widest(self) -> int:
        """The most features in all: four matrices of them fit the memory (the sum, its factor, and room to work)."""
        room = math.isqrt(self.memory // 32)
        return min(room, int(SIZES.masked * self.samples)) if self.masked else room

    def regime_at(self, width: int) -> str:
        """What the server sends for leverages: of a small map the triangle in any case, as a sketch would be no smaller."""
        if width < 2 * SIZES.sketch:
            return "sum"
        small = self.budget is None and 4 * width * (width + 1) <= SIZES.triangle
        return self.regime or ("sum" if small else "sketch")

    @property
    def coarsest(self) -> str:
        """The fewest digits that numbers may travel in."""
        return self.precision or (PRECISIONS[0] if self.budget is None else PRECISIONS[-1])

    def largest(self, most: int, bytes_at: Callable[[int, str], int]) -> tuple[int, str]:
        """The largest map, up to `most`, whose messages fit the budget, and the finest numbers that they do so in. `bytes_at`: of
        the messages, from a map's size and the precision."""
        if self.budget is None:
            return most, self.coarsest
        for precision in PRECISIONS if self.precision is None else (self.precision,):
            if bytes_at(most, precision) <= self.budget:
                return most, precision
        low, high = 0, max(most, 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if bytes_at(middle, self.coarsest) <= self.budget else (low, middle)
        return low, self.coarsest

    def traffic(self, width: int, plan: Plan | DirectionsPlan | None, precision: str) -> int:
        """The bytes that a client with more samples than features sends and receives; with fewer it sends less."""
        task, exact = self.task, precision == "float64"
        few, many = bytes_per_number(precision), bytes_per_number(of_targets(precision))

        def moments(dim: int, outputs: int) -> int:
            lengths = 0 if exact else 8 * (2 * dim + outputs)
            return few * (dim * (dim + 1) // 2) + many * dim * outputs + lengths + message(outputs)

        outputs, twice = task.outputs, 1
        learned = 0 if plan is None else plan.traffic(task, moments, 8 if exact else 4, SIZES.header)
        if isinstance(plan, Plan) and plan.takes_own_parts(task):
            twice = 2  # targets less the clients' own parts, and as they are
        solved = many * width * outputs * twice + message(outputs) + (16 if exact else 8) * outputs**2  # and the discriminant
        sketched = self.regime_at(width) == "sketch"
        leverages = many * width * SIZES.sketch if sketched else 8 * (width * (width + 1) // 2)
        return learned + moments(width, outputs * twice) + solved + leverages


def message(outputs: int) -> int:
    """The bytes of a message beside its numbers."""
    return SIZES.header + SIZES.header_per_class * outputs
