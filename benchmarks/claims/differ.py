"""What docs/differ.md says in words."""

import numpy as np

from benchmarks.claims import claim
from benchmarks.joining import ONE_SPLIT, PERCENT, POINTS, judged
from benchmarks.kept import load
from benchmarks.natural import FLAMBY

PAGE = "docs/differ.md"
DOMAINS, PARKINSON, SCHOOLS = "eight domains", "Parkinson, total score", "schools, exam"
RANDOM, LATER, SMALL = "70 % at random", "the last 30 % in time", "8 to 30 students each"
ASKED, PLAIN = "PACE", "PACE, without"


def figures(data: str, cut: str, method: str, name: str = "figure") -> np.ndarray:
    """Of one cut, seed after seed."""
    rows = [row for row in load("differ")["rows"] if (row["data"], row["cut"], row["method"]) == (data, cut, method)]
    return np.array([row[name] for row in sorted(rows, key=lambda row: row["seed"])], float)


def figure(data: str, cut: str, method: str, name: str = "figure") -> float:
    return float(figures(data, cut, method, name).mean())


@claim(PAGE)
def nobody_is_surely_the_worse_for_joining() -> str:
    cells = judged(load("joining"))
    beyond = sorted((cell for cell in cells if cell.beyond), key=lambda cell: -cell.worse)
    assert len(cells) > 100
    assert not [cell.cell for cell in cells if cell.surely]
    most = f" (at most by {beyond[0].worse:.1f}, standard error {beyond[0].error:.1f})" if beyond else ""
    return (
        f"Test samples agree: of {len(cells)} data sets and cuts (`python -m benchmarks joining`) PACE is behind a client alone by more than "
        f"{POINTS:g} points of accuracy, or {PERCENT:g} % of the error, in {len(beyond) or 'none'}{most}, and in none by more than chance explains."
    )


@claim(PAGE)
def the_groups_are_the_domains() -> str:
    gains = {}
    for cut in ("4 each", "8 each"):
        assert figure(DOMAINS, cut, ASKED, "adjusted_rand") > 0.95
        gains[cut] = 100 * (figure(DOMAINS, cut, ASKED) - figure(DOMAINS, cut, PLAIN))
    assert min(gains.values()) > 3
    assert figure(DOMAINS, "1 each", ASKED) == figure(DOMAINS, "1 each", PLAIN)
    return (
        f"Groups: the eight domains are found as they are, and bring {gains['4 each']:.1f} points where each is four clients and "
        f"{gains['8 each']:.1f} where it is eight; where each is one client, no groups are made and nothing changes."
    )


@claim(PAGE)
def the_metric_finds_what_patients_follow() -> str:
    asked, plain, trees = (figure(PARKINSON, RANDOM, method) for method in (ASKED, PLAIN, "boosted trees"))
    assert asked < 0.1 < plain < trees
    return (
        f"The personal metric: on Parkinson's scores, split at random, the error falls from {plain:.3f} to {asked:.3f}; boosted trees on the "
        f"pooled rows have {trees:.3f}."
    )


@claim(PAGE)
def effects_are_level_with_the_mixed_model() -> str:
    asked, plain, fitted = (figures(SCHOOLS, RANDOM, method) for method in (ASKED, PLAIN, "mixed model"))
    apart, sure = (asked - fitted).mean(), (asked - fitted).std(ddof=1) / len(asked) ** 0.5
    assert (asked < plain).all()
    assert apart < 0
    assert abs(apart) < 2 * sure
    lead = figure(SCHOOLS, SMALL, ASKED) - figure(SCHOOLS, SMALL, "MixedModel")
    assert lead > 0.1
    return (
        f"Random effects: on the schools they help in every split; PACE is then level with the mixed model of statsmodels ({apart:+.3f}, "
        f"standard error {sure:.3f}). Of 8 to 30 students a school `MixedModel` is {lead:.2f} ahead of PACE: all there is to find is a line."
    )


@claim(PAGE)
def hospitals_are_too_few_to_tell() -> str:
    (row,) = (row for row in load("joining") if row["data"] == ONE_SPLIT)
    ours, published = figure("heart disease", "FLamby's", ASKED), max(FLAMBY.values())
    (mixed,) = (row for row in load("natural") if row["data"] == ONE_SPLIT and row["model"] == "mixed model")
    assert abs(row["worse"]) < 2 * row["error"]
    assert ours > published + 0.05
    assert abs(ours - mixed["accuracy"]) < 0.02
    return (
        f"Heart disease: PACE has {ours:.3f} where the best published for this split is {published:.3f}; a mixed model of the "
        f"pooled rows has {mixed['accuracy']:.3f}. PACE's lead over each hospital alone, {-row['worse']:.1f} points, has a standard error of {row['error']:.1f}: "
        "254 test patients cannot tell more."
    )


@claim(PAGE)
def a_forecast_is_not_what_the_metric_is_for() -> str:
    asked, plain = (figure(PARKINSON, LATER, method) for method in (ASKED, PLAIN))
    others = min(
        figure(PARKINSON, LATER, method) for method in ("Local", "AFL", "FedHiP", "APFL", "boosted trees", "a line each")
    )
    assert plain < 0.8 * asked
    assert abs(asked / others - 1) < 0.05
    return f"There PACE is better off without the metric ({plain:.2f}); with it ({asked:.2f}) it is level with the best of the others ({others:.2f})."


@claim(PAGE)
def asking_costs_little_where_there_is_nothing_to_find() -> str:
    kinds = {"values": ("alike, values", "600 clients of 100 rows"), "classes": ("alike, classes", "40 clients")}
    times = {kind: figure(*cut, ASKED, "seconds") / figure(*cut, PLAIN, "seconds") for kind, cut in kinds.items()}
    sent = {kind: figure(*cut, ASKED, "sent") / figure(*cut, PLAIN, "sent") for kind, cut in kinds.items()}
    seconds = figure(*kinds["values"], ASKED, "seconds")
    assert max(*times.values(), *sent.values()) < 1.3
    assert seconds < 30
    return (
        f"What it costs where clients are alike: {times['values']:.2f} times the processor time and {sent['values']:.2f} times the bytes for 600 "
        f"clients of 100 rows and 20 columns ({seconds:.0f} s in all), {times['classes']:.2f} and {sent['classes']:.2f} times for 40 clients of 768 columns."
    )
