"""What is to be learned about features, as a map's text says it, and what is said of what comes of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gramfold.errors import MethodError
from gramfold.features import Bias, Concat, DirectionsMap, DrawnMap, FeatureMap, Linear, Map, MetricMap, Normalize, draw
from gramfold.federation import Task
from gramfold.methods.learning import columns
from gramfold.methods.learning.columns import COARSE, FINE, Columns
from gramfold.methods.learning.phase import Learning
from gramfold.methods.learning.rules import RULES
from gramfold.methods.spaces import one_unit

_SPEC = re.compile(r"(?:(rows|columns)\+)?bias\+linear\+fourier:(\d+)@learned(?::(\d+))?")


@dataclass(frozen=True)
class Plan:
    """What is to be learned: `dim` Fourier features in a metric of so many passes. `inputs`: how they are made comparable; None:
    by cross-validation."""

    dim: int
    passes: int = 0
    inputs: str | None = None
    own_parts: bool = False
    """Whether clients subtract offsets of their own from continuous targets."""

    @classmethod
    def of(cls, spec: Any, own_parts: bool = False) -> "Plan | None":
        """The plan that a feature map's text asks for; None where it asks for none."""
        if not isinstance(spec, str) or "@" not in spec:
            return None
        found = _SPEC.fullmatch(spec.replace(" ", ""))
        if found is None or int(found[2]) < 1:
            raise MethodError(
                f"cannot read feature map {spec!r}; a learned one is bias+linear+fourier:DIM@learned, perhaps with :PASSES at "
                "its end, and rows+ or columns+ before it to say what makes inputs comparable"
            )
        return cls(int(found[2]), int(found[3] or 0), found[1], own_parts)

    def width(self, inputs: int) -> int:
        """Features in all."""
        return 1 + inputs + self.dim

    @property
    def rounds(self) -> int:
        """Rounds before the method's own, at most."""
        return (0 if self.inputs == "rows" else columns.ROUNDS) + 1 + max(2 * self.passes, self.inputs != "rows")

    def traffic(self, task: Task, moments: Callable[[int, int], int], number: int, message: int) -> int:
        """The bytes of its rounds at a client, at most: `moments` of so many features and targets, a `number`, a `message` beside
        its numbers."""
        inputs, outputs, known = task.inputs, task.outputs, one_unit(task)
        columns = self.inputs == "columns" or (
            self.inputs is None and (not known if known is not None else inputs <= RULES.counted)
        )
        both, pilot = columns and self.inputs is None, 1 + inputs + self.dim // 2
        rank = inputs if self.passes else min(inputs, outputs)
        first = (
            moments(1 + inputs + both * (inputs + self.dim // 6), outputs) + both * 8 * inputs * outputs
        )  # with the rows' pilot
        counts = 4 * inputs * (COARSE + 4 * FINE) if columns else 0
        judged = moments(pilot, outputs) if columns and not self.passes else 0
        head = 8 * pilot * outputs * (3 if self.takes_own_parts(task) else 1)  # and what those parts are told by
        each = moments(pilot, outputs) + moments(inputs, 1) + head + 8 * inputs * rank + message
        return counts + first + judged + number * inputs * rank + message + self.passes * each

    def takes_own_parts(self, task: Task) -> bool:
        """Whether targets may be folded without the clients' own parts, beside the targets as they are."""
        return self.own_parts and task.labels is None and self.passes > 0 and self.inputs != "rows"

    def begin(self, start: Any, seed: int) -> Learning:
        space, inputs = start.space, start.space.map.inputs
        known = space.one_unit
        mode = self.inputs or ("rows" if known else "either" if known is None and inputs > RULES.counted else "both")
        first: list[FeatureMap] = [Bias(), Normalize(), *([Linear()] if mode == "either" else [])]
        asked = replace(space, map=draw(Concat(first), inputs, seed))
        counted = None if mode in ("rows", "either") else Columns(inputs)
        own_parts = self.own_parts and not space.classification
        return Learning(start, seed, asked, mode, self.dim, self.passes, counted, own_parts=own_parts)


def described(map: Map) -> dict[str, Any]:
    """What was chosen about a map, for the result."""
    if isinstance(map, DirectionsMap):
        return {"columns": len(map.columns), "directions": map.after.inputs}
    if not isinstance(map, MetricMap):
        return {}
    spread = {"spread": map.blocks[0].map.description["map"]["scale"] ** 2}
    return {"inputs": "rows of one length" if map.columns is None else "standardised columns", **spread}


def comparable_as(map: Map, other: Map) -> Map:
    """Another map, of the inputs as a learned one makes them comparable."""
    if isinstance(map, DirectionsMap) and isinstance(other, DrawnMap):
        drawn = other.description
        return map.before(draw(other.spec, map.after.inputs, drawn["seed"], drawn["name"]))
    columns = map.columns if isinstance(map, MetricMap) else None
    return MetricMap.of(other, [], columns) if columns is not None and isinstance(other, DrawnMap) else other
