"""Leaks: a column that says the target all by itself, as what is only known afterwards does."""

import numpy as np

from gramfold.checking.finding import SERIOUS, Finding

GROUP, MOST = 10, 30
"""Rows of a group at least, and groups at most, that a column is cut into."""
ALL = 0.97
"""The part of what a guess gets wrong that a column alone sets right."""
MINORITY = 10
"""Rows that are not of the most frequent class, without which nothing can be said."""


def leak(name: str, groups: np.ndarray, targets: np.ndarray, regression: bool) -> Finding | None:
    """Whether the target follows from one column's groups."""
    explained = _of_values(groups, targets) if regression else _of_classes(groups, targets)
    if not explained >= ALL:
        return None
    what = "of the target's variation" if regression else "of what a guess by the most frequent class gets wrong"
    return Finding(
        "leak", SERIOUS, f"says the target by itself: it alone sets {explained:.0%} {what} right",
        "leave it out unless it is known when a prediction is made", column=name,
    )  # fmt: skip


def _of_classes(groups: np.ndarray, codes: np.ndarray) -> float:
    table = np.zeros((groups.max() + 1, codes.max() + 1))
    np.add.at(table, (groups, codes), 1)
    wrong, left = len(codes) - table.sum(0).max(), len(codes) - table.max(1).sum()
    return float(1 - left / wrong) if wrong >= MINORITY else 0.0


def _of_values(groups: np.ndarray, values: np.ndarray) -> float:
    n = np.maximum(np.bincount(groups), 1)
    means = np.bincount(groups, values) / n
    total = ((values - values.mean()) ** 2).sum()
    return float(1 - ((values - means[groups]) ** 2).sum() / total) if total > 0 else 0.0


def groups_of_numbers(numbers: np.ndarray) -> np.ndarray:
    """Rows by which of equally many neighbours a number is among; those without one together."""
    known = np.isfinite(numbers)
    count = max(min(int(known.sum()) // GROUP, MOST), 1)
    edges = np.unique(np.quantile(numbers[known], np.linspace(0, 1, count + 1)[1:-1])) if known.any() else np.empty(0)
    return np.where(known, 1 + np.searchsorted(edges, np.where(known, numbers, 0.0), side="right"), 0)


def groups_of_words(codes: np.ndarray) -> np.ndarray:
    """Rows by their word; rare words together, and those without one. `codes` are -1 where it is missing."""
    counts = np.bincount(codes[codes >= 0], minlength=1)
    frequent = np.flatnonzero(counts >= GROUP)
    places = np.full(len(counts) + 1, 1)
    places[frequent] = 2 + np.arange(len(frequent))
    places[-1] = 0
    return np.asarray(places[codes])
