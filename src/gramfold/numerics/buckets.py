"""Which small problems are solved together: of about one size, so that little is padding, and no more than memory is for."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array


class Room(NamedTuple):
    """How large a bucket may be."""

    bytes: int
    """Of features."""
    uneven: float
    """How many times as large as its smallest problem its largest may be."""


ON_CPU, ON_DEVICE = Room(2**23, 1.25), Room(2**32, 2.0)
"""On a CPU a bucket stays in the cache, and what is large is alone; an accelerator would rather compute with zeros than wait."""
MOST = 1024
"""Problems in one."""


def room_for(array: Array) -> Room:
    """Where an array is."""
    return ON_DEVICE if arrays.is_torch(array) and array.device.type != "cpu" else ON_CPU


def buckets(
    sizes: Sequence[int], width: int, room: Room, kinds: Sequence[Hashable] | None = None, most: int = MOST
) -> list[list[int]]:
    """Places in `sizes`, of one kind each, the smallest first. `width`: numbers a row.

    >>> buckets([5, 100, 4, 110, 5], 10, ON_CPU)
    [[2, 0, 4], [1, 3]]
    """
    order = sorted(range(len(sizes)), key=lambda i: (sizes[i], i))
    found: list[list[int]] = []
    opened: dict[Hashable, list[int]] = {}
    for i in order:
        kind = None if kinds is None else kinds[i]
        bucket = opened.get(kind)
        if bucket is None or not _fits(sizes[i], sizes[bucket[0]], len(bucket) + 1, width, room, most):
            bucket = opened[kind] = []
            found.append(bucket)
        bucket.append(i)
    return found


def _fits(size: int, smallest: int, count: int, width: int, room: Room, most: int) -> bool:
    return count <= most and size <= max(room.uneven * smallest, smallest + 4) and 8 * size * width * count <= room.bytes
