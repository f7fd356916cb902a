"""Maps one after another, maps side by side, and the short way to write both."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gramfold.errors import FeaturesError
from gramfold.features.base import FeatureMap, Function, Gradient
from gramfold.features.maps import ACTIVATIONS, Bias, Fourier, Linear, Normalize, Projection
from gramfold.moments import Implied
from gramfold.numerics.arrays import Array, concatenate


@dataclass(frozen=True, repr=False)
class _Stack(FeatureMap):
    parts: Sequence[FeatureMap]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.parts)!r})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))

    def describe(self) -> dict[str, Any]:
        return {"kind": type(self).__name__.lower(), "parts": [part.describe() for part in self.parts]}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "FeatureMap":
        return cls([FeatureMap.from_description(part) for part in fields["parts"]])


@dataclass(frozen=True, repr=False)
class Chain(_Stack):
    """One map after another."""

    def width(self, inputs: int) -> int:
        for part in self.parts:
            inputs = part.width(inputs)
        return inputs

    def drawn(self, inputs: int) -> int:
        total = 0
        for part in self.parts:
            total += part.drawn(inputs)
            inputs = part.width(inputs)
        return total

    def function(self, inputs: int, seed: int, name: str) -> Function:
        steps = []
        for i, part in enumerate(self.parts):
            steps.append(part.function(inputs, seed, f"{name}/{i}"))
            inputs = part.width(inputs)

        def chained(rows: Array) -> Array:
            for step in steps:
                rows = step(rows)
            return rows

        return chained

    def one_unit(self, inputs: bool | None) -> bool | None:
        for part in self.parts:
            inputs = part.one_unit(inputs)
        return inputs

    def implied(self, inputs: int, length: float | None) -> Implied:
        implied = Implied()
        for part in self.parts:
            implied, inputs = part.implied(inputs, length), part.width(inputs)
            whole = [most for first, last, most in implied.lengths if (first, last) == (0, inputs)]
            length = whole[0] if whole else None
        return implied


@dataclass(frozen=True, repr=False)
class Concat(_Stack):
    """Maps of the same input, side by side."""

    def width(self, inputs: int) -> int:
        return sum(part.width(inputs) for part in self.parts)

    def drawn(self, inputs: int) -> int:
        return sum(part.drawn(inputs) for part in self.parts)

    def function(self, inputs: int, seed: int, name: str) -> Function:
        steps = [part.function(inputs, seed, f"{name}/{i}") for i, part in enumerate(self.parts)]
        return lambda rows: concatenate([step(rows) for step in steps], axis=1)

    def gradient(self, inputs: int, seed: int, name: str) -> Gradient:
        steps = [part.gradient(inputs, seed, f"{name}/{i}") for i, part in enumerate(self.parts)]
        ends = list(itertools.accumulate((part.width(inputs) for part in self.parts), initial=0))

        def along(rows: Array, directions: Array) -> Array:
            return sum(step(rows, directions[:, a:b]) for step, a, b in zip(steps, ends, ends[1:], strict=False))

        return along

    def one_unit(self, inputs: bool | None) -> bool | None:
        parts = {part.one_unit(inputs) for part in self.parts}
        return False if False in parts else None if None in parts else True

    def implied(self, inputs: int, length: float | None) -> Implied:
        implied, at = Implied(), 0
        for part in self.parts:
            implied, at = implied.beside(part.implied(inputs, length), at), at + part.width(inputs)
        return implied


def parse(text: str) -> FeatureMap:
    """A map written as terms joined by `+`, over normalised inputs: "bias+linear", "bias+linear+fourier:4096:0.8", "relu:1024".

    Terms: `linear`, `bias`, `fourier:DIM[:SCALE]`, `ACTIVATION:DIM`, and `columns`, the inputs without being normalised. A
    leading `raw+` leaves those of all terms as they are.

    >>> parse("bias+linear").width(64)
    65
    """
    terms = [term.strip() for term in text.split("+")]
    raw = terms[0] == "raw"
    parts = [_term(term) for term in (terms[1:] if raw else terms)]
    if not parts:
        raise FeaturesError("feature map 'raw' names no term; write for example 'raw+bias+linear'")
    if "columns" in terms and not raw:
        raw, as_they_are = True, ("bias", "columns")
        parts = [part if term in as_they_are else Chain([Normalize(), part]) for term, part in zip(terms, parts, strict=True)]
    joined = parts[0] if len(parts) == 1 else Concat(parts)
    return joined if raw else Chain([Normalize(), joined])


def _term(term: str) -> FeatureMap:
    name, *arguments = term.split(":")
    try:
        match name, arguments:
            case "linear" | "columns", []:
                return Linear()
            case "bias", []:
                return Bias()
            case "fourier", [dim]:
                return Fourier(int(dim))
            case "fourier", [dim, scale]:
                return Fourier(int(dim), float(scale))
            case activation, [dim] if activation in ACTIVATIONS:
                return Projection(int(dim), activation)
    except ValueError:
        pass
    if term.startswith("rocket"):
        raise FeaturesError(f"features {term!r} are made of series before a method sees them: gf.series(X, {term!r})")
    raise FeaturesError(
        f"cannot read feature map term {term!r}; use linear, columns, bias, fourier:DIM, fourier:DIM:SCALE, or one of "
        f"{', '.join(ACTIVATIONS)} with :DIM"
    )
