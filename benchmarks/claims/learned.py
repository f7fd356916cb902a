"""What docs/learned.md says in words of the pooled models."""

from typing import Any

import numpy as np

from benchmarks.claims import claim
from benchmarks.kept import load

PAGE = "docs/learned.md"


def behind_the_pooled_network(part: str) -> list[float]:
    """By how many points the tuned MLP on the pooled data, prior included, is ahead of PACE with learned features, cell by cell."""
    rows, pooled = load("learned")[part], [row for row in load("ceiling") if row["model"] == "mlp"]
    cells = dict.fromkeys((row["clients"], row["alpha"]) for row in rows)

    def mean(found: list[dict[str, Any]], key: str, cell: tuple[int, float]) -> float:
        return 100 * float(np.mean([row[key] for row in found if (row["clients"], row["alpha"]) == cell]))

    learned = [row for row in rows if "@" in row["map"]]
    return [mean(pooled, "accuracy", cell) - mean(learned, "pace", cell) for cell in cells]


@claim(PAGE)
def the_pooled_network_is_ahead_of_the_default() -> str:
    default, large = behind_the_pooled_network("default"), behind_the_pooled_network("large")
    assert min(default) > 0.5
    assert max(map(abs, large)) < 0.5
    return (
        f"The pooled MLP is ahead of PACE's default by {min(default):.1f} to {max(default):.1f} points, and within {max(map(abs, large)):.1f} "
        "of PACE with 24,576 learned features."
    )


@claim(PAGE)
def the_pooled_line_is_level_with_the_default() -> str:
    rows = load("ceiling")
    found = {row["model"]: row["shared"] for row in rows}
    shared = max(row["shared"] for row in load("learned")["default"] if "@" in row["map"])
    assert found["softmax"] < shared + 0.005 < found["mlp"]
    return "Its shared model is level with pooled softmax regression and well below the MLP."
