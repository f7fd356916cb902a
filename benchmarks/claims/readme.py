"""What README.md says in words of how good it is."""

import numpy as np

from benchmarks.claims import claim
from benchmarks.claims.fair import hardly_helped
from benchmarks.claims.learned import behind_the_pooled_network
from benchmarks.kept import load
from benchmarks.pages.fair import leads, measured

PAGE = "README.md"


@claim(PAGE)
def pace_is_ahead_with_everybody_on_the_prior() -> str:
    assert measured("shares")
    assert measured("fresh")
    shares, fresh = leads("shares"), leads("fresh")
    assert min(*shares, *fresh) > 0
    return (
        f"PACE is {min(shares):.1f} to {max(shares):.1f} points ahead of the best of the others, prior included, cell by cell; on a fresh "
        f"draw of test images it is {min(fresh):.1f} to {max(fresh):.1f} points ahead."
    )


@claim(PAGE)
def most_of_the_lead_over_plain_rivals_is_the_prior() -> str:
    gaps = hardly_helped()
    assert min(gaps) > 2 * max(leads("shares"))
    return f"Without the prior the rivals would look {min(gaps):.1f} to {max(gaps):.1f} points worse."


@claim(PAGE)
def with_a_linear_map_it_is_behind() -> str:
    away = [*leads("shares", "pace-linear"), *leads("fresh", "pace-linear")]
    behind = sum(lead < 0 for lead in away)
    assert behind > len(away) / 2
    return (
        f"With a linear map, as the others have, PACE is behind FedAvg with the prior in {behind} of those {len(away)} cells: its lead is "
        "in its learned features."
    )


@claim(PAGE)
def a_pooled_network_is_ahead() -> str:
    default, large = (behind_the_pooled_network(part) for part in ("default", "large"))
    assert min(default) > 0.5
    assert max(map(abs, large)) < 0.5
    return (
        f"An MLP trained on the pooled data, and tuned with care, is ahead of PACE's default by {min(default):.1f} to {max(default):.1f} "
        "points. With 24,576 learned features PACE is level with it, within half a point."
    )


@claim(PAGE)
def level_with_pooled_trees() -> str:
    counts = tables_ahead()
    assert abs(counts["boosted trees, pooled"] - counts["all"] / 2) < np.sqrt(counts["all"]) / 2 * 1.96
    return (
        f"On {counts['all']} tables cut by site PACE is level with or ahead of boosted trees on the pooled rows in "
        f"{counts['boosted trees, pooled']}, which is chance; of each site alone in {counts['boosted trees, per site']}."
    )


def tables_ahead() -> dict[str, int]:
    """In how many tables of `more_tables` PACE's error, or AUC, is no worse than another's."""
    rows = load("more_tables")
    pairs = [
        {row["model"]: row.get("rmse", -row.get("auc", 0.0)) for row in rows if row["table"] == name}
        for name in dict.fromkeys(row["table"] for row in rows)
    ]
    return {"all": len(pairs), **{name: sum(pair["PACE"] <= pair[name] for pair in pairs) for name in pairs[0]}}
