"""What README.md says in words of how good it is."""

import numpy as np

from benchmarks.claims import claim
from benchmarks.claims.fair import hardly_helped
from benchmarks.claims.learned import behind_the_pooled_network
from benchmarks.kept import load
from benchmarks.pages.fair import CLOSED, leads, measured

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
    return f"Against the same rivals without the prior it would seem {min(gaps):.1f} to {max(gaps):.1f} points ahead."


@claim(PAGE)
def with_a_linear_map_it_is_behind() -> str:
    away = [*leads("shares", "pace-linear"), *leads("fresh", "pace-linear")]
    behind = sum(lead < 0 for lead in away)
    closed = [*leads("shares", "pace-linear", CLOSED), *leads("fresh", "pace-linear", CLOSED)]
    assert behind > len(away) / 2
    assert min(closed) > 0
    return (
        f"With a linear map, as the others have, PACE is ahead of every other closed form, prior included, by {min(closed):.1f} to {max(closed):.1f} "
        f"points, and behind FedAvg with the prior in {behind} of those {len(away)} cells: there its lead is in its learned features."
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
    counts, losses = tables_ahead(), tables_ahead("log_loss")["boosted trees, pooled"]
    for count in (counts["boosted trees, pooled"], losses):
        assert abs(count - counts["all"] / 2) < np.sqrt(counts["all"]) / 2 * 1.96
    return (
        f"On {counts['all']} tables cut by site, which were looked at while PACE was made, it is level with or ahead of boosted trees on the "
        f"pooled rows in {counts['boosted trees, pooled']}, which is chance (in {losses} by log loss instead of AUC); of each site alone in "
        f"{counts['boosted trees, per site']}."
    )


def tables_ahead(of_classes: str = "auc") -> dict[str, int]:
    """In how many tables of `more_tables` PACE's error, or AUC (or log loss), is no worse than another's."""
    rows, sign = load("more_tables"), -1 if of_classes == "auc" else 1
    pairs = [
        {row["model"]: row.get("rmse", sign * row.get(of_classes, 0.0)) for row in rows if row["table"] == name}
        for name in dict.fromkeys(row["table"] for row in rows)
    ]
    return {"all": len(pairs), **{name: sum(pair["PACE"] <= pair[name] for pair in pairs) for name in pairs[0]}}


@claim(PAGE)
def others_can_be_ahead() -> str:
    rows = load("differ")["rows"]
    late = {row["method"]: row["figure"] for row in rows if row["cut"] == "the last 30 % in time"}
    assert late["PACE"] > late["PACE, without"]
    margins = [table["margin"]["PACE personal"].values() for table in load("clean_tables")["tables"].values()]
    assert any(away > 0 for table in margins for away, _ in table)
    return "On a forecast, and on small plain tables, others can be ahead."
