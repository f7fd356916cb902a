"""Fixed point in a ring of 64 or 128 bits: numbers as integers that add without rounding, whatever masks are among them.

A plan gives every block of a vector the most that one client's number in it can be. The sum of so many clients must fit: what
could overflow is refused, never clipped. A number is rounded once, to 2^-50 or 2^-64; the integers are exact from there on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramfold.errors import SecureSumError

FRACTION = {1: 50, 2: 64}
"""Bits behind the point, by 64-bit words. At 2^-50 heads agree with plain ones to 1e-9 even under the least penalty that GCV
tries; with fewer they would not, so where a sum needs more than 13 bits before the point it takes two words."""
SLACK = 1 - 2.0**-32
"""Room for rounding every client's number."""
LOW = np.uint64(1)

Words = np.ndarray
"""Ring elements: an array (words x n) of uint64, the low word first."""


def largest(words: int) -> float:
    """The most that a sum can be."""
    return 2.0 ** (64 * words - 1 - FRACTION[words])


@dataclass(frozen=True)
class Block:
    """Numbers of one kind. `most`: what one client's number can be at most, None: nobody knows."""

    size: int
    most: float | None = None


@dataclass(frozen=True)
class FixedPoint:
    """How vectors become ring elements, the same at all clients: `blocks` one after another, each with its range."""

    words: int
    blocks: tuple[Block, ...]

    @classmethod
    def plan(cls, blocks: Sequence[Block], clients: int) -> "FixedPoint":
        """The narrowest ring that holds the sum of so many clients. A block without a bound gets what two words leave."""
        known = [block.most for block in blocks if block.most is not None]
        words = 1 if len(known) == len(blocks) and max(known, default=0.0) * clients <= largest(1) * SLACK else 2
        share = largest(words) * SLACK / max(clients, 1)
        for most in known:
            if not most <= share:
                raise SecureSumError(f"a sum of {clients} clients with numbers up to {most:.3g} does not fit 128 bits")
        return cls(words, tuple(Block(block.size, share if block.most is None else block.most) for block in blocks))

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    def encode(self, vector: np.ndarray) -> Words:
        """The ring elements of a client's vector. Raises where a number is beyond its block's range."""
        if vector.shape != (self.size,):
            raise SecureSumError(f"a vector of {vector.shape} numbers, where the plan has {self.size}")
        start = 0
        for block in self.blocks:
            part, start = vector[start : start + block.size], start + block.size
            if not float(np.abs(part).max(initial=0.0)) <= block.most:  # type: ignore[operator]
                # which number it is stays here: the server reads this
                raise SecureSumError(f"an upload beyond the range of this secure sum, {block.most:.3g}; normalise the features")
        return to_words(vector, self.words)

    def decode(self, total: Words) -> np.ndarray:
        """The vector whose ring elements these are: the sum of vectors, if they are the sum of their elements."""
        if total.shape != (self.words, self.size):
            raise SecureSumError(f"ring elements of shape {total.shape}, where the plan has {(self.words, self.size)}")
        return from_words(total)


def to_words(vector: np.ndarray, words: int) -> Words:
    """Numbers as ring elements: round(2^fraction v), in two's complement."""
    if words == 1:
        narrow: Words = np.rint(np.ldexp(vector, FRACTION[1])).astype(np.int64).view(np.uint64)[None]
        return narrow
    scaled = np.ldexp(np.abs(vector), FRACTION[2] - 64)
    whole = np.floor(scaled)
    low = np.rint(np.ldexp(scaled - whole, 64))  # a double below one has no more than 53 bits: never 2^64
    found = np.stack([low.astype(np.uint64), whole.astype(np.uint64)])
    signed: Words = np.where(vector < 0, negative(found), found)
    return signed


def from_words(total: Words) -> np.ndarray:
    """The numbers of ring elements, each the nearest double or its neighbour."""
    if len(total) == 1:
        narrow: np.ndarray = np.ldexp(total[0].view(np.int64).astype(np.float64), -FRACTION[1])
        return narrow
    below = total[1].view(np.int64) < 0
    low, high = np.where(below, negative(total), total)
    size = np.ldexp(high.astype(np.float64), 64) + low.astype(np.float64)
    numbers: np.ndarray = np.ldexp(np.where(below, -size, size), -FRACTION[2])
    return numbers


def add(total: Words, more: Words) -> None:
    """Add to the total, in the ring."""
    total[0] += more[0]
    if len(total) == 2:
        total[1] += more[1]
        total[1] += total[0] < more[0]


def subtract(total: Words, less: Words) -> None:
    """Subtract from the total, in the ring."""
    if len(total) == 2:
        total[1] -= less[1]
        total[1] -= total[0] < less[0]
    total[0] -= less[0]


def negative(words: Words) -> Words:
    flipped = ~words
    flipped[0] += LOW
    if len(words) == 2:
        flipped[1] += flipped[0] == 0
    return flipped
