"""Who differs from most: sites are excluded by name, each with a reason."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from gramfold.errors import shortened


def minority(what: str, opinions: Mapping[str, Any]) -> dict[str, str]:
    """The sites whose opinion is not that of most; none where there is no most. None: that site has no say in it."""
    counts = Counter(opinion for opinion in opinions.values() if opinion is not None).most_common(2)
    if len(counts) < 2 or counts[0][1] == counts[1][1]:
        return {}
    (usual, many), _ = counts
    return {
        name: f"its {what} ({shortened(opinion)}) is not that of {many} other sites ({shortened(usual)})"
        for name, opinion in opinions.items()
        if opinion is not None and opinion != usual
    }


def inflating(words: Mapping[str, Collection[Any]], most: int) -> dict[str, int]:
    """The sites to leave out for the others to have few enough words in all: first those that bring most that nobody else has;
    and how many these are."""
    left = {name: set(mine) for name, mine in words.items()}
    odd: dict[str, int] = {}
    while len(set().union(*left.values())) > most:
        held = Counter(word for mine in left.values() for word in mine)
        own = {name: sum(held[word] == 1 for word in mine) for name, mine in left.items()}
        worst = max(sorted(own), key=lambda name: own[name])
        del left[worst]
        odd[worst] = own[worst]
    return odd
