"""PACE's features where nobody names them, and what they travel in: as many as the data, the server's memory and a client's bytes
allow."""

import math
import re
from dataclasses import dataclass

from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.methods.learning import DirectionsPlan, directions
from gramfold.methods.learning.columns import COARSE, FINE
from gramfold.methods.learning.plan import FEW as COMPARED
from gramfold.methods.learning.plan import Plan
from gramfold.methods.pace.server import SKETCH
from gramfold.methods.spaces import one_unit, plain_term
from gramfold.moments.rounding import bytes_per_number, of_targets
from gramfold.wire.digits import PRECISIONS
from gramfold.wire.record import Record

SCALE = 0.5
"""The frequencies' scale without a learned metric, for inputs of length sqrt(d)."""
COLUMNS = 100
"""Up to so many inputs they may be the columns of a table, where learning which of them matter pays whatever the size."""
MANY = 10_000
"""From so many samples on learning pays for wider inputs too."""
PASSES, FEW = 2, 1000
"""Of a table's metric, which begins without any; with fewer samples none: they would be learned by heart."""
LEAST, MOST = 512, 8192
LEAST_DIRECTIONS = 8
"""Fewer are not worth their rounds."""
MASKED = 0.5
"""The most features for each sample under a secure sum: a sum of as many features as samples can be taken apart into them."""
WORTH_LEARNING = 64
"""Where a budget leaves fewer features than this beside the rounds in which their metric is learned, these are better spent on
more of them."""
HEADER, HEADER_PER_CLASS = 3000, 60
"""Bytes of a message beside its numbers."""
SUM_BYTES = 16 * 10**6
"""Up to so many bytes the whole triangle is sent."""
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def bytes_of(budget: int | str) -> int:
    """A number of bytes as it is written.

    >>> bytes_of("20MB"), bytes_of("1.5 kB"), bytes_of(1000)
    (20000000, 1500, 1000)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKMG]?B?)", str(budget).strip())
    unit = found[2].upper() if found else ""
    if found is None or unit not in _UNITS or float(found[1]) <= 0:
        raise GramfoldError(f"a budget is a number of bytes such as 20000000 or '20MB', got {budget!r}")
    return int(float(found[1]) * _UNITS[unit])


def default_regime(width: int) -> str:
    return "sum" if 4 * width * (width + 1) <= SUM_BYTES else "sketch"


@dataclass(frozen=True)
class Decision(Record, kind="pace/decision"):
    """What was decided before the first round, and why: the map, what the server sends for leverages, what numbers travel in."""

    map: str
    regime: str
    precision: str
    reasons: tuple[str, ...] = ()


def decide(
    map: str, precision: str, width: int, regime: str | None, samples: int | None, told: bool, budget: int | None
) -> Decision:
    """`told`: whether the map was given; `regime`: where it was."""
    reasons = [] if told else [f"a map of {width} features for {'unknown' if samples is None else samples} samples"]
    if budget is not None:
        reasons.append(f"a budget of {budget} bytes: numbers travel in {precision}")
    if regime is None:
        regime = "sketch" if budget is not None else default_regime(width)
        megabytes = 4 * width * (width + 1) / 1e6
        if regime == "sketch":
            reasons.append(f"the triangle would have {megabytes:.0f} MB, so a sketch of it is sent, and no client can blend")
    return Decision(map, regime, precision, tuple(reasons))


def default_features(
    task: Task,
    learn: bool | None,
    budget: int | None,
    memory: int,
    regime: str | None,
    precision: str | None = None,
    bounded: bool = False,
    masked: bool = False,
) -> tuple[str, str]:
    """[1, z, cos(...)], and the precision that its numbers travel in: a Fourier feature for every ten samples, within 512 and
    8192, or in what may be a table for every three, up to 2048; as long as four m x m matrices (the sum, its factor, and room to
    work) fit the memory. In a learned metric (unless told) where inputs are few or samples are many.

    Who gives a budget gets the largest map whose messages fit it, from 10,000 samples on up to a feature for every two of them.
    Numbers are rounded only as far as that makes room for more features. Under a secure sum (`masked`) there are no more than one
    for every two samples, in any round.
    """
    if task.inputs > directions.WIDE and learn is not False and not bounded:
        return _of_directions(task, budget, memory, regime, precision, masked)
    samples = task.samples if task.samples is not None else MANY
    known = one_unit(task)
    table = not known if known is not None else task.inputs <= COLUMNS
    plain = plain_term(task, bounded)
    share, most = (3, 2048) if table else (10, MOST)
    wanted = 2 ** int(math.log2(min(max(samples / share, LEAST), most)))
    if budget is not None and not table and samples >= MANY:
        wanted = samples // 2
    bound = int(MASKED * samples) if masked else None
    if learn is None:
        learn = (table or samples >= MANY) and (bound is None or 1 + 2 * task.inputs + 32 <= bound)
    passes = PASSES if table and samples >= FEW else 0
    for learned in (True, False) if learn else (False,):
        least = WORTH_LEARNING if learned and budget is not None and not table else 32
        dim, digits = _largest(task, passes if learned else None, wanted, budget, memory, regime, precision, bound)
        if dim >= least:
            suffix = f":{SCALE:g}" if not learned else f"@learned:{passes}" if passes else "@learned"
            rows = "rows+" if budget is not None and not table and task.inputs > COMPARED else ""
            return (f"{rows}bias+linear" if learned else f"bias+{plain}") + f"+fourier:{dim}{suffix}", digits
    digits = precision or ("float64" if budget is None else PRECISIONS[-1])
    needed = messages(task, 1 + task.inputs, None, regime, digits)
    if budget is not None and needed > budget:
        raise GramfoldError(
            f"a budget of {budget / 1000:g} kB is too small: {task.inputs} inputs take {needed / 1000:.1f} kB without any map"
        )
    return f"bias+{plain}", digits


def _of_directions(
    task: Task, budget: int | None, memory: int, regime: str | None, precision: str | None, masked: bool
) -> tuple[str, str]:
    """A linear map of the directions of wide inputs: as many as the samples tell and the budget pays."""
    digits = precision or ("float64" if budget is None else "float32")
    first = DirectionsPlan.of(directions.default(task.samples, masked))
    assert first is not None
    dim = min(first.dim, math.isqrt(memory // 32) - 1)
    while budget is not None and _directions_bytes(task, dim, regime, digits) > budget:
        if dim <= LEAST_DIRECTIONS:
            needed = _directions_bytes(task, dim, regime, digits) / 1e6
            raise GramfoldError(
                f"a budget of {budget / 1e6:g} MB is too small: {dim} directions of {task.inputs} inputs take {needed:.1f} MB; "
                "give more, or fewer columns (max_features=...)"
            )
        dim = max(dim * 7 // 8, LEAST_DIRECTIONS)
    return f"{first.map}@directions:{dim}", digits


def _directions_bytes(task: Task, dim: int, regime: str | None, precision: str) -> int:
    """The bytes at most: counts, two products and the basis between them, the columns and their directions, the moments."""
    columns = min(task.inputs, directions.COMMON)
    found = 4 * task.inputs + 4 * columns * (3 * directions.sought(dim) + dim + 2) + 6 * HEADER
    return found + messages(task, 1 + dim, None, regime, precision)


def _largest(
    task: Task,
    passes: int | None,
    wanted: int,
    budget: int | None,
    memory: int,
    regime: str | None,
    precision: str | None,
    bound: int | None = None,
) -> tuple[int, str]:
    """The most Fourier features, up to those wanted, for which there is room, and what they travel in; learned where there are
    passes, be it none. `bound`: the most features in all."""
    room = math.isqrt(memory // 32)
    fitting = (room if bound is None else min(room, bound)) - 1 - task.inputs
    if budget is None:
        while wanted > max(fitting, 31):
            wanted //= 2
        return wanted, precision or "float64"

    def fits(dim: int, digits: str) -> bool:
        plan = None if passes is None else Plan(dim, passes)
        return messages(task, 1 + task.inputs + dim, plan, regime, digits) <= budget

    most, digits = min(wanted, fitting), precision or PRECISIONS[-1]
    for digits in (precision,) if precision is not None else PRECISIONS:
        if fits(most, digits):
            return most, digits
    low, high = 0, max(most, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle, digits) else (low, middle)
    return low, digits


def messages(task: Task, width: int, plan: Plan | None, regime: str | None, precision: str = "float64") -> int:
    """The bytes that a client with more samples than features sends and receives; with fewer it sends less."""
    exact, few, many = precision == "float64", bytes_per_number(precision), bytes_per_number(of_targets(precision))

    def moments(dim: int, outputs: int) -> int:
        lengths = 0 if exact else 8 * (2 * dim + outputs)
        return few * (dim * (dim + 1) // 2) + many * dim * outputs + lengths + HEADER + HEADER_PER_CLASS * outputs

    inputs, outputs = task.inputs, task.outputs
    triangle = (regime or default_regime(width)) != "sketch" or width < 2 * SKETCH
    total = moments(width, outputs) + many * width * outputs + HEADER + HEADER_PER_CLASS * outputs
    total += 8 * (width * (width + 1) // 2) if triangle else many * width * SKETCH
    total += (16 if exact else 8) * outputs**2  # the discriminant
    if plan is None:
        return total
    tabular = one_unit(task) is False or (one_unit(task) is None and inputs <= COMPARED)
    columns = plan.inputs == "columns" or (plan.inputs is None and tabular)
    both = columns and plan.inputs is None
    counted = 4 * inputs * (COARSE + 4 * FINE) if columns else 0
    linear = 1 + (2 if both else 1) * inputs + (plan.dim // 6 if both else 0)  # with the rows' pilot
    pilot = 1 + inputs + plan.dim // 2
    axes = (8 if exact else 4) * inputs * min(inputs, outputs if not plan.passes else inputs) + HEADER
    pilots = 8 * inputs * min(inputs, outputs if not plan.passes else inputs)
    once = moments(pilot, outputs) + 8 * pilot * outputs + moments(inputs, 1) + pilots + HEADER
    judged = moments(pilot, outputs) if columns and not plan.passes else 0
    if task.labels is None and columns and plan.passes:  # targets twice, with the clients' own parts and without
        total += 2 * many * width * outputs + (0 if exact else 8 * outputs) + HEADER + HEADER_PER_CLASS * outputs
        total += 2 * plan.passes * (8 * pilot * outputs + pilots + HEADER)  # what those parts are told by
    return total + counted + moments(linear, outputs) + axes + judged + both * 8 * inputs * outputs + plan.passes * once
