"""What docs/gradient_results.md says in words."""

import numpy as np
from scipy.stats import t

from benchmarks.claims import claim
from benchmarks.kept import load
from benchmarks.pages.fair import leads

PAGE = "docs/gradient_results.md"
ANALYTIC = ("pace", "apfl", "fedhip", "localclasses", "afl", "local")


@claim(PAGE)
def these_tables_flatter_pace() -> str:
    found: dict[str, dict[str, float]] = {}
    for row in load("gradient_table"):
        partition, name = row["cell"].split("/")[:2]
        found.setdefault(partition, {})[name] = 100 * row["mean_accuracy"]
    away = [rows["pace"] - max(value for name, value in rows.items() if name not in ANALYTIC) for rows in found.values()]
    fair = [*leads("shares"), *leads("fresh")]
    assert min(away) > max(fair)
    return (
        f"for how far PACE is ahead, read one protocol for all, where the best rival is {min(fair):.1f} to {max(fair):.1f} points behind, not "
        f"{min(away):.1f} to {max(away):.1f}."
    )


@claim(PAGE)
def sweeps_ended_at_an_edge() -> str:
    chosen = {row["cell"].split("/")[1]: row["chosen"] for row in load("gradient_table")}
    assert chosen["feddbe"]["kappa"] == 50
    assert chosen["fedprox"]["mu"] == 0.001
    assert chosen["fedala"]["lr"] == 1
    return "some ended at the last value of their grid (FedDBE's kappa 50, FedProx's mu 0.001, FedALA's rate 1)"


@claim(PAGE)
def one_shared_model_is_below_a_network_of_ones_own_under_this_skew() -> str:
    found = {row["name"]: row["mean_accuracy"] for row in load("gradient_images")}
    assert max(found[name] for name in ("fedavg", "fedprox", "fedpcl")) < found["local-sgd"]
    return "FedAvg and FedProx end below the Local-CNN, as a single shared model must under this skew, and so does FedPCL."


@claim(PAGE)
def heart_pfl_from_scratch_is_level_with_a_network_of_ones_own() -> str:
    found = {row["name"]: row["mean_accuracy"] for row in load("gradient_images")}
    assert abs(found["heart-pfl"] - found["local-sgd"]) < 0.01
    return "HEART-PFL from scratch is level with it:"


def _heart(name: str) -> dict[int, float]:
    """Points by seed, of a cell of `gramfold bench heart-pfl`."""
    found = load("bench_heart-pfl")
    keys = {seed: f"{name}/seed {seed}" for seed in found["seeds"]}
    return {seed: 100 * found["cells"][key]["mean_accuracy"] for seed, key in keys.items() if key in found["cells"]}


def _away(mine: dict[int, float], other: dict[int, float]) -> tuple[float, float]:
    """How far ahead over common seeds, and how far chance takes that in 95 of 100 cases."""
    gaps = [mine[seed] - other[seed] for seed in mine if seed in other]
    return float(np.mean(gaps)), float(t.ppf(0.975, len(gaps) - 1) * np.std(gaps, ddof=1) / len(gaps) ** 0.5)


@claim(PAGE)
def the_method_is_ahead_of_local_and_level_with_fine_tuning() -> str:
    whole = _heart("heart-pfl")
    assert all(gap > 0 for gap in (whole[seed] - value for seed, value in _heart("local-sgd").items()))
    lead, chance = _away(whole, _heart("fedavg-ft"))
    assert abs(lead) < chance
    return "So it is ahead of clients on their own, and level with FedAvg that is fine-tuned at the end."


@claim(PAGE)
def its_two_parts_bring_nothing_beyond_chance() -> str:
    plain = _heart("heart-pfl -HDA -AKT")
    for name in ("heart-pfl -AKT", "heart-pfl -HDA", "heart-pfl"):
        gain, chance = _away(_heart(name), plain)
        assert gain < chance, name
    return "nothing that stands out from chance."


@claim(PAGE)
def the_plain_average_is_what_is_kept() -> str:
    found = load("bench_heart-pfl")
    kept = [found["cells"][f"heart-pfl/seed {seed}"]["akt_kept"] for seed in _heart("heart-pfl")]
    assert sum(kept) < 0.2 * len(kept) * found["options"]["settings"]["akt_rounds"]
    return "so that the average is what was nearly always kept."


@claim(PAGE)
def training_many_rounds_added_no_more_than_a_closed_form() -> str:
    found = load("bench_heart-pfl")
    frozen = {seed: found["cells"].get(f"frozen/seed {seed}") for seed in found["seeds"]}
    pace = {seed: 100 * cell["pace"]["mean_accuracy"] for seed, cell in frozen.items() if cell}
    assert _away(pace, _heart("heart-pfl"))[0] >= 0
    return (
        "In these runs, then, training the small layers in many rounds added no more to the pretrained network than a closed form did "
        "in one."
    )
