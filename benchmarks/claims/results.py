"""What docs/results.md says in words."""

from typing import Any

from benchmarks.claims import claim
from benchmarks.kept import load

PAGE = "docs/results.md"


def moved(row: dict[str, Any]) -> float:
    """Bytes of a client, up and down."""
    return float(row["uplink_bytes"] + row["downlink_bytes"])


@claim(PAGE)
def depth_helps_the_shared_model_alone() -> str:
    rows = load("deepafl")["deepafl"]
    shared, personal = ([row[key] for row in rows] for key in ("shared_accuracy", "accuracy"))
    assert shared == sorted(shared)
    assert shared[-1] - shared[0] > 0.05
    assert max(personal) - min(personal) < 0.005
    return "Depth helps the shared model, layer after layer, and hardly the personal ones."


@claim(PAGE)
def one_layer_more_is_the_best_below_40_mb() -> str:
    found = load("deepafl")
    rows = [*found["deepafl"], *found["others"]]
    plain, layer = found["deepafl"][:2]
    fourier = next(row for row in rows if row.get("features") == "bias+linear+fourier:1024")
    assert abs(plain["accuracy"] - fourier["accuracy"]) < 0.003
    assert round(moved(plain) / 1e6) == round(moved(fourier) / 1e6) == 21
    assert max((row for row in rows if moved(row) < 40e6), key=lambda row: row["accuracy"]) is layer
    return (
        "At the bytes of one message (21 MB) the GELU features are level with as many random Fourier features; one layer more is the "
        "best there is below 40 MB."
    )


@claim(PAGE)
def with_more_bytes_pace_is_better() -> str:
    found = load("deepafl")
    wide = next(row for row in found["others"] if row["features"] == "bias+linear+fourier:4096")
    deeper = [row for row in found["deepafl"] if moved(row) >= 0.8 * moved(wide)]
    assert moved(wide) > 100e6
    assert deeper
    assert all(row["accuracy"] < wide["accuracy"] for row in deeper)
    return "With 100 MB and more PACE on 4096 random Fourier features is the better personal model, in one round instead of 2 depth + 1."


@claim(PAGE)
def a_gpu_says_what_a_cpu_says() -> str:
    found = load("gpu")
    fold = found["fold m=8961"]
    assert fold["share_of_gemm_rate"] > 0.3
    return (
        f"{found['device']}, float64. Heads agree with those from the CPU to {max(found['agreement'].values()):.0e} for every method. The "
        f"fold, mapping included, runs at {100 * fold['share_of_gemm_rate']:.0f} % of the card's measured "
        f"{found['gemm_teraflop_per_second']:.0f} TFLOP/s matrix product."
    )


@claim(PAGE)
def the_server_holds_one_answer() -> str:
    ratios = {method: load(f"flower_size_{method}")["server_peak_ratio"] for method in ("afl", "pace")}
    assert max(ratios.values()) < 1.3
    return (
        f"With five sites the server peaks at {ratios['afl']:.2f} (AFL) and {ratios['pace']:.2f} (PACE) times its peak with one:"
    )
