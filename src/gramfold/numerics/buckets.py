"""Which small problems are solved together: of about one size, so that little is padding, and no more than memory is for."""

from collections.abc import Hashable, Sequence

from gramfold.numerics import arrays
from gramfold.numerics.arrays import Array

ON_CPU, ON_DEVICE = 2**21, 2**32
"""Bytes of features in a bucket. On a CPU it stays in the cache, and what is large is alone; an accelerator is kept busy."""
UNEVEN = 1.25
"""How many times as large as the smallest of a bucket its largest may be."""
MOST = 1024
"""Problems in one."""


def bytes_for(array: Array) -> int:
    """Of features, where an array is."""
    return ON_DEVICE if arrays.is_torch(array) and array.device.type != "cpu" else ON_CPU


def buckets(
    sizes: Sequence[int], width: int, most_bytes: int, kinds: Sequence[Hashable] | None = None, most: int = MOST
) -> list[list[int]]:
    """Places in `sizes`, of one kind each, the smallest first. `width`: numbers a row.

    >>> buckets([5, 100, 4, 110, 5], 10, 10**6)
    [[2, 0, 4], [1, 3]]
    """
    order = sorted(range(len(sizes)), key=lambda i: (sizes[i], i))
    found: list[list[int]] = []
    opened: dict[Hashable, list[int]] = {}
    for i in order:
        kind = None if kinds is None else kinds[i]
        bucket = opened.get(kind)
        if bucket is None or not _fits(sizes[i], sizes[bucket[0]], len(bucket) + 1, width, most_bytes, most):
            bucket = opened[kind] = []
            found.append(bucket)
        bucket.append(i)
    return found


def _fits(size: int, smallest: int, count: int, width: int, most_bytes: int, most: int) -> bool:
    return count <= most and size <= max(UNEVEN * smallest, smallest + 4) and 8 * size * width * count <= most_bytes
