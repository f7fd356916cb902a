"""JSON from elsewhere: only numbers that a float can hold."""

import json
from math import isfinite
from typing import Any

MOST_DIGITS = 100


def read_json(text: str | bytes) -> Any:
    """The value; ValueError for NaN, infinities, numbers that are none of this world, and nesting without end.

    >>> read_json('{"n": 3, "of": [1e3]}')
    {'n': 3, 'of': [1000.0]}
    """
    try:
        return json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=_int)
    except RecursionError:
        raise ValueError("lists within lists without end") from None


def _constant(text: str) -> None:
    raise ValueError(f"{text} among its metadata")


def _float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:40]} is more than a number can be")
    return number


def _int(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)
