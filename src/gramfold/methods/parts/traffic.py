"""PACE's features where nobody names them: as many as the data, the server's memory and a client's bytes allow."""

import math
import re

from gramfold.errors import GramfoldError
from gramfold.federation import Task
from gramfold.methods.parts.columns import COARSE, FINE
from gramfold.methods.parts.learning import FEW as COMPARED
from gramfold.methods.parts.learning import Plan
from gramfold.methods.parts.pace_head import SKETCH

SCALE = 0.5
"""The frequencies' scale without a learned metric, for inputs of length sqrt(d)."""
COLUMNS = 100
"""Up to so many inputs they may be the columns of a table, where learning which of them matter pays whatever the size."""
MANY = 10_000
"""From so many samples on learning pays for wider inputs too."""
PASSES, FEW = 2, 1000
"""Of a table's metric, which begins without any; with fewer samples none: they would be learned by heart."""
LEAST, MOST = 512, 8192
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


def default_features(task: Task, learn: bool | None, budget: int | None, memory: int, regime: str | None) -> str:
    """[1, z, cos(...)]: a Fourier feature for every ten samples, within 512 and 8192, or in what may be a table for every three,
    up to 2048; as long as four m x m matrices (the sum, its factor, and room to work) fit the memory, and a client's messages the
    budget. In a learned metric (unless told) where inputs are few or samples are many."""
    samples = task.samples if task.samples is not None else MANY
    share, most = (3, 2048) if task.inputs <= COLUMNS else (10, MOST)
    wanted = 2 ** int(math.log2(min(max(samples / share, LEAST), most)))
    if learn is None:
        learn = task.inputs <= COLUMNS or samples >= MANY
    passes = PASSES if task.inputs <= COLUMNS and samples >= FEW else 0
    for learned in (True, False) if learn else (False,):
        dim = wanted
        while dim >= 32:
            width, plan = 1 + task.inputs + dim, Plan(dim, passes) if learned else None
            if 32 * width**2 <= memory and (budget is None or messages(task, width, plan, regime) <= budget):
                suffix = f":{SCALE:g}" if plan is None else f"@learned:{passes}" if passes else "@learned"
                rows = "rows+" if learned and task.inputs > COMPARED else ""
                return f"{rows}bias+linear+fourier:{dim}{suffix}"
            dim = dim // 2 if budget is None else int(dim * 0.9)
    if budget is not None and messages(task, 1 + task.inputs, None, regime) > budget:
        least = messages(task, 1 + task.inputs, None, regime) / 1000
        raise GramfoldError(
            f"a budget of {budget / 1000:g} kB is too small: {task.inputs} inputs take {least:.1f} kB without any map"
        )
    return "bias+linear"


def messages(task: Task, width: int, plan: Plan | None, regime: str | None) -> int:
    """The bytes that a client with more samples than features sends and receives; with fewer it sends less."""

    def moments(dim: int, outputs: int) -> int:
        return 8 * (dim * (dim + 1) // 2 + dim * outputs)

    inputs, outputs = task.inputs, task.outputs
    triangle = (regime or default_regime(width)) != "sketch" or width < 2 * SKETCH
    total = moments(width, outputs) + 8 * width * outputs + 8 * (width * (width + 1) // 2 if triangle else width * SKETCH)
    total += 24 * outputs**2  # the discriminant
    if plan is None:
        return total
    columns = plan.inputs == "columns" or (plan.inputs is None and inputs <= COMPARED)
    both = columns and plan.inputs is None
    counted = 4 * inputs * (COARSE + 2 * FINE) if columns else 0
    linear = 1 + (2 if both else 1) * inputs + (plan.dim // 6 if both else 0)  # with the rows' pilot
    pilot = 1 + inputs + plan.dim // 2
    axes = 8 * inputs * min(inputs, outputs if not plan.passes else inputs)
    once = moments(pilot, outputs) + 8 * pilot * outputs + moments(inputs, 1) + axes
    judged = moments(pilot, outputs) if columns and not plan.passes else 0
    return total + counted + moments(linear, outputs) + axes + judged + both * 8 * inputs * outputs + plan.passes * once
