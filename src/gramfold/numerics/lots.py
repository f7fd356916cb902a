"""A lot for every sample, drawn from its own numbers: the same whoever has the sample, in whatever order, and however often.

What must be random and yet independent of how data is cut among clients takes its randomness from here.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from gramfold.numerics import arrays, work
from gramfold.numerics.arrays import Array

_STEP, _FIRST, _SECOND = (np.uint64(constant) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _mixed(words: np.ndarray) -> np.ndarray:
    """Every bit of a word depends on every bit of the one before (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return np.asarray(words ^ (words >> np.uint64(31)))


def lots(rows: Array) -> np.ndarray:
    """A 64-bit word for every row, from the numbers in it. Equal rows have equal lots, and so have rows that differ by rounding:
    numbers count to sixteen bits."""
    work.add(lots=rows.shape[0])
    if arrays.is_torch(rows):
        return _drawn_there(rows)
    drawn = np.empty(rows.shape[0], np.uint64)
    places = _mixed(_STEP * np.arange(1, rows.shape[1] + 1, dtype=np.uint64))
    for block in arrays.blocks(rows.shape[0], rows.shape[1]):
        with np.errstate(over="ignore"):
            numbers = arrays.to_numpy(arrays.float64(rows[block])).astype(np.float32) + np.float32(0)  # no negative zeros
        bits = (np.ascontiguousarray(numbers).view(np.uint32) + np.uint32(128)) >> np.uint32(8)
        drawn[block] = _mixed(bits.astype(np.uint64) + places).sum(1, dtype=np.uint64)
    return _mixed(drawn)


def _drawn_there(rows: Array) -> np.ndarray:
    """The same words on a tensor's device, where integers have a sign and sums wrap around just so."""
    import torch

    def signed(constant: np.uint64) -> int:
        return int(np.array(constant).view(np.int64))

    def shifted(words: Array, bits: int) -> Array:
        return (words >> bits) & ((1 << (64 - bits)) - 1)

    def mixed(words: Array) -> Array:
        words = (words ^ shifted(words, 30)) * signed(_FIRST)
        words = (words ^ shifted(words, 27)) * signed(_SECOND)
        return words ^ shifted(words, 31)

    places = mixed(torch.arange(1, rows.shape[1] + 1, device=rows.device) * signed(_STEP))
    sums = []
    for block in arrays.blocks(rows.shape[0], rows.shape[1]) or [slice(0, 0)]:
        numbers = rows[block].to(torch.float32) + 0.0  # no negative zeros
        bits = ((numbers.view(torch.int32).to(torch.int64) & 0xFFFFFFFF) + 128 & 0xFFFFFFFF) >> 8
        sums.append(mixed(bits + places).sum(1))
    return np.asarray(arrays.to_numpy(mixed(torch.cat(sums))).view(np.uint64))


def of_names(seed: int, names: Sequence[str]) -> np.ndarray:
    """A lot for every name under a seed; names that differ have other lots, but for one in 2^64."""
    key = seed.to_bytes(8, "little")
    words = b"".join(hashlib.blake2b(name.encode(), digest_size=8, key=key).digest() for name in names)
    return np.frombuffer(words, dtype="<u8").astype(np.uint64)


def numbered(drawn: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Further lots of the same things, by number."""
    with np.errstate(over="ignore"):
        return _mixed(drawn + _STEP * places.astype(np.uint64))


def shares(drawn: np.ndarray) -> np.ndarray:
    """Lots as numbers from 0 up to 1."""
    return np.asarray((drawn >> np.uint64(11)) * 2.0**-53)


def signs(drawn: np.ndarray, count: int) -> np.ndarray:
    """`count` fair signs for every lot, -1.0 or 1.0."""
    words = _mixed(drawn[:, None] + _STEP * np.arange(1, -(-count // 64) + 1, dtype=np.uint64))
    bits = (words[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    return np.asarray(2.0 * bits.reshape(len(drawn), -1)[:, :count] - 1.0)
