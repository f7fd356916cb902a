"""Who shares a mask with whom. All with all up to fifty clients; beyond that a ring in which everybody knows the nearest few, in
an order that nobody chose (Bell et al. 2020): work for each client grows with the logarithm of their number."""

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence

COMPLETE = 50
"""Up to so many clients everybody shares a mask with everybody."""


def neighbours(names: Collection[str], seed: bytes) -> dict[str, list[str]]:
    """The neighbours of each client. The ring's order is by a hash of the seed and the name."""
    ring = sorted(names, key=lambda name: hashlib.sha256(seed + name.encode()).digest())
    reach, count = degree(len(ring)) // 2, len(ring)
    if count <= COMPLETE:
        return {name: sorted(other for other in ring if other != name) for name in ring}
    steps = [step for step in range(-reach, reach + 1) if step]
    return {name: sorted(ring[(i + step) % count] for step in steps) for i, name in enumerate(ring)}


def degree(clients: int) -> int:
    """How many neighbours a client has; an even number where there are more than fifty."""
    return clients - 1 if clients <= COMPLETE else 2 * math.ceil(3 * math.log2(clients))


def needed(holders: int, threshold: float) -> int:
    """How many of those who hold shares of a secret must give theirs: more than half, so that two halves cannot be told
    different stories."""
    return max(math.ceil(threshold * holders - 1e-9), holders // 2 + 1)


def connected(graph: Mapping[str, Sequence[str]], names: Collection[str]) -> bool:
    """Whether these clients are one piece of the graph: the masks of two pieces cancel in each of them alone."""
    left = set(names)
    reached = [left.pop()] if left else []
    while reached:
        found = left.intersection(graph[reached.pop()])
        left -= found
        reached += found
    return not left
