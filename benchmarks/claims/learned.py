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
    return "The default's shared model is level with pooled softmax regression and well below the MLP."


@claim(PAGE)
def what_tables_by_site_show() -> str:
    gaps: dict[str, list[float]] = {}
    for table in dict.fromkeys(row["table"] for row in load("site_tables")):
        rows = {(row["model"], row["seed"]): row for row in load("site_tables") if row["table"] == table}
        key = "rmse" if "rmse" in next(iter(rows.values())) else "log_loss"
        seeds = {seed for _, seed in rows}
        gaps[table] = [rows["boosted trees, pooled", seed][key] - rows["PACE", seed][key] for seed in seeds]
    ahead = {name: gap for name, gap in gaps.items() if np.mean(gap) > 0}
    made_up = [name for name in ahead if name.startswith("Friedman")]
    chance = [name for name, gap in ahead.items() if np.mean(gap) < 2 * np.std(gap, ddof=1) / len(gap) ** 0.5]
    assert len(made_up) + len(chance) >= len(ahead) / 2
    return (
        f"By error or log loss PACE is ahead of pooled trees in {len(ahead)} of these {len(gaps)}, of which {len(made_up)} are made-up functions with "
        f"offsets of our own making, and {len(chance)} are chance:"
    )
