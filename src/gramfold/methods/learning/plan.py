"""What is to be learned about features, as a map's text says it, and what is said of what comes of it."""

import re
from dataclasses import dataclass, replace
from typing import Any

from gramfold.errors import GramfoldError
from gramfold.features import Bias, Concat, DirectionsMap, DrawnMap, FeatureMap, Linear, Map, MetricMap, Normalize, draw
from gramfold.methods.learning import columns
from gramfold.methods.learning.columns import Columns
from gramfold.methods.learning.phase import Learning

FEW = 256
"""Up to so many columns they are counted at once, should they be a table's; of more, linear heads tell first if they may be."""
_SPEC = re.compile(r"(?:(rows|columns)\+)?bias\+linear\+fourier:(\d+)@learned(?::(\d+))?")


@dataclass(frozen=True)
class Plan:
    """What is to be learned: `dim` Fourier features in a metric of so many passes. `inputs`: how they are made comparable; None:
    by cross-validation."""

    dim: int
    passes: int = 0
    inputs: str | None = None
    own_parts: bool = False
    """Whether clients take what is their own out of continuous targets."""

    @classmethod
    def of(cls, spec: Any, own_parts: bool = False) -> "Plan | None":
        """The plan that a feature map's text asks for; None where it asks for none."""
        if not isinstance(spec, str) or "@" not in spec:
            return None
        found = _SPEC.fullmatch(spec.replace(" ", ""))
        if found is None or int(found[2]) < 1:
            raise GramfoldError(
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

    def begin(self, start: Any, seed: int) -> Learning:
        space, inputs = start.space, start.space.map.inputs
        known = space.one_unit
        mode = self.inputs or ("rows" if known else "either" if known is None and inputs > FEW else "both")
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
