"""What docs/results.md says in words of one protocol for all."""

from benchmarks.claims import claim
from benchmarks.pages.fair import COLUMNS, OURS, best, found, leads, measured, scores

PAGE = "docs/results.md"


def hardly_helped() -> list[float]:
    """PACE's lead over the best of the others as they are, cell by cell, in the seeds that both have."""
    gaps, rows = [], found()
    for clients, alpha in COLUMNS:
        start = f"shares/{clients}/{alpha}/"
        mine, away = scores(rows[f"{start}pace"], "plain"), []
        for cell, row in rows.items():
            theirs = scores(row, "plain")
            both = [seed for seed in theirs if seed in mine]
            if cell.startswith(start) and row["method"] not in OURS and both:
                away.append(sum(mine[seed] - theirs[seed] for seed in both) / len(both))
        gaps.append(min(away))
    return gaps


@claim(PAGE)
def pace_is_ahead_on_both_kinds_of_split() -> str:
    assert measured("shares")
    assert measured("fresh")
    shares, fresh = leads("shares"), leads("fresh")
    assert min(*shares, *fresh) > 0
    return (
        "On both kinds of split PACE is ahead of the best of the others, prior included, in all six cells: "
        f"by {min(shares):.1f} to {max(shares):.1f} points on the first, by {min(fresh):.1f} to {max(fresh):.1f} on the second."
    )


@claim(PAGE)
def a_linear_map_is_behind_fedavg_with_the_prior() -> str:
    away = [*leads("shares", "pace-linear"), *leads("fresh", "pace-linear")]
    assert set(best("shares").split(", ")) <= {"FedAvg", "linear head", "FedAvg-FT"}
    behind = sum(lead < 0 for lead in away)
    assert behind > len(away) / 2
    return (
        f"With a linear map it is behind FedAvg's linear head with the prior, fine-tuned or not, in {behind} of the {len(away)} cells, "
        f"by up to {-min(away):.1f} points."
    )


@claim(PAGE)
def most_of_the_plain_lead_is_the_prior() -> str:
    gaps = hardly_helped()
    assert min(gaps) > 2 * max(leads("shares"))
    return (
        f"Were rivals left as they are, PACE would seem {min(gaps):.1f} to {max(gaps):.1f} points ahead on the first kind of split: most "
        "of that is the prior, which is no part of the closed form."
    )


@claim(PAGE)
def an_mlp_that_fedavg_trains_gains_nothing() -> str:
    rows = found()
    for cell, row in rows.items():
        if row["method"] == "fedavg-mlp":
            linear = scores(rows[cell.replace("fedavg-mlp", "fedavg")], "with_prior")
            assert all(linear[seed] > score for seed, score in scores(row, "with_prior").items() if seed in linear)
    return (
        "Most of the rest is the features: PACE's default learns its own, the others have a linear map, and an MLP that FedAvg trains on "
        "these gains nothing."
    )
