"""What PACE decides before the first round: the map, what the server sends for leverages, what numbers travel in."""

import math
from dataclasses import dataclass, replace

from gramfold import features
from gramfold.errors import MethodError
from gramfold.methods.learning import DirectionsPlan, Plan, directions, plan_of
from gramfold.methods.learning.rules import RULES
from gramfold.methods.pace.sizes import SIZES, Limits
from gramfold.methods.spaces import MapLike, one_unit, plain_term
from gramfold.wire.record import Record


@dataclass(frozen=True)
class Decision(Record, kind="pace/decision"):
    """What was decided, and why."""

    map: str
    regime: str
    precision: str
    reasons: tuple[str, ...] = ()


def decide(limits: Limits, given: MapLike | None, learn: bool | None = None, bounded: bool = False) -> tuple[MapLike, Decision]:
    """The map, as `given` or chosen, and the decision. `learn`: whether a chosen one may be learned; None: where it pays.
    `bounded`: whether rows must have a length."""
    task, budget = limits.task, limits.budget
    spec, precision = (given, limits.precision or "float64") if given is not None else _chosen(limits, learn, bounded)
    width = width_of(spec, task.inputs)
    samples = "unknown" if task.samples is None else task.samples
    reasons = [] if given is not None else [f"a map of {width} features for {samples} samples"]
    if budget is not None:
        reasons.append(f"a budget of {budget} bytes: numbers travel in {precision}")
    regime = limits.regime_at(width)
    if regime == "sketch":
        why = "as asked" if limits.regime else f"the triangle would have {4 * width * (width + 1) / 1e6:.0f} MB"
        reasons.append(f"a sketch of the triangle is sent ({why}), so no client can blend")
    return spec, Decision(str(spec), regime, precision, tuple(reasons))


def width_of(spec: MapLike, inputs: int) -> int:
    """The features of a map that is given or to be learned."""
    map = plan_of(spec) or (features.parse(spec) if isinstance(spec, str) else spec)
    return map.width(inputs)


def _chosen(limits: Limits, learn: bool | None, bounded: bool) -> tuple[str, str]:
    """[1, z, cos(...)], and the precision that its numbers travel in: a Fourier feature for every ten samples, or in what may be
    a table for every three, as far as these fit the limits; in a learned metric (unless told) where inputs are few, or samples
    many.

    Who gives a budget gets the largest map whose messages fit it, from 10,000 samples on up to a feature for every two of them.
    Numbers are rounded only as far as that makes room for more features.
    """
    task, budget = limits.task, limits.budget
    if task.inputs > directions.WIDE and learn is not False and not bounded:
        return _of_directions(limits)
    known, plain = one_unit(task), plain_term(task, bounded)
    table = not known if known is not None else task.inputs <= SIZES.tabular
    if learn is None:
        room = not limits.masked or 1 + 2 * task.inputs + 32 <= limits.widest
        learn = (table or limits.samples >= SIZES.learnable) and room
    passes = SIZES.passes if table and limits.samples >= SIZES.passes_from else 0
    for learned in (True, False) if learn else (False,):
        least = SIZES.least_learned if learned and budget is not None and not table else 32
        dim, precision = _fourier(limits, table, passes if learned else None)
        if dim >= least:
            suffix = f":{SIZES.frequency:g}" if not learned else f"@learned:{passes}" if passes else "@learned"
            rows = "rows+" if budget is not None and not table and task.inputs > RULES.counted else ""
            return (f"{rows}bias+linear" if learned else f"bias+{plain}") + f"+fourier:{dim}{suffix}", precision
    precision = limits.coarsest
    needed = limits.traffic(1 + task.inputs, None, precision)
    if budget is not None and needed > budget:
        raise MethodError(
            f"a budget of {budget / 1000:g} kB is too small: {task.inputs} inputs take {needed / 1000:.1f} kB without any map"
        )
    return f"bias+{plain}", precision


def _fourier(limits: Limits, table: bool, passes: int | None) -> tuple[int, str]:
    """The most Fourier features, up to those that samples are worth, for which there is room, and what they travel in; learned
    where there are passes, be it none."""
    task, samples, budget = limits.task, limits.samples, limits.budget
    share, most = (SIZES.samples_each_tabular, SIZES.most_tabular) if table else (SIZES.samples_each, SIZES.most)
    wanted = 2 ** int(math.log2(min(max(samples / share, SIZES.least), most)))
    if budget is not None and not table and samples >= SIZES.learnable:
        wanted = samples // 2
    room = limits.widest - 1 - task.inputs
    while budget is None and wanted > max(room, 31):
        wanted //= 2

    def bytes_at(dim: int, precision: str) -> int:
        return limits.traffic(1 + task.inputs + dim, None if passes is None else Plan(dim, passes), precision)

    return limits.largest(wanted if budget is None else min(wanted, room), bytes_at)


def _of_directions(limits: Limits) -> tuple[str, str]:
    """A linear map of the directions of wide inputs: as many as the samples tell and the budget pays."""
    task, least = limits.task, SIZES.least_directions
    first = DirectionsPlan.of(directions.default(task.samples, limits.masked))
    assert first is not None

    def bytes_at(dim: int, precision: str) -> int:
        return limits.traffic(1 + dim, DirectionsPlan(first.map, dim), precision)

    finest = "float64" if limits.budget is None else "float32"
    limits = limits if limits.precision else replace(limits, precision=finest)
    dim, precision = limits.largest(min(first.dim, math.isqrt(limits.memory // 32) - 1), bytes_at)
    if limits.budget is not None and dim < min(least, first.dim):
        raise MethodError(
            f"a budget of {limits.budget / 1e6:g} MB is too small: {least} directions of {task.inputs} inputs take "
            f"{bytes_at(least, precision) / 1e6:.1f} MB; give more, or fewer columns (max_features=...)"
        )
    return f"{first.map}@directions:{dim}", precision
