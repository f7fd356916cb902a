"""Cosines of many numbers: random Fourier features are hardly anything else."""

import functools

import numpy as np

IN_CACHE = 2**15
"""Numbers that are gone over several times in a row."""


@functools.cache
def _tangents_are_fast() -> bool:
    """Whether NumPy has the tangent of float64 in vector instructions here; its cosine it has not, as of 2.4."""
    introspect = getattr(np.lib, "introspect", None)
    if introspect is None:
        return False
    found = introspect.opt_func_info(func_name="^tan$").get("tan", {}).get("dd", {})
    return not str(found.get("current", "baseline")).startswith("baseline")


def cosines_over(numbers: np.ndarray) -> np.ndarray:
    """The cosines, written over the numbers, which are given back.

    By cos x = 2 / (1 + tan(x / 2)^2) - 1 where that is faster, some ten times; off by 4e-16 at most, which tests hold it to.
    """
    if numbers.dtype != np.float64 or not _tangents_are_fast():
        np.cos(numbers, out=numbers)
        return numbers
    rows = max(1, IN_CACHE // max(1, int(np.prod(numbers.shape[1:], dtype=np.int64))))
    for first in range(0, len(numbers), rows):
        part = numbers[first : first + rows]
        part *= 0.5
        np.tan(part, out=part)
        np.square(part, out=part)
        part += 1.0
        np.divide(2.0, part, out=part)
        part -= 1.0
    return numbers
