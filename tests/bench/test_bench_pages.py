"""What docs/scale.md is made of: a plan is arithmetic on a run's figures."""

import pytest

from benchmarks.pages import scale

CELL = {
    "clients": 10**6, "samples": 20, "inputs": 64, "features": 256, "classes": 10, "fold_seconds": 36.0,
    "personalize_seconds": 360.0, "bytes_per_head": 8000.0, "cpu_milliseconds_per_client": 0.8,
    "limits": {"bytes_per_second": 1e10},
}  # fmt: skip


def test_a_plan_is_arithmetic_on_the_largest_run():
    small = {**CELL, "clients": 10**4, "fold_seconds": 9.0}
    page = "\n".join(scale.plan({"10000 clients": small, "1000000 clients": CELL}))
    assert "| fold | 100 parts of 1,000,000 clients, 36 s each |  | 1.0 h |" in page
    assert "| 8,000 bytes and 0.36 ms each | 800.0 GB | 10.0 h |" in page
    assert f"| {20 * 264 * 10**8 / 1e9:.1f} GB |" in page
    assert f"{8 * (256 * 257 // 2 + 2560):,} bytes each" in page
    assert "| 1 merge; what they read" in page
    assert "In all 11.0 h on one machine; on 100, which fold and personalise parts of their own, 7 min" in page


@pytest.mark.parametrize(
    ("parts", "merges"), [(10**4, "100 merges, then 1 merge"), (10**5, "1,000 merges, then 10 merges, then 1 merge")]
)
def test_merges_are_a_tree(parts, merges):
    assert merges in "\n".join(scale.plan({"some clients": {**CELL, "clients": scale.CLIENTS // parts}}))


def test_growth_is_said_by_the_power_of_its_last_step():
    varied = {f"samples/{n}": {**CELL, "samples": n, "cpu_milliseconds_per_client": n**1.5} for n in (5, 20, 80)}
    assert scale.powers(varied) == "What a client costs grows with samples from 20 to 80: to the power 1.5."
    picture = scale.growth({"1000000 clients": CELL, "10000 clients": {**CELL, "clients": 10**4}, **varied})
    assert picture.count("<circle") == 5
