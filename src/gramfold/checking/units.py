"""Units: a client whose numbers are another's, times a factor that units differ by.

Hospitals differ, so a mean that is off proves nothing. A unit shifts mean and spread by one and the same known factor. Two
accounts of a client's logarithm of mean and spread are weighed against each other: it differs as clients do (as the others here
do, or by 15 and 30 %), or as they do after the factor. Student's t has room for clients that really are far from all others, and
no factor is likely beforehand.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramfold.checking.finding import NOTICE, SERIOUS, Finding

ROWS = 10
"""Rows that a mean and a spread need."""
USUAL = np.array([0.15, 0.3])
"""By how much the logarithms of mean and spread differ between clients, as far as the others here do not tell."""
PRIOR = 0.02
"""How often a client's column is in another unit."""
FREEDOM = 4.0
LIKELY, CERTAIN = 0.5, 0.9
BROAD = 0.5
"""A mean that is less than this many spreads from zero says nothing about factors."""


class Sums(NamedTuple):
    """What a client says of a column of numbers."""

    n: int
    mean: float
    spread: float

    @classmethod
    def of(cls, numbers: np.ndarray) -> "Sums":
        return cls(len(numbers), float(numbers.mean()), float(numbers.std())) if len(numbers) else cls(0, 0.0, 0.0)


@dataclass(frozen=True)
class Unit:
    """Numbers in one unit are `factor` times those in another, plus `more`."""

    factor: float
    what: str
    more: float = 0.0

    @property
    def inverse(self) -> "Unit":
        return Unit(1 / self.factor, self.what, -self.more / self.factor)


_NAMED = {
    38.67: "cholesterol: mg/dl and mmol/l", 88.57: "triglycerides: mg/dl and mmol/l", 88.42: "creatinine: µmol/l and mg/dl",
    18.02: "glucose: mg/dl and mmol/l", 17.1: "bilirubin: µmol/l and mg/dl", 59.48: "uric acid: µmol/l and mg/dl",
    6.006: "urea: mg/dl and mmol/l", 2.801: "urea nitrogen: mg/dl and mmol/l", 4.008: "calcium: mg/dl and mmol/l",
    1.611: "haemoglobin: g/dl and mmol/l", 7.501: "pressure: mmHg and kPa", 2.205: "weight: pounds and kilograms",
    2.54: "height: centimetres and inches", 30.48: "height: centimetres and feet", 3.281: "height: feet and metres",
    39.37: "height: inches and metres", 1.609: "distance: kilometres and miles", 28.35: "weight: grams and ounces",
    4.184: "energy: kilojoules and kilocalories", 7.0: "time: days and weeks", 12.0: "age: months and years",
    24.0: "time: hours and days", 60.0: "time: minutes and hours, or seconds and minutes", 365.25: "age: days and years",
    3600.0: "time: seconds and hours",
    **{10.0**power: f"a power of ten: 10^{power}" for power in (1, 2, 3, 4, 6, 9)},
}  # fmt: skip
_SHIFTED = (Unit(1.8, "temperature: °F and °C", 32.0), Unit(1.0, "temperature: K and °C", 273.15))
UNITS = tuple(each for unit in (*(Unit(*pair) for pair in _NAMED.items()), *_SHIFTED) for each in (unit, unit.inverse))
CALLED = 5.0
"""How many times likelier a unit is of what the column is called after."""


def units(column: str, sums: Mapping[str, Sums]) -> list[Finding]:
    """The clients whose numbers look like those of the others in another unit."""
    known = {name: each for name, each in sums.items() if each.n >= ROWS and each.spread > 1e-9 * abs(each.mean)}
    if len(known) < 2:
        return []
    usual = _usual(list(known.values()))
    differ = _between(list(known.values()), usual)
    found = [finding for name, each in known.items() if (finding := beside(column, name, each, usual, differ)) is not None]
    if len(known) > 2 or not found:
        return found
    first = max(found, key=lambda finding: finding.confidence or 0)  # of two either may be the odd one
    other = next(name for name in known if name != first.client)
    return [_of_two(first, other)]


def _usual(sums: Sequence[Sums]) -> Sums:
    """The client in the middle, by its mean and by its spread; of two, that with more rows."""
    if len(sums) == 2:
        return max(sums)
    middle = (len(sums) - 1) // 2
    return Sums(
        int(np.median([each.n for each in sums])),
        sorted(each.mean for each in sums)[middle],
        sorted(each.spread for each in sums)[middle],
    )


def _between(sums: Sequence[Sums], usual: Sums) -> np.ndarray:
    """By how much clients differ in the logarithms of mean and spread: as usual, and the more there are, as they do here."""
    apart = np.array([_logs(each) - _logs(usual) for each in sums])
    here = 1.4826 * np.sort(np.abs(apart), axis=0)[(len(sums) - 1) // 2]
    weight = len(sums) - 2
    return np.asarray(np.sqrt((2 * USUAL**2 + weight * here**2) / (2 + weight)))


def _logs(sums: Sums) -> np.ndarray:
    return np.array([math.log(max(abs(sums.mean), 1e-300)), math.log(max(sums.spread, 1e-300))])


def beside(column: str, name: str, own: Sums, usual: Sums, differ: np.ndarray = USUAL) -> Finding | None:
    """Whether one client's numbers look like the usual ones in another unit."""
    if own.n < ROWS or own.spread <= 0 or usual.spread <= 0 or (own.mean * usual.mean < 0 and _far(own) and _far(usual)):
        return None
    as_units = [Sums(usual.n, unit.factor * usual.mean + unit.more, unit.factor * usual.spread) for unit in UNITS]
    weights = np.array([CALLED if _is_called(column, unit) else 1.0 for unit in UNITS])
    chance = PRIOR * weights / weights.sum() * [_likelihood(own, expected, differ) for expected in as_units]
    none = (1 - PRIOR) * _likelihood(own, usual, differ)
    confidence, best = float(chance.sum() / (chance.sum() + none)), UNITS[int(chance.argmax())]
    if not confidence > LIKELY:
        return None
    return Finding(
        "units", SERIOUS if confidence >= CERTAIN else NOTICE,
        f"its numbers are {_times(own, usual, best)} the others' (mean {own.mean:.4g}, usually {usual.mean:.4g}), as if in "
        f"another unit ({best.what}{'' if best.more or 'ten' in best.what else f', {max(best.factor, 1 / best.factor):g}'})",
        "convert them to the unit of the others", name, column, confidence, best.factor,
    )  # fmt: skip


def _times(own: Sums, usual: Sums, unit: Unit) -> str:
    """How much larger or smaller numbers are."""
    if unit.factor == 1.0:
        return f"{abs(own.mean - usual.mean):.4g} {'above' if own.mean > usual.mean else 'below'}"
    times = own.mean / usual.mean if not unit.more and _far(own) and _far(usual) else own.spread / usual.spread
    return f"{times:.3g} times as large as" if times > 1 else f"{1 / times:.3g} times smaller than"


def _is_called(column: str, unit: Unit) -> bool:
    what, words = unit.what.split(":")[0], re.findall(r"[^\W\d_]{3,}", column.lower())
    return any(part.startswith(word) or word.startswith(part) for word in words for part in what.split())


def _far(sums: Sums) -> bool:
    return abs(sums.mean) > BROAD * sums.spread


def _likelihood(own: Sums, expected: Sums, differ: np.ndarray) -> float:
    """Of a client's logarithms of mean and spread, if those are to be expected; but for what is the same for all."""
    apart, noise = _logs(own) - _logs(expected), np.array([(own.spread / own.mean) ** 2 / own.n if own.mean else 1.0, 1 / own.n])
    distances = apart**2 / (differ**2 + noise)
    if not (_far(own) and _far(expected)):
        distances = distances[1:]
    return float((1 + distances.sum() / FREEDOM) ** (-(FREEDOM + len(distances)) / 2))


def _of_two(found: Finding, other: str) -> Finding:
    what = found.what.replace("the others'", f"{other}'s").replace("usually", "there")
    return Finding(
        found.kind, found.level, what, "find out which of the two is right, and convert the other", found.client, found.column,
        found.confidence, found.factor,
    )  # fmt: skip
